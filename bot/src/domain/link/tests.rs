//! Tests of the link finder.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// What is found, in short: `20`, `20/photo/1`, and `||20||` for a spoiler.
fn found(text: &str) -> Vec<String> {
    let show = |link: Link| {
        let post = link.post.number();
        let plain = match link.choice {
            None => post.to_string(),
            Some(MediaChoice::Photo(position)) => format!("{post}/photo/{position}"),
            Some(MediaChoice::Video(position)) => format!("{post}/video/{position}"),
        };
        if link.spoiler { format!("||{plain}||") } else { plain }
    };
    find_links(text).links.into_iter().map(show).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(found(text), expected, "{text:?}");
}

#[test]
fn every_form_names_the_post() {
    for text in [
        "https://x.com/ann/status/20",
        "http://x.com/ann/status/20",
        "HTTPS://X.COM/Ann/Status/20",
        "https://twitter.com/ann/status/20",
        "https://www.twitter.com/ann/status/20",
        "https://mobile.twitter.com/ann/status/20",
        "https://m.twitter.com/ann/status/20",
        "https://mobile.x.com/ann/status/20",
        "https://vxtwitter.com/ann/status/20",
        "https://fxtwitter.com/ann/status/20",
        "https://fixupx.com/ann/status/20",
        "https://fixvx.com/ann/status/20",
        "https://www.fixvx.com/ann/status/20",
        "https://twitter.com/ann/statuses/20",
        "https://x.com/i/status/20",
        "https://x.com/i/web/status/20",
        "https://x.com/I/Web/Status/20",
        "https://x.com/web/status/20",
        "https://x.com/a_long_name_123/status/20",
        "https://x.com/ann/status/20/",
        "https://x.com/ann/status/20?s=20&t=a-B_c%20d",
        "https://x.com/ann/status/20/?s=20",
        "https://x.com/ann/status/20#m",
        "https://x.com/ann/status/20/en",
        "https://x.com/ann/status/20/analytics?x=1",
        "https://x.com/ann/status/20/photo",
        "https://x.com/ann/status/20/photo/0",
        "https://x.com/ann/status/20/photo/999",
        "https://x.com/ann/status/20/photo/1x",
        "x.com/ann/status/20",
        "www.x.com/ann/status/20",
        "M.Twitter.com/ann/status/20",
    ] {
        check(text, &["20"]);
        assert_eq!(text.parse::<Link>().map(|link| link.post), Ok(PostId::x("20").unwrap()), "{text:?}");
    }
}

#[test]
fn a_choice_is_kept() {
    check("https://x.com/ann/status/20/photo/3", &["20/photo/3"]);
    check("https://x.com/ann/status/20/video/1", &["20/video/1"]);
    check("https://x.com/ann/status/20/Video/1/?s=20", &["20/video/1"]);
    check("https://x.com/i/web/status/20/photo/2#m", &["20/photo/2"]);
    check("(https://x.com/ann/status/20/photo/2).", &["20/photo/2"]);
}

#[test]
fn look_alikes_are_no_links() {
    for text in [
        "https://notx.com/ann/status/20",
        "notx.com/ann/status/20",
        "not-x.com/ann/status/20",
        "not.x.com/ann/status/20",
        "https://evil.x.com/ann/status/20",
        "https://www.www.x.com/ann/status/20",
        "https://x.com.evil.org/ann/status/20",
        "x.com.evil.org/ann/status/20",
        "https://x.com./ann/status/20",
        "https://x.com:443/ann/status/20",
        "https://x.community/ann/status/20",
        "https://user@x.com/ann/status/20",
        "https://user:pass@x.com/ann/status/20",
        "user@x.com/ann/status/20",
        "@x.com/ann/status/20",
        "https://x.com@evil.org/ann/status/20",
        "https://x.com\\@evil.org/ann/status/20",
        "https://evil.org/x.com/ann/status/20",
        "evil.org/x.com/ann/status/20",
        "https://evil.org/?u=https://x.com/ann/status/20",
        "https://evil.org/https://x.com/ann/status/20",
        "https://例え.jp/https://x.com/ann/status/20",
        "evil.org/?u=https://x.com/ann/status/20",
        "e\u{301}x.com/ann/status/20",
        "https://х.com/ann/status/20",
        "хx.com/ann/status/20",
        "https:x.com/ann/status/20",
        "//x.com/ann/status/20",
        "ftp://x.com/ann/status/20",
        "xhttps://x.com/ann/status/20",
    ] {
        check(text, &[]);
        assert_eq!(text.parse::<Link>(), Err(ParseLinkError), "{text:?}");
    }
}

