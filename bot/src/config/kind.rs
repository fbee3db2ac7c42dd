//! The kinds of values: how each is written, read and shown.

use std::marker::PhantomData;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use figment::value::Value;
use url::Url;

use crate::config::choice::Choices;
use crate::config::secret::{SHOWN, Secret};

/// A kind of values. Every kind also reads text, since variables hold nothing else.
pub(super) trait Kind {
    type Value: Clone;

    /// Values of this kind must not be shown.
    const SECRET: bool = false;

    /// The value that is written as `raw`; `None` when it is not allowed.
    fn read(raw: &Value) -> Option<Self::Value>;

    /// The value as it would be written in a file.
    fn show(value: &Self::Value) -> String;

    /// What is allowed, to go on from "it must be".
    fn allowed() -> String;
}

/// Yes or no.
pub(super) struct Flag;

impl Kind for Flag {
    type Value = bool;

    fn read(raw: &Value) -> Option<bool> {
        match raw {
            Value::Bool(_, flag) => Some(*flag),
            _ => text(raw)?.parse().ok(),
        }
    }

    fn show(value: &bool) -> String {
        value.to_string()
    }

    fn allowed() -> String {
        "true or false".to_owned()
    }
}

/// A whole number within bounds.
pub(super) struct Count<const MIN: u32, const MAX: u32>;

impl<const MIN: u32, const MAX: u32> Kind for Count<MIN, MAX> {
    type Value = u32;

    fn read(raw: &Value) -> Option<u32> {
        let number = number(raw).and_then(|number| u32::try_from(number).ok())?;
        (MIN..=MAX).contains(&number).then_some(number)
    }

    fn show(value: &u32) -> String {
        value.to_string()
    }

    fn allowed() -> String {
        format!("a whole number from {MIN} to {MAX}")
    }
}

/// A number of bytes within bounds.
pub(super) struct Size<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Kind for Size<MIN, MAX> {
    type Value = u64;

    fn read(raw: &Value) -> Option<u64> {
        let bytes = match number(raw) {
            Some(number) => u64::try_from(number).ok()?,
            None => bytes(&text(raw)?)?,
        };
        (MIN..=MAX).contains(&bytes).then_some(bytes)
    }

    fn show(value: &u64) -> String {
        let whole = |(unit, _): &(u64, &str)| *value > 0 && value.is_multiple_of(*unit);
        match BINARY_UNITS.into_iter().find(whole) {
            Some((unit, name)) => format!("\"{}{name}\"", value.checked_div(unit).unwrap_or(0)),
            None => value.to_string(),
        }
    }

    fn allowed() -> String {
        format!("a size from {} to {}", Self::show(&MIN), Self::show(&MAX)).replace('"', "")
    }
}

/// A length of time within bounds, given in milliseconds. A bare number is seconds.
pub(super) struct Time<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> Kind for Time<MIN, MAX> {
    type Value = Duration;

    fn read(raw: &Value) -> Option<Duration> {
        let millis = match number(raw) {
            Some(seconds) => u64::try_from(seconds).ok()?.checked_mul(1000)?,
            None => millis(&text(raw)?)?,
        };
        (MIN..=MAX).contains(&millis).then_some(Duration::from_millis(millis))
    }

    fn show(value: &Duration) -> String {
        let mut rest = u64::try_from(value.as_millis()).unwrap_or(u64::MAX);
        if !rest.is_multiple_of(1000) {
            return format!("\"{rest}ms\"");
        }
        let mut shown = String::new();
        for (unit, name) in TIME_UNITS {
            let count = rest.checked_div(unit).unwrap_or(0);
            rest = rest.saturating_sub(count.saturating_mul(unit));
            if count > 0 {
                shown.push_str(&format!("{count}{name}"));
            }
        }
        if shown.is_empty() { "\"0s\"".to_owned() } else { format!("\"{shown}\"") }
    }

    fn allowed() -> String {
        let show = |millis| Self::show(&Duration::from_millis(millis));
        format!("a time from {} to {}", show(MIN), show(MAX)).replace('"', "")
    }
}

