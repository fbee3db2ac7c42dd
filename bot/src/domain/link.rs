//! Recognises links to posts in what people write.
//!
//! # What is a link
//!
//! - With a scheme, `http://` or `https://`, wherever it does not continue a word or another URL.
//! - Without a scheme, when the host stands where a word begins: at the start of a line, after a space, or after an
//!   opening bracket or quote. Discord does not make that clickable, but whoever writes it to a bot means it.
//! - The host is one of [`HOSTS`], alone or behind one of [`PREFIXES`], in any case. A user name, a port, a trailing
//!   dot or another subdomain makes it another host: look-alikes are built from these.
//! - The path is `/NAME/status/ID`, `/NAME/statuses/ID`, `/i/status/ID` or `/i/web/status/ID`. `/photo/N` or
//!   `/video/N` behind it is kept as a choice. Whatever else follows, tracking parameters above all, is dropped.
//!
//! # What is left alone
//!
//! Links in code spans, in code blocks and in `<…>`, which is how people say "just show it". Whatever is behind a
//! backslash is a plain character.

use std::num::NonZeroU8;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::domain::id::PostId;

/// A link to a post, as far as it matters.
///
/// Parses from a text that is one link and nothing else; use [`find_links`] for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Link {
    /// The post that it names.
    pub post: PostId,
    /// The one medium that it points at; `None` means the whole post.
    pub choice: Option<MediaChoice>,
    /// Whether it stood behind a spoiler, `||so||`.
    pub spoiler: bool,
}

impl FromStr for Link {
    type Err = ParseLinkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (post, choice, rest) = post_at(after_scheme(text).unwrap_or(text)).ok_or(ParseLinkError)?;
        // Spaces or a second link behind it: then it is a message, and one link would be a guess.
        if after_url(rest).is_empty() {
            Ok(Self { post, choice, spoiler: false })
        } else {
            Err(ParseLinkError)
        }
    }
}

/// A text that is no link to a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a link to a post; it should look like https://x.com/NAME/status/NUMBER")]
pub struct ParseLinkError;

/// One medium of a post, by its place among all of the post's media, from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaChoice {
    /// The link said `/photo/N`.
    Photo(NonZeroU8),
    /// The link said `/video/N`.
    Video(NonZeroU8),
}

impl MediaChoice {
    /// The photo at the place that `digits` name; `None` unless that is a number from 1 to 255.
    pub fn photo(digits: &str) -> Option<Self> {
        position(digits).map(Self::Photo)
    }

    /// The video at the place that `digits` name; `None` unless that is a number from 1 to 255.
    pub fn video(digits: &str) -> Option<Self> {
        position(digits).map(Self::Video)
    }
}

/// What [`find_links`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundLinks {
    /// The links in the order of their first mention, at most [`MAX_LINKS_PER_MESSAGE`]. Each pair of post and choice
    /// stands once, and is a spoiler if any of its mentions is.
    pub links: Vec<Link>,
    /// How many further mentions there was no room for.
    pub dropped: usize,
}

/// How many links of one message are taken, so that one line cannot order a hundred downloads. Ten is also what one
/// Discord message can carry in files.
pub const MAX_LINKS_PER_MESSAGE: usize = 10;

/// Finds the links to posts in a message. See the head of this file for what counts as one.
///
/// Takes linear time, and memory for the links only, whatever the text is.
pub fn find_links(text: &str) -> FoundLinks {
    let mut found = Collector::default();
    let mut rest = text;
    // What stands before `rest`; `None` at the start.
    let mut before = None;
    // Kinds of backtick runs that have no partner in `rest`; without this each of them would be looked for again.
    let mut unmatched = [false; 3];
    while let Some(here) = rest.chars().next() {
        let next = match here {
            '\\' => after_escape(rest),
            '`' => after_code(rest, &mut unmatched),
            '<' => after_angle(rest),
            '|' if rest.starts_with("||") => {
                found.toggle_spoiler();
                skip(rest, 2)
            }
            _ => after_word(rest, before, &mut found),
        };
        before = last_before(rest, next);
        rest = next;
    }
    found.finish()
}

