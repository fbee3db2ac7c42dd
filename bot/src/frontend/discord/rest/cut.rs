//! Makes a text short enough.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;

/// The text with at most `most` characters (Unicode scalar values, which is what Discord counts). What is cut ends
/// with an ellipsis, and is cut between what people see as characters: an emoji of several parts or a letter with its
/// marks stays whole or goes, unless it alone is too long.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(most) else { return Cow::Borrowed(text) };
    let Some(room) = most.checked_sub(1) else { return Cow::Borrowed("") };
    // What can be kept with the ellipsis, in bytes, wherever that ends.
    let limit = text.char_indices().nth(room).map_or(end, |(at, _)| at);
    let border = text
        .grapheme_indices(true)
        .map(|(at, _)| at)
        .take_while(|at| *at <= limit)
        .last()
        .filter(|at| *at > 0)
        .unwrap_or(limit);
    let kept = text.get(..border).unwrap_or_default();
    Cow::Owned(format!("{kept}…"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, most: usize, expected: &str) {
        assert_eq!(cut(text, most), expected, "{text:?} at {most}");
    }

    #[test]
    fn what_is_short_enough_stays_as_it_is() {
        check("", 0, "");
        check("abc", 3, "abc");
        check("กำลัง", 5, "กำลัง");
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        check("abcdef", 5, "abcd…");
        check("abcdef", 1, "…");
        check("abcdef", 0, "");
    }

    #[test]
    fn a_thai_letter_keeps_its_marks() {
        // ที่ is one letter with two marks, นี่ too.
        check("ที่นี่ดี", 5, "ที่…");
        check("ที่นี่ดี", 6, "ที่…");
        check("ที่นี่ดี", 7, "ที่นี่…");
    }

    #[test]
    fn an_emoji_of_several_parts_stays_whole_or_goes() {
        // Five scalar values: three people and two joiners.
        check("ab👨‍👩‍👧cd", 7, "ab…");
        check("ab👨‍👩‍👧cd", 8, "ab👨‍👩‍👧…");
        check("ab👍🏽cd", 4, "ab…");
        check("ab🇹🇭🇩🇪", 5, "ab🇹🇭…");
        check("e\u{301}e\u{301}e\u{301}", 4, "e\u{301}…");
    }

    #[test]
    fn a_letter_with_endless_marks_is_cut_all_the_same() {
        let text = format!("e{}", "\u{301}".repeat(9_000));
        assert_eq!(cut(&text, 2_000).chars().count(), 2_000);
    }

    proptest! {
        #[test]
        fn no_text_is_too_long_afterwards(text: String, most in 0_usize..40) {
            let short = cut(&text, most);
            prop_assert!(short.chars().count() <= most);
            if text.chars().count() <= most {
                prop_assert_eq!(&*short, &text);
            } else if let Some(kept) = short.strip_suffix('…') {
                prop_assert!(text.starts_with(kept));
            } else {
                prop_assert_eq!(&*short, "");
            }
        }
    }
}
