//! The rules. Each takes one file and gives what is wrong with it.

use std::fmt;

use crate::source::{NamedPath, Source, Word, closing, is, paths};

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file.
    pub(crate) path: String,
    /// The line, from one.
    pub(crate) line: usize,
    /// The rule's name.
    pub(crate) rule: &'static str,
    /// What is wrong and what to do.
    pub(crate) what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.what)
    }
}

/// A rule: a function from a file to what is wrong with it.
pub(crate) type Rule = fn(&Source) -> Vec<Finding>;

/// All of them.
pub(crate) const RULES: [Rule; 8] =
    [direction, one_door, pure_planner, file_length, unsafe_code, unfinished, machine_paths, crate_roots];

fn finding(source: &Source, line: usize, rule: &'static str, what: impl Into<String>) -> Finding {
    Finding { path: source.path.clone(), line, rule, what: what.into() }
}

// ---- which way arrows point --------------------------------------------------------------------------------

/// The rooms that know nothing but quantities and words.
const WORDS: [&str; 4] = ["units", "limits", "media", "error"];
/// The engine's public words, which every room at work may know.
const PUBLIC: [&str; 7] = ["units", "limits", "media", "progress", "fit", "report", "error"];
const WORKSHOPS: [&str; 7] = ["planner", "libav", "mp4", "picture", "sniff", "source", "pool"];

/// Which rooms of the engine each room may name, besides itself. `lib` is the face and names all.
const ENGINE: [(&str, &[&[&str]]); 18] = [
    ("units", &[]),
    ("confine", &[]),
    ("limits", &[&["units"]]),
    ("media", &[&["units"]]),
    ("progress", &[&["units"]]),
    ("error", &[&["units", "limits", "media", "progress"]]),
    ("fit", &[&["units", "limits", "media", "progress", "error"]]),
    ("report", &[&["units", "limits", "media", "progress", "error", "fit"]]),
    ("planner", &[&PUBLIC]),
    ("libav", &[&PUBLIC]),
    ("mp4", &[&WORDS]),
    ("picture", &[&WORDS]),
    ("sniff", &[&WORDS]),
    ("source", &[&PUBLIC]),
    ("pool", &[&PUBLIC, &["confine"]]),
    ("pipeline", &[&PUBLIC, &WORKSHOPS]),
    ("probe", &[&PUBLIC, &["libav", "mp4", "picture", "sniff", "source", "pipeline"]]),
    ("engine", &[&PUBLIC, &WORKSHOPS, &["pipeline", "probe"]]),
];

/// The storeys of the bot: each room may name what stands on lower storeys, and none of its neighbours.
const BOT: [&[&str]; 7] = [
    &["domain", "clock", "error", "shutdown"],
    &["config", "metrics"],
    &["guard", "store", "http"],
    &["dedup", "queue", "source"],
    &["intake", "pipeline"],
    &["frontend", "web"],
    &["app"],
];

/// Whether a room of this package may name another; `None` when either has no place in the plan.
fn may_name(package: &str, from: &str, to: &str) -> Option<bool> {
    if package == "engine" {
        let (_, allowed) = ENGINE.iter().find(|(room, _)| *room == from)?;
        ENGINE.iter().find(|(room, _)| *room == to)?;
        Some(from == to || allowed.iter().any(|rooms| rooms.contains(&to)))
    } else {
        let storey = |room: &str| BOT.iter().position(|rooms| rooms.contains(&room));
        Some(from == to || storey(to)? < storey(from)?)
    }
}

/// Rooms name only what the plan lets them, and packages only what stands below them.
pub(crate) fn direction(source: &Source) -> Vec<Finding> {
    const RULE: &str = "direction";
    let Some((package, room)) = source.room() else { return Vec::new() };
    let mut found = Vec::new();
    for path in paths(&source.product_words()) {
        let first = path.parts.first().map_or("", String::as_str);
        let above = if package == "engine" { &["azalea", "azalea_bot"][..] } else { &["azalea"] };
        if above.contains(&first) {
            found.push(finding(
                source,
                path.line,
                RULE,
                format!("{package} names the package {first}, which is above it"),
            ));
        }
        let Some(named) = room_named(&path, source.depth()).filter(|_| room != "lib") else { continue };
        match may_name(package, room, named) {
            Some(true) => {}
            Some(false) => found.push(finding(source, path.line, RULE, format!("{room} must not know {named}"))),
            None => found.push(finding(
                source,
                path.line,
                RULE,
                format!("{room} names {named}: name the room itself, not a re-export; a new room needs a place in the plan"),
            )),
        }
    }
    found
}

