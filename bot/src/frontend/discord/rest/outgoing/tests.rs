use super::super::tests::in_memory;
use super::*;

#[track_caller]
fn check(message: &Outgoing, expected: &str) {
    assert_eq!(String::from_utf8_lossy(&payload(message).unwrap()), expected);
}

fn file(name: &str, alt: Option<&str>, spoiler: bool) -> OutgoingFile {
    OutgoingFile { name: name.into(), alt: alt.map(str::to_owned), spoiler, made: in_memory(b"film") }
}

#[test]
fn a_text_alone_mentions_nobody() {
    check(
        &Outgoing { content: "@everyone \"<@1>\"".into(), ..Outgoing::default() },
        r#"{"content":"@everyone \"<@1>\"","allowed_mentions":{"parse":[]}}"#,
    );
}

#[test]
fn an_answer_with_files_says_all_about_them() {
    let message = Outgoing {
        content: "two".into(),
        reply_to: Some("77".parse().unwrap()),
        nonce: Some("n1".into()),
        files: vec![file("a.mp4", Some("a cat"), false), file("b c.png", Some(""), true)],
        components: vec![serde_json::json!({"type": 1, "components": []})],
        suppress_embeds: true,
    };
    check(
        &message,
        concat!(
            r#"{"content":"two","allowed_mentions":{"parse":[]},"#,
            r#""message_reference":{"message_id":"77","fail_if_not_exists":false},"#,
            r#""nonce":"n1","enforce_nonce":true,"flags":4,"#,
            r#""attachments":[{"id":0,"filename":"a.mp4","description":"a cat","is_spoiler":false},"#,
            r#"{"id":1,"filename":"SPOILER_b_c.png","is_spoiler":true}],"#,
            r#""components":[{"components":[],"type":1}]}"#,
        ),
    );
}

#[test]
fn only_a_spoiler_has_the_name_of_one() {
    for (name, spoiler, sent) in [
        ("a.mp4", false, "a.mp4"),
        ("a.mp4", true, "SPOILER_a.mp4"),
        ("SPOILER_a.mp4", true, "SPOILER_a.mp4"),
        ("SPOILER_a.mp4", false, "_SPOILER_a.mp4"),
        ("a\"\r\n/ä.mp4", false, "a_____.mp4"),
    ] {
        assert_eq!(file(name, None, spoiler).sent_name(), sent);
    }
}

#[test]
fn long_texts_are_cut_between_letters() {
    // Three scalar values each: 666 fit into 1,999, and 341 into 1,023.
    let thai = "ที่".repeat(1_000);
    let message = Outgoing {
        content: thai.clone(),
        files: vec![file("a.mp4", Some(&thai), false)],
        ..Outgoing::default()
    };
    let json: serde_json::Value = serde_json::from_slice(&payload(&message).unwrap()).unwrap();
    assert_eq!(json["content"], format!("{}…", "ที่".repeat(666)));
    assert_eq!(json["attachments"][0]["description"], format!("{}…", "ที่".repeat(341)));
}
