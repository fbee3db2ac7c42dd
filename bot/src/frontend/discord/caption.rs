//! The words of messages.

use std::fmt::Write;

use crate::dedup::Delivered;
use crate::domain::{ChannelId, Failure, GuildId, Request, Stage};
use crate::frontend::words;
use crate::pipeline::activity::Sight;
use crate::pipeline::delivery::Parcel;

/// The most characters of a post's text. A caption says what it is; who wants to read goes to the post.
const MOST_TEXT: usize = 280;

/// The most notes on files.
const MOST_NOTES: usize = 2;

/// What stands above the media: who wrote it, what, and where it is; a `bare` one has only what is wrong with them.
pub(super) fn caption(parcel: &Parcel, bare: bool) -> String {
    let mut text = if bare { String::new() } else { about(parcel) };
    notes(&mut text, parcel);
    text
}

fn about(parcel: &Parcel) -> String {
    let mut text = String::new();
    let name = shorten(parcel.author.name.trim(), 80);
    let handle = &parcel.author.handle;
    match (name.is_empty(), handle.is_empty()) {
        (false, false) => _ = write!(text, "**{}** (@{})", plain(&name), plain(handle)),
        (false, true) => _ = write!(text, "**{}**", plain(&name)),
        (true, false) => _ = write!(text, "@{}", plain(handle)),
        (true, true) => {}
    }
    let said = shorten(parcel.text.trim(), MOST_TEXT);
    if !said.is_empty() {
        // Hidden with the media: the words of a hidden post can say as much as its picture.
        let said = if parcel.spoiler { format!("||{}||", plain(&said)) } else { plain(&said) };
        line(&mut text, &said);
    }
    // In angle brackets no second preview grows from it.
    line(&mut text, &format!("<{}>", parcel.post.url()));
    text
}

fn notes(text: &mut String, parcel: &Parcel) {
    // Such as that it has no sound, or that its source was cut short; each once.
    let mut notes: Vec<&String> = parcel.files.iter().flat_map(|file| &file.made.facts.warnings).collect();
    notes.sort_unstable();
    notes.dedup();
    for note in notes.into_iter().take(MOST_NOTES) {
        line(text, &format!("-# Note: {}.", plain(&shorten(note, 120))));
    }
    if let [first, rest @ ..] = parcel.missing.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
        line(text, &format!("One of its media is missing{more}: {}.", words(first)));
    }
}

/// Where the bot posts in a server in which it does not post everywhere.
pub(super) fn elsewhere(channels: &[ChannelId]) -> String {
    let channels: Vec<String> =
        channels.iter().take(MOST_NAMED).map(|channel| format!("<#{channel}>")).collect();
    format!("Here I post in {} only.", channels.join(" "))
}

/// Channels that are named in one sentence.
const MOST_NAMED: usize = 10;

/// Where the same post stands already.
pub(super) fn pointer(guild: Option<GuildId>, delivered: &Delivered) -> String {
    match delivered.messages.first() {
        Some(message) => {
            let place = guild.map_or_else(|| "@me".to_owned(), |guild| guild.to_string());
            format!("Already here: https://discord.com/channels/{place}/{}/{message}", delivered.channel)
        }
        None => "That was posted here already, and removed since.".to_owned(),
    }
}

/// Why there are no media, and the name by which an operator finds the request.
pub(super) fn failed(request: &Request, failure: &Failure) -> String {
    format!("No media: {}.\n-# {}", words(failure), request.id)
}

/// What goes on, while it takes long: the stage, and how much is made. `ready` are the requests that wait for their turn.
pub(super) fn stage(sight: Option<&Sight>, ready: Option<u64>) -> String {
    let Some(sight) = sight else {
        return match ready {
            // Those who come first are not all of them: people take turns.
            Some(ready @ 2..) => format!("Waiting for its turn, with {} others …", ready.saturating_sub(1)),
            _ => "Waiting for its turn …".to_owned(),
        };
    };
    let words = stage_words(sight.stage());
    // In steps, so that the message is not edited without end.
    let percent = sight.percent().map(|percent| percent / STEP * STEP).filter(|percent| *percent > 0);
    match (sight.stage(), percent) {
        (Some(Stage::Download | Stage::Optimize), Some(percent)) => format!("{words}, {percent} % …"),
        _ => format!("{words} …"),
    }
}

/// Steps of what is shown of how much is made, in percent.
const STEP: u32 = 5;

fn stage_words(stage: Option<Stage>) -> &'static str {
    match stage {
        None => "Beginning",
        Some(Stage::Resolve) => "Looking the post up",
        Some(Stage::Download) => "Fetching its media and making them fit",
        Some(Stage::Optimize) => "Making it fit",
        Some(Stage::Upload) => "Uploading",
    }
}