#[test]
fn other_pages_are_no_links() {
    for text in [
        "",
        "https://x.com",
        "https://x.com/ann",
        "https://x.com/ann/status",
        "https://x.com/ann/status/",
        "https://x.com/ann/status/abc",
        "https://x.com/ann/status/20abc",
        "https://x.com/ann/status/abc20",
        "https://x.com/ann/status/020",
        "https://x.com/ann/status/0",
        "https://x.com/ann/status/-20",
        "https://x.com/ann/status/%320",
        "https://x.com/ann/status/99999999999999999999",
        "https://x.com/ann/status/999999999999999999999999",
        "https://x.com//status/20",
        "https://x.com/a/b/status/20",
        "https://x.com/ann/web/status/20",
        "https://x.com/i/spaces/20",
        "https://x.com/ann?status/20",
        "https://x.com/an-n/status/20",
        "https://x.com/ann /status/20",
    ] {
        check(text, &[]);
        assert_eq!(text.parse::<Link>(), Err(ParseLinkError), "{text:?}");
    }
}

#[test]
fn links_stand_in_running_text() {
    check("look: https://x.com/a/status/1, and https://x.com/b/status/2!", &["1", "2"]);
    check("(see https://x.com/a/status/1)", &["1"]);
    check("really? https://x.com/a/status/1?", &["1"]);
    check("it ends here https://x.com/a/status/1.", &["1"]);
    check("https://x.com/a/status/1,https://x.com/b/status/2", &["1", "2"]);
    check("https://x.com/a/status/1\nhttps://x.com/b/status/2", &["1", "2"]);
    check("**https://x.com/a/status/1** _https://x.com/b/status/2_ ~~x.com/c/status/3~~", &["1", "2", "3"]);
    check("\"x.com/a/status/1\" 'x.com/b/status/2' (x.com/c/status/3)", &["1", "2", "3"]);
    check("<@42>https://x.com/a/status/1", &["1"]);
    check("<@42> x.com/a/status/1", &["1"]);
    check("> x.com/a/status/1", &["1"]);
    check(
        "見てhttps://x.com/a/status/1見て https://x.com/b/status/2?s=20、https://x.com/c/status/3。",
        &["1", "2", "3"],
    );
    check("https://example.org https://x.com/a/status/1", &["1"]);
    check("a <3 b https://x.com/a/status/1", &["1"]);
}

#[test]
fn markdown_links_are_links() {
    check("[this](https://x.com/a/status/1)", &["1"]);
    check("[this](https://x.com/a/status/1?s=20)[that](https://x.com/b/status/2)", &["1", "2"]);
    check("[one](https://example.org/a)[two](https://x.com/b/status/2 \"title\")", &["2"]);
    check("[https://x.com/a/status/1](https://x.com/a/status/1)", &["1"]);
    check("[https://example.org](https://x.com/a/status/1)", &["1"]);
    check("[this](<https://x.com/a/status/1>)", &[]);
}

#[test]
fn links_in_angle_brackets_are_left_alone() {
    check("<https://x.com/a/status/1>", &[]);
    check("<x.com/a/status/1>", &[]);
    check("<https://x.com/a/status/1> https://x.com/b/status/2", &["2"]);
    check("<https://x.com/a/status/1", &["1"]);
    check("<https://x.com/a/status/1 >", &["1"]);
    check("<<https://x.com/a/status/1>", &[]);
    check("\\<https://x.com/a/status/1>", &["1"]);
}

