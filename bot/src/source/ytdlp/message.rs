//! What yt-dlp means by an exit code and its messages.
//!
//! Order matters. "unavailable" stands in the text of a 503 as well as in that of a deleted post, so the status of an
//! HTTP answer is looked at first, then whole phrases. What yt-dlp takes for its own fault ends with a request to
//! report it; since X's whims look the same to it, that is looked at last.

use crate::domain::GoneReason;
use crate::source::failure::{SourceFailure, Weight, excerpt, tombstone};

/// What a run means that ended with this code, `None` by a signal, and printed this to standard error.
pub(super) fn classify(code: Option<i32>, stderr: &[u8]) -> SourceFailure {
    let text = String::from_utf8_lossy(stderr);
    match code {
        None => return SourceFailure::transient("it was ended by a signal"),
        Some(2) => {
            return SourceFailure::ours(format!("it does not know an option: {}", excerpt(last_line(&text))));
        }
        // It replaced itself by another version.
        Some(100) => return SourceFailure::transient("it updated itself"),
        Some(_) => {}
    }
    let errors: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("ERROR:")).collect();
    if let Some(failure) = errors.iter().find_map(|error| by_status(error)) {
        return failure;
    }
    if let Some(failure) = errors.iter().find_map(|error| by_phrase(message(error))) {
        return failure;
    }
    let Some(first) = errors.first() else {
        // It always says why; a traceback or silence is another program, or one that is broken.
        return SourceFailure::ours(format!("it failed: {}", excerpt(last_line(&text))));
    };
    if errors.iter().any(|error| error.contains("please report this issue")) {
        return SourceFailure::ours(format!("it met a fault of its own: {}", excerpt(first)));
    }
    SourceFailure::unclear(excerpt(first))
}

/// The last line that says something: of a traceback the one that names the exception.
fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("(it says nothing)")
}

/// The message of an error line, without the extractor and the id before it: ` [twitter] 20: message`.
fn message(error: &str) -> &str {
    let error = error.trim();
    let Some((_, rest)) = error.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else {
        return error;
    };
    match rest.split_once(": ") {
        Some((id, message)) if !id.contains(' ') => message.trim(),
        _ => rest.trim(),
    }
}

fn by_status(error: &str) -> Option<SourceFailure> {
    let (_, after) = error.split_once("HTTP Error ")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    Some(match digits.as_str() {
        // A post that is gone, or a path that X moved.
        "404" | "410" => SourceFailure::unclear(format!("it met HTTP status {digits}")),
        _ => SourceFailure::transient(format!("it met HTTP status {digits}")),
    })
}

fn by_phrase(message: &str) -> Option<SourceFailure> {
    if let Some(words) = after(message, "Twitter API says:") {
        return Some(match words {
            "" | "Unknown error" => SourceFailure::unclear("X says that there is an unknown error"),
            words => match tombstone(words, Weight::Authority) {
                SourceFailure::Unclear { .. } => gone(GoneReason::NotFound),
                said => said,
            },
        });
    }
    // X's own reason, handed on as the whole message.
    if message.trim_end_matches('.') == "Suspended" {
        return Some(gone(GoneReason::Suspended));
    }
    // "Video #3 is unavailable" is about a number that the post does not have.
    if message.starts_with("Video #") && says(message, "is unavailable") {
        return Some(Meaning::Unsupported.failure(message));
    }
    PHRASES.iter().find(|(phrase, _)| says(message, phrase)).map(|(_, meaning)| meaning.failure(message))
}

const fn gone(reason: GoneReason) -> SourceFailure {
    SourceFailure::Gone { reason, weight: Weight::Authority }
}

/// What stands behind `phrase`, when the message begins with it.
fn after<'a>(message: &'a str, phrase: &str) -> Option<&'a str> {
    message.strip_prefix(phrase).map(str::trim)
}

/// Whether the phrase stands in the message as whole words.
fn says(message: &str, phrase: &str) -> bool {
    message.match_indices(phrase).any(|(at, _)| {
        let before = message.get(..at).and_then(|text| text.chars().next_back());
        let behind = message.get(at.saturating_add(phrase.len())..).and_then(|text| text.chars().next());
        let apart = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
        apart(before) && apart(behind)
    })
}

