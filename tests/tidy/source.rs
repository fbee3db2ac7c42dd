//! Reads Rust sources as far as the rules need it: code apart from comments and texts, words with their lines, paths.

use std::fs;
use std::io;
use std::path::Path;

/// A file of the repository.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its path from the root of the repository, with `/` between the parts.
    pub(crate) path: String,
    /// What is written in it.
    pub(crate) text: String,
    /// The same lines with comments and the contents of literals blanked.
    pub(crate) code: String,
    /// The same lines with everything but comments blanked.
    pub(crate) comments: String,
}

impl Source {
    /// A file with this path and text.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, comments) = split(text);
        Self { path: path.to_owned(), text: text.to_owned(), code, comments }
    }

    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Its package's folder and the room it belongs to; `None` outside of `engine/src` and `bot/src`.
    pub(crate) fn room(&self) -> Option<(&str, &str)> {
        let package = ["engine", "bot"]
            .into_iter()
            .find(|package| self.path.starts_with(&format!("{package}/src/")))?;
        let inside = self.path.strip_prefix(package)?.strip_prefix("/src/")?;
        let first = inside.split('/').next()?;
        Some((package, first.strip_suffix(".rs").unwrap_or(first)))
    }

    /// How many modules stand above what is written at the top level of this file; zero for a crate root.
    pub(crate) fn depth(&self) -> usize {
        let Some((_, inside)) = self.path.split_once("src/") else { return 0 };
        let parts = inside.split('/').count();
        if matches!(self.path.rsplit('/').next(), Some("mod.rs" | "lib.rs" | "main.rs")) {
            parts - 1
        } else {
            parts
        }
    }

    /// The words of the code.
    pub(crate) fn words(&self) -> Vec<Word> {
        words(&self.code)
    }

    /// The words of the code that is built into the product: no test files, nothing under `#[cfg(test)]`.
    pub(crate) fn product_words(&self) -> Vec<Word> {
        let test_file = self.path.ends_with("/tests.rs") || self.path.contains("/tests/");
        if test_file { Vec::new() } else { without_tests(&self.words()) }
    }
}

/// A name, `::`, or one other character of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// What it is.
    pub(crate) text: String,
    /// Its line, from one.
    pub(crate) line: usize,
}

impl Word {
    /// Whether it is a name or keyword.
    pub(crate) fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// A path such as `crate::units::ByteSize`, with the line it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    /// Its parts, without generics.
    pub(crate) parts: Vec<String>,
    /// Its line, from one.
    pub(crate) line: usize,
}

/// All files below `folders` of `root` whose names have one of the `endings`, in order of their paths.
pub(crate) fn read_all(root: &Path, folders: &[&str], endings: &[&str]) -> io::Result<Vec<Source>> {
    let mut found = Vec::new();
    for folder in folders {
        if root.join(folder).exists() {
            read_into(&mut found, root, folder, endings)?;
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

fn read_into(found: &mut Vec<Source>, root: &Path, path: &str, endings: &[&str]) -> io::Result<()> {
    let full = root.join(path);
    if full.is_dir() {
        for entry in fs::read_dir(full)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            // What builds and fuzzing leave behind is not ours.
            if !["target", "corpus", "artifacts"].contains(&name.as_str()) {
                read_into(found, root, &format!("{path}/{name}"), endings)?;
            }
        }
    } else if endings.iter().any(|ending| path.ends_with(ending)) {
        found.push(Source::new(path, &fs::read_to_string(full)?));
    }
    Ok(())
}

/// Splits a text into code and comments; both keep the lines.
fn split(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::new(), String::new());
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let (kind, length) = next_piece(rest, at.checked_sub(1).map(|before| chars[before]));
        for &c in &rest[..length] {
            let blank = if c == '\n' { '\n' } else { ' ' };
            code.push(if kind == Piece::Code { c } else { blank });
            comments.push(if kind == Piece::Comment { c } else { blank });
        }
        at += length;
    }
    (code, comments)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Code,
    Comment,
    Literal,
}