/// Gathers links, and learns only later whether a `||` had its partner.
#[derive(Default)]
struct Collector {
    links: Vec<Gathered>,
    dropped: usize,
    inside: bool,
}

struct Gathered {
    link: Link,
    /// Whether it is mentioned behind the `||` that is open now.
    pending: bool,
}

impl Collector {
    fn toggle_spoiler(&mut self) {
        if self.inside {
            for gathered in &mut self.links {
                gathered.link.spoiler |= gathered.pending;
                gathered.pending = false;
            }
        }
        self.inside = !self.inside;
    }

    fn add(&mut self, post: PostId, choice: Option<MediaChoice>) {
        let same = |gathered: &&mut Gathered| gathered.link.post == post && gathered.link.choice == choice;
        if let Some(known) = self.links.iter_mut().find(same) {
            known.pending |= self.inside;
        } else if self.links.len() < MAX_LINKS_PER_MESSAGE {
            self.links.push(Gathered { link: Link { post, choice, spoiler: false }, pending: self.inside });
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    fn finish(self) -> FoundLinks {
        let links = self.links.into_iter().map(|gathered| gathered.link).collect();
        FoundLinks { links, dropped: self.dropped }
    }
}

/// The text behind a backslash and the one punctuation mark that it makes plain.
fn after_escape(text: &str) -> &str {
    let rest = skip(text, 1);
    rest.strip_prefix(|c: char| c.is_ascii_punctuation()).unwrap_or(rest)
}

/// The text behind the code that begins here, or behind its backticks alone when nothing closes it.
///
/// One and two backticks are closed by as many, three or more by three or more.
fn after_code<'a>(text: &'a str, unmatched: &mut [bool; 3]) -> &'a str {
    let kind = |run: usize| run.clamp(1, 3);
    let opening = backticks(text);
    let body = skip(text, opening);
    let Some(unmatched) = unmatched.get_mut(kind(opening).saturating_sub(1)).filter(|unmatched| !**unmatched)
    else {
        return body;
    };
    let mut rest = body;
    while let Some(at) = rest.find('`') {
        rest = skip(rest, at);
        let closing = backticks(rest);
        rest = skip(rest, closing);
        if kind(closing) == kind(opening) {
            return rest;
        }
    }
    *unmatched = true;
    body
}

/// The text behind `<…>`, or behind the `<` alone when a space, another `<` or the end comes before the `>`.
fn after_angle(text: &str) -> &str {
    let body = skip(text, 1);
    let end = body.find(|c: char| c == '>' || c == '<' || c.is_whitespace());
    end.and_then(|end| skip(body, end).strip_prefix('>')).unwrap_or(body)
}

/// Adds the link that begins here, if one does. Returns the text behind the URL or the one character that begins here.
fn after_word<'a>(text: &'a str, before: Option<char>, found: &mut Collector) -> &'a str {
    let scheme = if continues_url(before) { None } else { after_scheme(text) };
    let host = scheme.or_else(|| begins_word(before).then_some(text));
    if let Some((post, choice, rest)) = host.and_then(post_at) {
        found.add(post, choice);
        return after_url(rest);
    }
    // Another site's URL may carry one of ours inside; it still names the other site.
    scheme.map_or_else(|| after_char(text), after_foreign_url)
}

/// Whether a scheme behind this character would be the middle of a word or of a URL without scheme.
fn continues_url(before: Option<char>) -> bool {
    before.is_some_and(|c| c.is_ascii_alphanumeric() || "/=&?#%@".contains(c))
}

/// Whether a host behind this character stands on its own. A list of what may stand there, since the list of what
/// makes another host of it has no end.
fn begins_word(before: Option<char>) -> bool {
    before.is_none_or(|c| c.is_whitespace() || "([{\"'*~|,;>".contains(c))
}

/// The text behind `https://` or `http://`.
fn after_scheme(text: &str) -> Option<&str> {
    ["https://", "http://"].into_iter().find_map(|scheme| strip_word(text, scheme))
}