#[derive(Clone, Copy)]
enum Meaning {
    Gone,
    /// The account is protected: nobody who is not its follower sees it.
    Protected,
    /// Only those who are logged in see it; another source may be.
    Login,
    Unsupported,
    Unclear,
    Transient,
}

impl Meaning {
    fn failure(self, message: &str) -> SourceFailure {
        let what = excerpt(message);
        match self {
            Self::Gone => gone(GoneReason::NotFound),
            Self::Protected => SourceFailure::NeedsLogin(Weight::Authority),
            Self::Login => SourceFailure::NeedsLogin(Weight::Witness),
            Self::Unsupported => SourceFailure::Unsupported { what },
            Self::Unclear => SourceFailure::unclear(what),
            Self::Transient => SourceFailure::transient(what),
        }
    }
}

/// What the phrases mean; the first that stands in a message counts. As of yt-dlp 2026.10.26.
const PHRASES: [(&str, Meaning); 32] = [
    // Trouble on the way, before anything that could be said about the post.
    ("Could not retrieve guest token", Meaning::Transient),
    ("Error(s) while querying API", Meaning::Transient),
    ("Rate-limit exceeded", Meaning::Transient),
    ("Syndication endpoint returned empty JSON response", Meaning::Transient),
    ("Dependency: Unspecified", Meaning::Transient),
    ("timed out", Meaning::Transient),
    ("Connection refused", Meaning::Transient),
    ("Connection reset", Meaning::Transient),
    ("Connection aborted", Meaning::Transient),
    ("Remote end closed connection", Meaning::Transient),
    ("Name or service not known", Meaning::Transient),
    ("Temporary failure in name resolution", Meaning::Transient),
    ("No address associated with hostname", Meaning::Transient),
    ("Network is unreachable", Meaning::Transient),
    ("Unable to download", Meaning::Transient),
    ("This live broadcast has not yet started", Meaning::Transient),
    ("Twitter Space not started yet", Meaning::Transient),
    ("ended but not downloadable yet", Meaning::Transient),
    // The post.
    ("NSFW tweet requires authentication", Meaning::Login),
    ("You are not authorized to view this protected tweet", Meaning::Protected),
    ("Requested tweet is unavailable", Meaning::Gone),
    ("Broadcast no longer exists", Meaning::Gone),
    ("Twitter Space not found", Meaning::Gone),
    ("Twitter Space ended and replay is disabled", Meaning::Unsupported),
    ("Unsupported URL", Meaning::Unsupported),
    ("DRM protected", Meaning::Unsupported),
    ("is not a video", Meaning::Unsupported),
    // It does not know photos, and it says the same of what it may not see.
    ("No video could be found in this tweet", Meaning::Unclear),
    ("No video formats found", Meaning::Unclear),
    ("Requested format is not available", Meaning::Unclear),
    // Without a video it follows the first link of the post, which it is not allowed to.
    ("No suitable extractor", Meaning::Unclear),
    ("not authorized", Meaning::Login),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(message: &str) -> String {
        format!("ERROR: [twitter] 20: {message}\n")
    }

    #[track_caller]
    fn check(messages: &[&str], wanted: &str) {
        for message in messages {
            assert_eq!(classify(Some(1), error(message).as_bytes()).code(), wanted, "{message}");
        }
    }

    #[test]
    fn messages_have_their_class() {
        check(
            &[
                "Requested tweet is unavailable",
                "Twitter API says: This Post was deleted by the Post author.",
                "Twitter API says: something new",
                "Suspended",
                "Broadcast no longer exists",
                "Twitter Space not found",
            ],
            "gone",
        );
        check(
            &[
                "NSFW tweet requires authentication. Use --cookies, --cookies-from-browser, see the manual",
                "You are not authorized to view this protected tweet. Use --cookies for the authentication",
                "Sorry, you are not authorized to see this status. Use --cookies",
                "Twitter API says: this account owner limits who can view their Posts",
            ],
            "needs-login",
        );
        check(&["Twitter API says: Age-restricted adult content. This content might not be"], "sensitive");
        check(
            &[
                "Unsupported URL: https://x.com/i/status/20",
                "This video is DRM protected",
                "Media #2 is not a video",
                "Video #3 is unavailable",
                "Twitter Space ended and replay is disabled",
            ],
            "unsupported",
        );
        check(
            &[
                "No video could be found in this tweet",
                "No video formats found!",
                "Requested format is not available. Use --list-formats for a list",
                "Unable to download JSON metadata: HTTP Error 404: Not Found (caused by <HTTPError 404: Not Found>)",
                "Twitter API says: Unknown error",
                "No suitable extractor (twitter) found for URL https://example.org",
                "something nobody has seen yet",
            ],
            "unclear",
        );
        check(
            &[
                "Could not retrieve guest token; please report this issue on  https://github.com/yt-dlp/yt-dlp/issues",
                "Error(s) while querying API: Dependency: Unspecified; please report this issue on somewhere",
                "Syndication endpoint returned empty JSON response; please report this issue on somewhere",
                "Unable to download JSON metadata: HTTP Error 429: Too Many Requests",
                "Unable to download JSON metadata: HTTP Error 503: Service Unavailable",
                "Unable to download JSON metadata: HTTP Error 500: Requested tweet is unavailable",
                "Unable to download webpage: The read operation timed out",
                "Unable to download webpage: [Errno -2] Name or service not known",
                "This live broadcast has not yet started",
                "Twitter Space not started yet",
                "Twitter Space ended but not downloadable yet",
            ],
            "transient",
        );
        check(
            &["An extractor error has occurred. (caused by KeyError('x')); please report this issue on"],
            "ours",
        );
    }

    #[test]
    fn exit_codes_come_before_messages() {
        let text = error("Suspended");
        let code = |code| classify(code, text.as_bytes()).code();
        assert_eq!(code(Some(2)), "ours");
        assert_eq!(code(Some(100)), "transient");
        assert_eq!(code(None), "transient");
        assert_eq!(code(Some(1)), "gone");
    }

    #[test]
    fn the_telling_line_counts_and_not_the_first() {
        let text = "WARNING: Rate-limit exceeded; falling back to syndication endpoint\n\
            ERROR: something\nERROR: [twitter] 20: Suspended\n";
        assert_eq!(classify(Some(1), text.as_bytes()), gone(GoneReason::Suspended));
        let text = format!("{}{}", error("Suspended"), error("HTTP Error 503: Service Unavailable"));
        assert_eq!(classify(Some(1), text.as_bytes()).code(), "transient");
    }

    #[test]
    fn a_part_of_a_phrase_is_not_the_phrase() {
        assert_eq!(classify(Some(1), error("Suspended animation").as_bytes()).code(), "unclear");
        assert!(!says("xDRM protected", "DRM protected"));
        assert!(!says("DRM protectedly", "DRM protected"));
        assert!(says("it is DRM protected.", "DRM protected"));
    }

    #[test]
    fn a_program_that_says_nothing_of_its_own_is_not_it() {
        let text = "Traceback (most recent call last):\n  File \"x\"\nModuleNotFoundError: No module named 'yt_dlp'\n";
        let SourceFailure::Ours { what } = classify(Some(1), text.as_bytes()) else { panic!("it is ours") };
        assert_eq!(what, "it failed: ModuleNotFoundError: No module named 'yt_dlp'");
        assert_eq!(classify(Some(127), b"").code(), "ours");
    }

    #[test]
    fn protected_posts_need_no_second_word() {
        let text = error("You are not authorized to view this protected tweet. Use --cookies");
        assert_eq!(classify(Some(1), text.as_bytes()), SourceFailure::NeedsLogin(Weight::Authority));
        let text = error("NSFW tweet requires authentication. Use --cookies");
        assert_eq!(classify(Some(1), text.as_bytes()), SourceFailure::NeedsLogin(Weight::Witness));
    }

    proptest! {
        #[test]
        fn no_message_panics(code: Option<i32>, text: String) {
            let _ = classify(code, text.as_bytes());
            let _ = classify(code, format!("ERROR: {text}").as_bytes());
        }
    }
}