/// The room that a path leads to, when it leads out of the file's own module.
fn room_named(path: &NamedPath, depth: usize) -> Option<&str> {
    let ups = path.parts.iter().take_while(|part| *part == "super").count();
    let steps = if path.parts.first()? == "crate" { 1 } else { ups };
    if steps == 0 || (ups > 0 && ups != depth) { None } else { path.parts.get(steps).map(String::as_str) }
}

// ---- one door per foreign crate ----------------------------------------------------------------------------

/// Which parts of the packages a foreign crate may be named in.
const DOORS: [(&[&str], &[&str]); 9] = [
    (&["ffmpeg_next", "ffmpeg_sys_next", "ffmpeg"], &["engine/src/libav/"]),
    (
        &["crossbeam", "crossbeam_channel"],
        &["engine/src/pool.rs", "engine/src/pool/", "engine/src/pipeline/", "engine/src/engine.rs"],
    ),
    (&["redb"], &["bot/src/store/", "bot/src/queue/embedded/"]),
    (&["moka"], &["bot/src/dedup/", "bot/src/source/", "bot/src/guard/"]),
    (&["reqwest"], &["bot/src/http/"]),
    (&["serenity"], &["bot/src/frontend/discord/"]),
    (&["tokio_postgres"], &["bot/src/queue/postgres.rs"]),
    (&["clap", "clap_complete"], &["src/"]),
    (&["azalea_engine"], &["bot/src/pipeline/optimize/", "src/"]),
];

/// Each foreign crate is named in one place, so that it can be replaced there.
pub(crate) fn one_door(source: &Source) -> Vec<Finding> {
    let in_product = ["src/", "engine/src/", "bot/src/"].iter().any(|folder| source.path.starts_with(folder));
    if !in_product {
        return Vec::new();
    }
    let mut found = Vec::new();
    for path in paths(&source.product_words()) {
        let first = path.parts.first().map_or("", String::as_str);
        for (crates, doors) in DOORS {
            if crates.contains(&first) && !doors.iter().any(|door| source.path.starts_with(door)) {
                let what = format!("{first} is named here, but its door is {}", doors.join(", "));
                found.push(finding(source, path.line, "one door", what));
            }
        }
    }
    found
}

/// The planner gives the same plan on every machine: it names no file, thread, clock, chance or libav.
pub(crate) fn pure_planner(source: &Source) -> Vec<Finding> {
    if source.room() != Some(("engine", "planner")) {
        return Vec::new();
    }
    let impure = |path: &NamedPath| {
        let part = |at: usize| path.parts.get(at).map_or("", String::as_str);
        (part(0) == "std" && ["fs", "thread", "io", "env", "net", "process"].contains(&part(1)))
            || ["rand", "fastrand", "getrandom", "ffmpeg_next", "ffmpeg_sys_next", "ffmpeg"]
                .contains(&part(0))
            || path.parts.iter().any(|part| part == "Instant" || part == "SystemTime")
            || room_named(path, source.depth()) == Some("libav")
    };
    let words = source.product_words();
    let named = paths(&words).into_iter().filter(impure);
    named
        .map(|path| {
            finding(source, path.line, "pure planner", format!("the planner names {}", path.parts.join("::")))
        })
        .collect()
}

// ---- files -------------------------------------------------------------------------------------------------

/// The most lines that a file may have.
const MOST_LINES: usize = 600;

/// A file has one subject, and room for it.
pub(crate) fn file_length(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    if source.is_rust() && lines > MOST_LINES {
        let what = format!("{lines} lines; above {MOST_LINES} a file is split by subject");
        return vec![finding(source, MOST_LINES + 1, "file length", what)];
    }
    Vec::new()
}

/// Nothing unfinished is committed, and no test is put aside.
pub(crate) fn unfinished(source: &Source) -> Vec<Finding> {
    const RULE: &str = "unfinished";
    if !source.is_rust() {
        return Vec::new();
    }
    let words = source.words();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if ["todo", "unimplemented", "dbg"].contains(&word.text.as_str()) && is(&words, at + 1, "!") {
            found.push(finding(source, word.line, RULE, format!("{}! must not be committed", word.text)));
        }
        if word.text == "#" && is(&words, at + 1, "[") {
            let attribute = &words[at..closing(&words, at + 1)];
            let conditional =
                is(attribute, 2, "cfg_attr") && attribute.iter().any(|word| word.text == "ignore");
            if is(attribute, 2, "ignore") || conditional {
                let what = "an ignored test proves nothing; give it a double, or remove it";
                found.push(finding(source, word.line, RULE, what));
            }
        }
    }
    found
}