/// Text that must not be shown.
pub(super) struct SecretText;

impl Kind for SecretText {
    type Value = Secret;

    const SECRET: bool = true;

    fn read(raw: &Value) -> Option<Secret> {
        let text = plain(raw)?;
        Some(Secret::new(text))
    }

    fn show(_: &Secret) -> String {
        quoted(SHOWN)
    }

    fn allowed() -> String {
        "a text without control characters".to_owned()
    }
}

/// The base of addresses: http or https, without user, query or fragment. A `/` at its end is dropped.
pub(super) struct BaseUrl;

impl Kind for BaseUrl {
    type Value = String;

    fn read(raw: &Value) -> Option<String> {
        let text = plain(raw)?;
        let url = Url::parse(&text).ok()?;
        let bare = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let usable = ["http", "https"].contains(&url.scheme()) && url.has_host() && bare;
        usable.then(|| text.trim_end_matches('/').to_owned())
    }

    fn show(value: &String) -> String {
        quoted(value)
    }

    fn allowed() -> String {
        "an http or https URL without user, query or fragment".to_owned()
    }
}

/// The path of a file, folder or program. A relative one begins in the current folder.
pub(super) struct AnyPath;

impl Kind for AnyPath {
    type Value = PathBuf;

    fn read(raw: &Value) -> Option<PathBuf> {
        plain(raw).map(PathBuf::from)
    }

    fn show(value: &PathBuf) -> String {
        quoted(&value.to_string_lossy())
    }

    fn allowed() -> String {
        "a path".to_owned()
    }
}

/// A host name, or `*.` and one for all hosts below it.
pub(super) struct Host;

impl Kind for Host {
    type Value = String;

    fn read(raw: &Value) -> Option<String> {
        let text = plain(raw)?.to_ascii_lowercase();
        let name = text.strip_prefix("*.").unwrap_or(&text);
        // An address of any version, or labels: the parser of URLs knows which hosts there are.
        let known = url::Host::parse(name).is_ok() && !name.contains('*');
        known.then_some(text)
    }

    fn show(value: &String) -> String {
        quoted(value)
    }

    fn allowed() -> String {
        "a host name, or *. and one".to_owned()
    }
}

/// One of a few words.
pub(super) struct Choice<E>(PhantomData<E>);

impl<E: Choices> Kind for Choice<E> {
    type Value = E;

    fn read(raw: &Value) -> Option<E> {
        let text = text(raw)?;
        E::ALL.iter().copied().find(|choice| choice.word() == text)
    }

    fn show(value: &E) -> String {
        quoted(value.word())
    }

    fn allowed() -> String {
        let words: Vec<&str> = E::ALL.iter().map(|choice| choice.word()).collect();
        words.join(" or ")
    }
}

/// One or more of a kind, each once; as text they are separated by commas.
pub(super) struct List<K>(PhantomData<K>);

impl<K: Kind<Value: PartialEq>> Kind for List<K> {
    type Value = Vec<K::Value>;

    fn read(raw: &Value) -> Option<Self::Value> {
        let items = match raw {
            Value::Array(_, items) => items.iter().map(K::read).collect::<Option<Self::Value>>()?,
            _ => text(raw)?.split(',').map(|item| K::read(&item.trim().into())).collect::<Option<_>>()?,
        };
        let once =
            items.iter().enumerate().all(|(at, item)| !items.iter().take(at).any(|other| other == item));
        (once && !items.is_empty()).then_some(items)
    }

    fn show(value: &Self::Value) -> String {
        let items: Vec<String> = value.iter().map(K::show).collect();
        format!("[{}]", items.join(", "))
    }

    fn allowed() -> String {
        format!("a list of different ones, each {}", K::allowed())
    }
}

/// A value or none, which is written as an empty text.
pub(super) struct Optional<K>(PhantomData<K>);

impl<K: Kind> Kind for Optional<K> {
    type Value = Option<K::Value>;

    const SECRET: bool = K::SECRET;