/// What begins here, and how many characters it has.
fn next_piece(rest: &[char], before: Option<char>) -> (Piece, usize) {
    let in_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    match (rest[0], rest.get(1)) {
        ('/', Some('/')) => (Piece::Comment, rest.iter().position(|&c| c == '\n').unwrap_or(rest.len())),
        ('/', Some('*')) => (Piece::Comment, block_comment(rest)),
        ('"', _) => (Piece::Literal, quoted(rest, '"')),
        ('\'', _) => char_literal(rest).map_or((Piece::Code, 1), |length| (Piece::Literal, length)),
        ('r' | 'b' | 'c', _) if !in_name => {
            prefixed(rest).map_or((Piece::Code, 1), |length| (Piece::Literal, length))
        }
        _ => (Piece::Code, 1),
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match (rest[at], rest.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of a literal that ends with `quote` and knows escapes.
fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a character literal, if it is one and not a lifetime.
fn char_literal(rest: &[char]) -> Option<usize> {
    match (rest.get(1)?, rest.get(2)) {
        ('\\', _) => Some(quoted(rest, '\'')),
        (_, Some('\'')) => Some(3),
        _ => None,
    }
}

/// The length of a literal with a prefix: `r"…"`, `r#"…"#`, `b"…"`, `b'…'`, `br#"…"#`, `c"…"`, `cr"…"`.
fn prefixed(rest: &[char]) -> Option<usize> {
    let letters = rest.iter().take(2).take_while(|c| "rbc".contains(**c)).count();
    let raw = rest[..letters].contains(&'r');
    let hashes = if raw { rest[letters..].iter().take_while(|c| **c == '#').count() } else { 0 };
    let start = letters + hashes;
    match rest.get(start)? {
        '"' if raw => {
            let end = |at: usize| {
                rest[at] == '"' && rest[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes
            };
            Some((start + 1..rest.len()).find(|&at| end(at)).map_or(rest.len(), |at| at + 1 + hashes))
        }
        '"' => Some(start + quoted(&rest[start..], '"')),
        '\'' if !raw => Some(start + char_literal(&rest[start..])?),
        _ => None,
    }
}

fn words(code: &str) -> Vec<Word> {
    let mut found = Vec::new();
    for (line, text) in code.lines().enumerate() {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if first.is_alphanumeric() || first == '_' {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (word, after) = rest.split_at(length);
            found.push(Word { text: word.to_owned(), line: line + 1 });
            rest = after.trim_start();
        }
    }
    found
}

/// The words without the items under `#[cfg(test)]`.
fn without_tests(words: &[Word]) -> Vec<Word> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let end = if is(words, at, "#") && is(words, at + 1, "[") { closing(words, at + 1) } else { at };
        let attribute = &words[at..end];
        let says = |name: &str| attribute.iter().any(|word| word.text == name);
        if is(words, at + 2, "cfg") && says("test") && !says("not") {
            at = item_end(words, end);
        } else {
            kept.push(words[at].clone());
            at += 1;
        }
    }
    kept
}

/// Behind the item that begins here, whatever attributes it has: behind its `;`, or behind its block.
fn item_end(words: &[Word], start: usize) -> usize {
    let mut at = start;
    let mut import = false;
    while at < words.len() {
        match words[at].text.as_str() {
            "use" => import = true,
            ";" => return at + 1,
            "{" if !import => return closing(words, at),
            "(" | "[" | "{" => at = closing(words, at) - 1,
            _ => {}
        }
        at += 1;
    }
    words.len()
}

/// Behind the bracket that closes the one here.
pub(crate) fn closing(words: &[Word], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, word) in words.iter().enumerate().skip(open) {
        match word.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    words.len()
}

/// Whether the word at this place is `text`.
pub(crate) fn is(words: &[Word], at: usize, text: &str) -> bool {
    words.get(at).is_some_and(|word| word.text == text)
}

/// Every path in the code; imports in braces are spelt out.
pub(crate) fn paths(words: &[Word]) -> Vec<NamedPath> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if is(words, at, "use") {
            at = import(words, at + 1, &[], &mut found);
        } else if is(words, at, "extern") && is(words, at + 1, "crate") {
            at += 2;
            found.extend(
                words.get(at).map(|word| NamedPath { parts: vec![word.text.clone()], line: word.line }),
            );
        } else if words[at].is_name() {
            let line = words[at].line;
            let mut parts = vec![words[at].text.clone()];
            while is(words, at + 1, "::") && words.get(at + 2).is_some_and(Word::is_name) {
                parts.push(words[at + 2].text.clone());
                at += 2;
            }
            if parts.len() > 1 {
                found.push(NamedPath { parts, line });
            }
        }
        at += 1;
    }
    found
}