#[test]
fn links_in_code_are_left_alone() {
    check("`https://x.com/a/status/1`", &[]);
    check("``https://x.com/a/status/1 ` ``", &[]);
    check("```\nhttps://x.com/a/status/1\n```", &[]);
    check("```rust\nlet a = `b`; // https://x.com/a/status/1\n``` https://x.com/b/status/2", &["2"]);
    check("`a` https://x.com/a/status/1 `b`", &["1"]);
    check("` https://x.com/a/status/1", &["1"]);
    check("`` https://x.com/a/status/1 `", &["1"]);
    check("``` https://x.com/a/status/1 ``", &["1"]);
    check("\\`https://x.com/a/status/1`", &["1"]);
    check("https://x.com/a/status/1`code`", &["1"]);
    check("`` ` https://x.com/a/status/1 ` ``", &[]);
}

#[test]
fn spoilers_are_remembered() {
    check("||https://x.com/a/status/1||", &["||1||"]);
    check("|| https://x.com/a/status/1?s=20 || https://x.com/b/status/2", &["||1||", "2"]);
    check("||x.com/a/status/1 and https://x.com/b/status/2/photo/1||", &["||1||", "||2/photo/1||"]);
    check("||a|| https://x.com/a/status/1 ||b||", &["1"]);
    check("||||https://x.com/a/status/1", &["1"]);
}

#[test]
fn a_spoiler_without_end_is_none() {
    check("||https://x.com/a/status/1", &["1"]);
    check("|| https://x.com/a/status/1 `||`", &["1"]);
    check("\\||https://x.com/a/status/1||", &["1"]);
    check("||a|| || https://x.com/a/status/1", &["1"]);
}

#[test]
fn one_hidden_mention_hides_the_link() {
    check("https://x.com/a/status/1 ||https://x.com/a/status/1||", &["||1||"]);
    check("||https://x.com/a/status/1|| https://x.com/a/status/1", &["||1||"]);
    check("||https://x.com/a/status/1|| ||https://x.com/a/status/1", &["||1||"]);
}

#[test]
fn duplicates_stand_once_where_they_came_first() {
    check(
        "https://x.com/a/status/2 https://x.com/a/status/1 https://vxtwitter.com/i/status/2?s=20 x.com/a/status/1/photo/1",
        &["2", "1", "1/photo/1"],
    );
}

#[test]
fn a_message_gives_ten_links_and_counts_the_rest() {
    let text: String = (1..=12).map(|number| format!("https://x.com/a/status/{number} ")).collect();
    let found = find_links(&format!("{text}{text}"));
    let numbers: Vec<u64> = found.links.iter().map(|link| link.post.number()).collect();
    assert_eq!(numbers, (1..=10).collect::<Vec<u64>>());
    assert_eq!(found.dropped, 4);
}

#[test]
fn a_text_with_more_than_a_link_is_no_link() {
    let plain = Link { post: PostId::x("20").unwrap(), choice: MediaChoice::video("2"), spoiler: false };
    assert_eq!(" https://x.com/a/status/20/video/2?s=20\n".parse(), Ok(plain));
    for text in
        ["https://x.com/a/status/20 hi", "see https://x.com/a/status/20", "<https://x.com/a/status/20>"]
    {
        assert_eq!(text.parse::<Link>(), Err(ParseLinkError), "{text:?}");
    }
}

/// With a search that starts over at each place, one of these would take hours.
#[test]
fn long_texts_take_linear_time() {
    for piece in [
        "`",
        "``` `` ` ",
        "`a``b```c",
        "<",
        "< <",
        "<a",
        "|",
        "||",
        "\\",
        "x.com/",
        "https://",
        "https://x.com/a",
        " x.com/a/status/1",
        "||x.com/a/status/1",
        "x.com/a/status/",
        "1",
        "(",
        "a ",
        "https://x.com/a/status/1 ",
        "/",
        "é",
    ] {
        let text = piece.repeat(400_000 / piece.len());
        assert!(find_links(&text).links.len() <= MAX_LINKS_PER_MESSAGE, "{piece:?}");
    }
}