/// No file names a path that only one machine has.
pub(crate) fn machine_paths(source: &Source) -> Vec<Finding> {
    // Put together here, or this file would name them.
    let folders = ["home", "root", "Users", "work"].map(|name| format!("/{name}/"));
    let mut found = Vec::new();
    for (line, text) in source.text.lines().enumerate() {
        for folder in &folders {
            // A letter before it makes it a part of another path or of a URL.
            let begins = |(at, _): (usize, &str)| {
                text.get(..at)
                    .and_then(|before| before.chars().next_back())
                    .is_none_or(|c| !c.is_alphanumeric() && !"._-}~".contains(c))
            };
            if text.match_indices(folder.as_str()).any(begins) {
                found.push(finding(
                    source,
                    line + 1,
                    "machine path",
                    format!("{folder}… exists on one machine only"),
                ));
            }
        }
    }
    found
}

// ---- unsafe ------------------------------------------------------------------------------------------------

/// Where `unsafe` may stand.
const UNSAFE_ROOM: &str = "engine/src/libav/";

/// `unsafe` stands in one room, and each use of it argues why it is sound.
pub(crate) fn unsafe_code(source: &Source) -> Vec<Finding> {
    const RULE: &str = "unsafe";
    if !source.is_rust() {
        return Vec::new();
    }
    let words = source.words();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().filter(|(_, word)| word.text == "unsafe") {
        if !source.path.starts_with(UNSAFE_ROOM) {
            found.push(finding(source, word.line, RULE, format!("unsafe stands in {UNSAFE_ROOM} only")));
            continue;
        }
        let needed = match unsafe_use(&words[at + 1..]) {
            Unsafe::Function => "# Safety",
            Unsafe::Block => "SAFETY:",
            Unsafe::Type => continue,
        };
        if !argued(source, word.line, needed) {
            found.push(finding(
                source,
                word.line,
                RULE,
                format!("no comment with \"{needed}\" stands above it"),
            ));
        }
    }
    found
}

enum Unsafe {
    /// A block or an implementation, where we promise something.
    Block,
    /// A function or trait, where the caller or implementor does.
    Function,
    /// The type of a function pointer: nobody promises anything yet.
    Type,
}

/// What the words behind `unsafe` make of it.
fn unsafe_use(after: &[Word]) -> Unsafe {
    match after.iter().find(|word| word.text != "extern") {
        Some(word) if word.text == "fn" => {
            let at = after.iter().position(|word| word.text == "fn").unwrap_or(0);
            if after.get(at + 1).is_some_and(Word::is_name) { Unsafe::Function } else { Unsafe::Type }
        }
        Some(word) if word.text == "trait" => Unsafe::Function,
        _ => Unsafe::Block,
    }
}

/// Whether a comment with these words stands in this line or directly above the statement or item it belongs to.
fn argued(source: &Source, line: usize, needed: &str) -> bool {
    let code: Vec<&str> = source.code.lines().collect();
    let comments: Vec<&str> = source.comments.lines().collect();
    let mut at = line - 1;
    if comments[at].contains(needed) {
        return true;
    }
    while at > 0 {
        at -= 1;
        let line = code[at].trim();
        let comment = comments[at].trim();
        if comment.contains(needed) {
            return true;
        }
        // Comments and attributes belong to what is below them; so does a line that ends in mid-statement.
        let belongs = line.is_empty() && !comment.is_empty()
            || line.starts_with("#[")
            || (!line.is_empty() && !line.ends_with([';', '{', '}', ',']));
        if !belongs {
            return false;
        }
    }
    false
}

/// Every crate root says that its crate has no unsafe code; the engine's denies it, so that one room can allow it.
pub(crate) fn crate_roots(source: &Source) -> Vec<Finding> {
    let level = match source.path.as_str() {
        "engine/src/lib.rs" => "deny",
        "bot/src/lib.rs" | "src/lib.rs" | "src/main.rs" => "forbid",
        _ => return Vec::new(),
    };
    let wanted = ["#", "!", "[", level, "(", "unsafe_code", ")", "]"];
    let words = source.words();
    if words.windows(wanted.len()).any(|window| window.iter().map(|word| word.text.as_str()).eq(wanted)) {
        return Vec::new();
    }
    vec![finding(source, 1, "crate root", format!("#![{level}(unsafe_code)] is missing"))]
}