/// What to write to a bot.
pub(super) const HOW: &str =
    "Mention me together with a link to a post on X, and I post its photos, videos and GIFs here.";
/// Said when the words of a message were not shown to the bot.
pub(super) const NOT_SHOWN: &str =
    "I cannot read that message. Mention me by name rather than by role, with the link in the same message.";
pub(super) const FULL: &str = "Too much is waiting already. Try again in some minutes.";
pub(super) const CLOSED: &str = "I am being restarted. Ask again in a minute.";

/// Too many requests in too short a time.
pub(super) fn limited(seconds: f64) -> String {
    let seconds = seconds.ceil().max(1.0);
    format!("Too many requests. The next one is taken in {seconds} s.")
}

/// Links beyond what one message may have.
pub(super) fn too_many(dropped: usize) -> String {
    let links = if dropped == 1 { "link" } else { "links" };
    format!("{dropped} more {links} are too many for one message.")
}

fn line(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// At most so many characters, cut behind a word where one ends near the end.
fn shorten(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let cut = text.get(..end).unwrap_or_default();
    let at = cut.rfind(char::is_whitespace).filter(|at| at.saturating_mul(4) >= end.saturating_mul(3));
    format!("{} …", cut.get(..at.unwrap_or(end)).unwrap_or_default().trim_end())
}

/// Text that is shown as it is: what Discord would take for its own signs has a backslash before it.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut begins_line = true;
    for c in text.chars() {
        let sign = matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '[' | ']' | '<' | '@');
        if sign || (begins_line && matches!(c, '>' | '#' | '-' | '+')) {
            plain.push('\\');
        }
        begins_line = c == '\n';
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Author, PostId};

    fn parcel(name: &str, text: &str, spoiler: bool) -> Parcel {
        let author = Author { name: name.to_owned(), handle: "ann".to_owned() };
        let post = PostId::x("20").unwrap();
        Parcel { post, author, text: text.to_owned(), spoiler, files: Vec::new(), missing: Vec::new() }
    }

    #[test]
    fn a_caption_says_who_what_and_where() {
        assert_eq!(
            caption(&parcel("Ann", "Look!", false), false),
            "**Ann** (@ann)\nLook!\n<https://x.com/i/status/20>"
        );
        assert_eq!(caption(&parcel("", "", false), false), "@ann\n<https://x.com/i/status/20>");
    }

    #[test]
    fn hidden_posts_have_hidden_words() {
        assert!(
            caption(&parcel("Ann", "the end || of it", true), false).contains("||the end \\|\\| of it||")
        );
    }

    #[test]
    fn who_waits_sees_how_far_it_is() {
        use crate::pipeline::activity::Activity;

        assert_eq!(stage(None, None), "Waiting for its turn …");
        assert_eq!(stage(None, Some(1)), "Waiting for its turn …");
        assert_eq!(stage(None, Some(8)), "Waiting for its turn, with 7 others …");
        let activity = Activity::default();
        let sight = activity.sight();
        activity.begin(Stage::Download);
        activity.parts(1);
        assert_eq!(stage(Some(&sight), Some(8)), "Fetching its media and making them fit …");
        activity.made(0.479);
        assert_eq!(stage(Some(&sight), None), "Fetching its media and making them fit, 45 % …");
        activity.begin(Stage::Upload);
        assert_eq!(stage(Some(&sight), None), "Uploading …");
    }

    #[test]
    fn strangers_format_and_mention_nothing() {
        let text =
            caption(&parcel("**A**", "# loud\n> @everyone <@1> [x](https://evil.example)", false), false);
        assert!(text.contains("\\# loud\n\\> \\@everyone \\<\\@1> \\[x\\](https://evil.example)"), "{text}");
        assert!(text.starts_with("**\\*\\*A\\*\\***"), "{text}");
    }

    #[test]
    fn long_texts_are_cut_behind_a_word() {
        let text = shorten(&"word ".repeat(100), 283);
        assert_eq!(text, format!("{} …", "word ".repeat(56).trim_end()));
        assert_eq!(shorten(&"ก".repeat(300), 280), format!("{} …", "ก".repeat(280)));
        assert_eq!(shorten("short", 280), "short");
    }

    #[test]
    fn something_missing_is_named_once() {
        let mut parcel = parcel("Ann", "", false);
        parcel.missing = vec![Failure::NoMedia, Failure::NoMedia];
        assert!(
            caption(&parcel, true)
                .ends_with("One of its media is missing (and 1 more): the post has no photo, video or GIF.")
        );
    }
}