/// Pieces of which links, and what only looks like them, are made.
fn messages() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "`",
            "``",
            "```",
            "<",
            ">",
            "|",
            "||",
            "\\",
            "https://",
            "HTTP://",
            "x.com",
            "www.",
            "mobile.",
            "twitter.com",
            "/",
            "/a/",
            "status/",
            "i/web/status/",
            "20",
            "9223372036854775807",
            "/photo/",
            "/video/1",
            "?s=20",
            "#",
            "@",
            ":",
            ".",
            ",",
            "(",
            ")",
            "[",
            "]",
            " ",
            "\n",
            "é",
            "見",
            "\u{301}",
            "\0",
            "https://x.com/a/status/",
            "x.com/b/status/1",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn forms() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec!["https://", "http://", "HttpS://", ""]);
    let prefix = prop::sample::select(vec!["", "www.", "mobile.", "m.", "WWW."]);
    let host = prop::sample::select(HOSTS.to_vec());
    let path =
        prop::sample::select(vec!["ann/status", "i/status", "i/web/status", "A_1/statuses", "i/statuses"]);
    (scheme, prefix, host, path)
        .prop_map(|(scheme, prefix, host, path)| format!("{scheme}{prefix}{host}/{path}/"))
}

proptest! {
    #[test]
    fn no_text_panics_and_limits_hold(text in messages()) {
        let found = find_links(&text);
        prop_assert!(found.links.len() <= MAX_LINKS_PER_MESSAGE);
        prop_assert!(found.dropped == 0 || found.links.len() == MAX_LINKS_PER_MESSAGE);
        let distinct: HashSet<_> = found.links.iter().map(|link| (link.post, link.choice)).collect();
        prop_assert_eq!(distinct.len(), found.links.len());
        let _ = text.parse::<Link>();
    }

    #[test]
    fn a_text_in_code_has_no_links(text in messages()) {
        let text = text.replace('`', "");
        prop_assert_eq!(find_links(&format!("```{text}```")), FoundLinks::default());
    }

    #[test]
    fn every_form_gives_the_same_post(
        form in forms(),
        number in 1_i64..=i64::MAX,
        tail in prop::sample::select(vec!["", "/", "?s=20", "/?s=46&t=x", "#a", ")", ".", "!", " and", "\n", "」", "**"]),
    ) {
        let post = PostId::x(&number.to_string()).unwrap();
        let expected = FoundLinks { links: vec![Link { post, choice: None, spoiler: false }], dropped: 0 };
        prop_assert_eq!(find_links(&format!("{form}{number}{tail}")), expected);
    }

    #[test]
    fn a_link_is_found_by_the_message_and_alone(form in forms(), number in 1_i64..=i64::MAX, position in 1_u8..) {
        let text = format!("{form}{number}/video/{position}");
        let found = find_links(&text).links;
        prop_assert_eq!(text.parse::<Link>().into_iter().collect::<Vec<_>>(), found);
    }

    #[test]
    fn order_is_kept_and_duplicates_stand_once(numbers in prop::collection::vec(1_u64..8, 0..30), forms in prop::collection::vec(forms(), 30)) {
        let text: Vec<String> = numbers.iter().zip(&forms).map(|(number, form)| format!("{form}{number}")).collect();
        let found: Vec<u64> = find_links(&text.join(" ")).links.iter().map(|link| link.post.number()).collect();
        let mut seen = HashSet::new();
        let expected: Vec<u64> = numbers.into_iter().filter(|number| seen.insert(*number)).collect();
        prop_assert_eq!(found, expected);
    }
}