/// Adds what one import, or one branch of it, names below `prefix`. Returns the place behind it.
fn import(words: &[Word], start: usize, prefix: &[String], found: &mut Vec<NamedPath>) -> usize {
    let mut parts = prefix.to_vec();
    let mut at = start;
    let line = words.get(start).map_or(0, |word| word.line);
    while at < words.len() {
        match words[at].text.as_str() {
            "{" => {
                let end = closing(words, at);
                at += 1;
                while at < end - 1 {
                    at = import(words, at, &parts, found);
                    at += usize::from(is(words, at, ","));
                }
                return end;
            }
            "," | ";" | "}" => break,
            // The new name says nothing about where it comes from.
            "as" => at += 1,
            "::" => {}
            name => parts.push(name.to_owned()),
        }
        at += 1;
    }
    found.push(NamedPath { parts, line });
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> Vec<String> {
        Source::new("src/a.rs", text).words().into_iter().map(|word| word.text).collect()
    }

    fn paths_of(text: &str) -> Vec<String> {
        paths(&Source::new("src/a.rs", text).words()).into_iter().map(|path| path.parts.join("::")).collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        for text in [
            "// hidden",
            "/* hidden /* hidden */ hidden */",
            r#""hidden \" hidden""#,
            r###"r#"hidden " hidden"#"###,
            r#"b"hidden""#,
            r#"c"hidden""#,
            "\"hidden\n hidden\"",
        ] {
            assert_eq!(code_of(&format!("a {text}\n b")), ["a", "b"], "{text}");
        }
        assert_eq!(code_of(r"a '\'' 'x' b'\\' b"), ["a", "b"]);
        assert_eq!(
            code_of("fn f<'a>(x: &'a str)"),
            ["fn", "f", "<", "'", "a", ">", "(", "x", ":", "&", "'", "a", "str", ")"]
        );
        assert_eq!(code_of("r#type"), ["r", "#", "type"]);
    }

    #[test]
    fn lines_are_kept() {
        let source = Source::new("src/a.rs", "/* a\n b */ one\n\"x\ny\" two // c\nthree");
        let lines: Vec<_> = source.words().into_iter().map(|word| (word.text, word.line)).collect();
        assert_eq!(lines, [("one".to_owned(), 2), ("two".to_owned(), 4), ("three".to_owned(), 5)]);
        assert_eq!(source.comments.lines().nth(3).map(str::trim), Some("// c"));
    }

    #[test]
    fn imports_are_spelt_out() {
        assert_eq!(
            paths_of("pub use a::{b, c::{d as x, self}, e::*}; use f as g;"),
            ["a::b", "a::c::d", "a::c::self", "a::e::*", "f"]
        );
        assert_eq!(paths_of("extern crate h; let x = i::j::<k::L>(::m::n);"), ["h", "i::j", "k::L", "m::n"]);
    }

    #[test]
    fn test_code_is_not_product_code() {
        let text = "one #[cfg(test)] #[allow(x)] mod tests { two { three } } four #[cfg(test)] use a::{b}; five \
                    #[cfg(not(test))] six";
        let words: Vec<_> =
            Source::new("src/a.rs", text).product_words().into_iter().map(|word| word.text).collect();
        let names: Vec<_> = words.iter().map(String::as_str).filter(|word| word.len() > 2).collect();
        assert_eq!(names, ["one", "four", "five", "cfg", "not", "test", "six"]);
        assert!(Source::new("bot/src/domain/link/tests.rs", text).product_words().is_empty());
    }

    #[test]
    fn rooms_and_depths_follow_the_path() {
        for (path, room, depth) in [
            ("engine/src/units.rs", Some(("engine", "units")), 1),
            ("engine/src/planner/mod.rs", Some(("engine", "planner")), 1),
            ("bot/src/queue/state.rs", Some(("bot", "queue")), 2),
            ("bot/src/lib.rs", Some(("bot", "lib")), 0),
            ("src/command/fit.rs", None, 2),
        ] {
            let source = Source::new(path, "");
            assert_eq!((source.room(), source.depth()), (room, depth), "{path}");
        }
    }
}
