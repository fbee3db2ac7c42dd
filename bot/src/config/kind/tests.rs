use proptest::prelude::*;

use super::*;
use crate::config::SourceChoice;

/// What each text means to a kind.
#[track_caller]
fn check<K: Kind<Value: PartialEq + std::fmt::Debug>>(cases: &[(&str, Option<K::Value>)]) {
    for (text, wanted) in cases {
        assert_eq!(&K::read(&(*text).into()), wanted, "{text:?}");
    }
}

#[test]
fn times_have_units_or_are_seconds() {
    let ms = |count| Some(Duration::from_millis(count));
    check::<Time<0, 100_000_000>>(&[
        ("250ms", ms(250)),
        ("30s", ms(30_000)),
        ("30", ms(30_000)),
        ("1h30m", ms(5_400_000)),
        ("1d", ms(86_400_000)),
        ("0s", ms(0)),
        ("2d", None),
        ("30m1h", None),
        ("1m1m", None),
        ("s", None),
        ("1.5s", None),
        ("-1s", None),
        ("+1s", None),
        ("1 s", None),
        ("1S", None),
        ("", None),
        ("99999999999999999999h", None),
        ("99999999999999999999999999999999999999999", None),
    ]);
    assert_eq!(Time::<1, 9000>::read(&Value::from(9)), ms(9000));
    assert_eq!(Time::<1, 9000>::read(&Value::from(-1)), None);
    assert_eq!(Time::<1, 9000>::read(&Value::from(0)), None);
    assert_eq!(Time::<0, 0>::show(&Duration::from_millis(61_500)), "\"61500ms\"");
    assert_eq!(Time::<0, 0>::show(&Duration::from_secs(3_661)), "\"1h1m1s\"");
    assert_eq!(Time::<1, 9000>::allowed(), "a time from 1ms to 9s");
}

#[test]
fn sizes_have_units_or_are_bytes() {
    check::<Size<1, 2_199_023_255_552>>(&[
        ("10MiB", Some(10 << 20)),
        ("10 MB", Some(10_000_000)),
        ("1.5k", Some(1536)),
        ("10485760", Some(10 << 20)),
        ("2TiB", Some(2 << 40)),
        ("3TiB", None),
        ("0", None),
        ("MiB", None),
        ("1.2.3MB", None),
        ("-1", None),
        ("8 parsecs", None),
        ("1.0000000000k", None),
        ("", None),
    ]);
    assert_eq!(Size::<1, 5>::read(&Value::from(5)), Some(5));
    assert_eq!(Size::<1, 5>::read(&Value::from(2.5)), None);
    assert_eq!(Size::<1024, 1025>::allowed(), "a size from 1KiB to 1025");
}

#[test]
fn numbers_and_flags_are_read_from_text_too() {
    check::<Count<1, 64>>(&[
        ("4", Some(4)),
        ("64", Some(64)),
        ("65", None),
        ("0", None),
        ("4.0", None),
        ("", None),
    ]);
    check::<Flag>(&[("true", Some(true)), ("false", Some(false)), ("yes", None), ("1", None)]);
    assert_eq!(Flag::read(&Value::from(true)), Some(true));
    assert_eq!(Flag::read(&Value::from(1)), None);
}

#[test]
fn bases_of_addresses_are_checked_and_lose_their_last_slash() {
    let some = |text: &str| Some(text.to_owned());
    check::<BaseUrl>(&[
        ("https://api.vxtwitter.com/", some("https://api.vxtwitter.com")),
        ("http://127.0.0.1:3001/api", some("http://127.0.0.1:3001/api")),
        ("api.vxtwitter.com", None),
        ("ftp://a.example", None),
        ("https://", None),
        ("https://user@a.example", None),
        ("https://a.example/?q", None),
        ("", None),
    ]);
}

#[test]
fn hosts_may_stand_for_those_below() {
    let some = |text: &str| Some(text.to_owned());
    check::<Host>(&[
        ("*.TWIMG.com", some("*.twimg.com")),
        ("127.0.0.1", some("127.0.0.1")),
        ("*", None),
        ("a.*.com", None),
        ("https://a.example", None),
        ("a b", None),
    ]);
}

#[test]
fn lists_have_each_item_once() {
    use SourceChoice::{Fxtwitter, Ytdlp};
    check::<List<Choice<SourceChoice>>>(&[
        ("ytdlp, fxtwitter", Some(vec![Ytdlp, Fxtwitter])),
        ("ytdlp,ytdlp", None),
        ("ytdlp,", None),
        ("", None),
        ("bird", None),
    ]);
    let list = Value::from(vec!["fxtwitter"]);
    assert_eq!(List::<Choice<SourceChoice>>::read(&list), Some(vec![Fxtwitter]));
    assert_eq!(List::<Choice<SourceChoice>>::show(&vec![Ytdlp, Fxtwitter]), r#"["ytdlp", "fxtwitter"]"#);
}

#[test]
fn an_empty_text_is_no_value() {
    check::<Optional<BaseUrl>>(&[("", Some(None)), ("x", None)]);
    check::<PlacePath>(&[("", Some(PathBuf::new())), ("a/b", Some("a/b".into()))]);
    check::<Bind>(&[("off", Some(None)), ("127.0.0.1:0", Some("127.0.0.1:0".parse().ok())), ("8686", None)]);
    assert_eq!(Optional::<BaseUrl>::show(&None), r#""""#);
}

#[test]
fn what_was_written_is_shown_short() {
    for (raw, wanted) in [
        (Value::from("a\"b"), r#""a\"b""#),
        (Value::from(5), "5"),
        (Value::from(2.5), "2.5"),
        (Value::from(true), "true"),
        (Value::from(vec![1]), "a list"),
    ] {
        assert_eq!(written(&raw), wanted);
    }
    assert_eq!(written(&"x".repeat(500).into()).chars().count(), 81);
}

proptest! {
    #[test]
    fn what_is_shown_is_read_again(millis: u64, bytes: u64, count: u32, text in "\\PC{1,20}") {
        let reread = |shown: String| -> Value {
            let item: toml_edit::Value = shown.parse().unwrap();
            item.as_str().map_or_else(|| Value::from(item.as_integer().unwrap()), Value::from)
        };
        let time = Duration::from_millis(millis);
        prop_assert_eq!(Time::<0, { u64::MAX }>::read(&Time::<0, 0>::show(&time).trim_matches('"').into()), Some(time));
        let bytes = bytes >> 1;
        prop_assert_eq!(Size::<0, { u64::MAX }>::read(&reread(Size::<0, 0>::show(&bytes))), Some(bytes));
        prop_assert_eq!(Count::<0, { u32::MAX }>::read(&reread(Count::<0, 0>::show(&count))), Some(count));
        let path = PathBuf::from(text);
        prop_assert_eq!(AnyPath::read(&reread(AnyPath::show(&path))), Some(path));
    }

    #[test]
    fn no_text_panics(text: String) {
        let raw = Value::from(text.as_str());
        let _ = (Time::<0, 9>::read(&raw), Size::<0, 9>::read(&raw), Count::<0, 9>::read(&raw), Flag::read(&raw));
        let _ = (BaseUrl::read(&raw), List::<Host>::read(&raw), Bind::read(&raw), written(&raw));
    }
}