/// The post and choice that the text names, which begins with the host; and what stands behind them.
fn post_at(text: &str) -> Option<(PostId, Option<MediaChoice>, &str)> {
    let host = PREFIXES.into_iter().find_map(|prefix| strip_word(text, prefix)).unwrap_or(text);
    let path = HOSTS.into_iter().find_map(|name| strip_word(host, name)?.strip_prefix('/'))?;
    let (name, path) = segment(path)?;
    let (mut verb, mut path) = segment(path)?;
    if name.eq_ignore_ascii_case("i") && verb.eq_ignore_ascii_case("web") {
        (verb, path) = segment(path)?;
    }
    if !["status", "statuses"].into_iter().any(|known| verb.eq_ignore_ascii_case(known)) {
        return None;
    }
    let (digits, rest) = number(path)?;
    let post = PostId::x(digits).ok()?;
    let (choice, rest) = choice_at(rest).map_or((None, rest), |(choice, rest)| (Some(choice), rest));
    Some((post, choice, rest))
}

/// The choice that stands behind an id, and what stands behind it.
fn choice_at(text: &str) -> Option<(MediaChoice, &str)> {
    let (kind, rest) = segment(text.strip_prefix('/')?)?;
    let (digits, rest) = number(rest)?;
    let choice = match kind {
        _ if kind.eq_ignore_ascii_case("photo") => MediaChoice::photo(digits),
        _ if kind.eq_ignore_ascii_case("video") => MediaChoice::video(digits),
        _ => None,
    };
    Some((choice?, rest))
}

/// The name that stands before the next slash, and what stands behind that.
fn segment(text: &str) -> Option<(&str, &str)> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = text.bytes().take(LONGEST_NAME).take_while(is_name).count();
    let (name, rest) = text.split_at_checked(length)?;
    if name.is_empty() { None } else { Some((name, rest.strip_prefix('/')?)) }
}

/// The digits at the start and what stands behind them, unless they are a part of something longer.
fn number(text: &str) -> Option<(&str, &str)> {
    let length = text.bytes().take(MOST_DIGITS).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(length)?;
    let goes_on = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '%');
    if goes_on { None } else { Some((digits, rest)) }
}

/// The place that `digits` name, in their one canonical form.
fn position(digits: &str) -> Option<NonZeroU8> {
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    if canonical { digits.parse().ok() } else { None }
}

/// The text behind the rest of a link's path, its query and its fragment.
///
/// Only ASCII counts as a part of them: text without spaces, as in Japanese, often goes on right behind a link.
fn after_url(text: &str) -> &str {
    if text.starts_with(['/', '?', '#']) {
        text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "-._~%=&+/?#:@!$*;'".contains(c))
    } else {
        text
    }
}

/// The text behind another site's URL, whose scheme is behind us already.
fn after_foreign_url(text: &str) -> &str {
    text.trim_start_matches(|c: char| !c.is_whitespace() && !"<>\"|`)],".contains(c))
}

/// The text behind `word`, whose letters may be in any case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

/// How many backticks the text begins with.
fn backticks(text: &str) -> usize {
    text.bytes().take_while(|byte| *byte == b'`').count()
}

/// The text behind its first character.
fn after_char(text: &str) -> &str {
    let mut chars = text.chars();
    chars.next();
    chars.as_str()
}

/// The text behind its first `bytes` bytes; nothing when there are fewer.
fn skip(text: &str, bytes: usize) -> &str {
    text.get(bytes..).unwrap_or_default()
}

/// The last character of `text` that is not in `rest`, which is the end of it.
fn last_before(text: &str, rest: &str) -> Option<char> {
    let consumed = text.len().saturating_sub(rest.len());
    text.get(..consumed)?.chars().next_back()
}

/// X itself, its old name, and the mirrors that people paste for better previews.
const HOSTS: [&str; 6] =
    ["x.com", "twitter.com", "vxtwitter.com", "fxtwitter.com", "fixupx.com", "fixvx.com"];

/// What may stand before the host.
const PREFIXES: [&str; 3] = ["www.", "mobile.", "m."];

/// More than a user name is long; the name does not matter for the post, but the search for its end must be short.
const LONGEST_NAME: usize = 32;

/// More than an id has, so that a number that is too long is seen as such.
const MOST_DIGITS: usize = 20;

#[cfg(test)]
mod tests;