    fn read(raw: &Value) -> Option<Self::Value> {
        if text(raw).is_some_and(|text| text.is_empty()) { Some(None) } else { K::read(raw).map(Some) }
    }

    fn show(value: &Self::Value) -> String {
        value.as_ref().map_or_else(|| quoted(""), K::show)
    }

    fn allowed() -> String {
        format!("{}, or empty", K::allowed())
    }
}

/// A path, or none for a place that is found out later; none is the empty path.
pub(super) struct PlacePath;

impl Kind for PlacePath {
    type Value = PathBuf;

    fn read(raw: &Value) -> Option<PathBuf> {
        Optional::<AnyPath>::read(raw).map(Option::unwrap_or_default)
    }

    fn show(value: &PathBuf) -> String {
        AnyPath::show(value)
    }

    fn allowed() -> String {
        Optional::<AnyPath>::allowed()
    }
}

/// An address and port to listen at, or `off`.
pub(super) struct Bind;

impl Kind for Bind {
    type Value = Option<SocketAddr>;

    fn read(raw: &Value) -> Option<Self::Value> {
        let text = text(raw)?;
        if text == OFF { Some(None) } else { text.parse().ok().map(Some) }
    }

    fn show(value: &Self::Value) -> String {
        quoted(&value.map_or_else(|| OFF.to_owned(), |address| address.to_string()))
    }

    fn allowed() -> String {
        "an address with a port, like 127.0.0.1:8686, or off".to_owned()
    }
}

const OFF: &str = "off";

/// The value as it was written, for a message; long ones are cut.
pub(super) fn written(raw: &Value) -> String {
    let text = match raw {
        Value::Bool(_, flag) => flag.to_string(),
        Value::Array(..) => return "a list".to_owned(),
        Value::Dict(..) => return "a table".to_owned(),
        _ => match (number_only(raw), raw.to_f64(), text(raw)) {
            (Some(number), ..) => number.to_string(),
            (_, Some(number), _) => number.to_string(),
            (.., Some(text)) => format!("{text:?}"),
            _ => "nothing".to_owned(),
        },
    };
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

const MAX_SHOWN_CHARS: usize = 80;

/// `text` as a TOML literal.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

fn text(raw: &Value) -> Option<String> {
    match raw {
        Value::String(_, text) => Some(text.clone()),
        Value::Char(_, c) => Some(c.to_string()),
        _ => None,
    }
}

/// Text that is not empty and has no control characters.
fn plain(raw: &Value) -> Option<String> {
    text(raw).filter(|text| !text.is_empty() && !text.contains(char::is_control))
}

fn number_only(raw: &Value) -> Option<i128> {
    match raw {
        Value::Num(_, number) => {
            number.to_i128().or_else(|| number.to_u128().and_then(|n| i128::try_from(n).ok()))
        }
        _ => None,
    }
}

/// A whole number, written as such or as text.
fn number(raw: &Value) -> Option<i128> {
    number_only(raw).or_else(|| {
        let text = text(raw)?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
    })
}

/// A size like `10MiB`, `1.5GB` or `512k`, in bytes rounded down; a bare letter is binary, as people mean it.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let factor: u128 = match unit.trim().to_ascii_lowercase().as_str() {
        "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 9)?;
    let scaled = format!("{whole}{fraction}").parse::<u128>().ok()?;
    u64::try_from(scaled.checked_mul(factor)?.checked_div(10_u128.pow(digits))?).ok()
}

/// A time like `250ms`, `30s` or `1h30m`, in milliseconds: units from the largest to the smallest, each once.
fn millis(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0_u64;
    for (unit, name) in [(86_400_000, "d")].into_iter().chain(TIME_UNITS) {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (letters, after) = after.split_at(letters);
        if letters == name {
            sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
            rest = after;
        }
    }
    (rest.is_empty() && !text.is_empty()).then_some(sum)
}

const TIME_UNITS: [(u64, &str); 4] = [(3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];

const BINARY_UNITS: [(u64, &str); 4] =
    [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

#[cfg(test)]
mod tests;
