use super::*;

#[track_caller]
fn check(status: u16, body: &str, expected: &Refused) {
    assert_eq!(&Fault::read(status, body.as_bytes()).refused(), expected, "{status} {body}");
}

fn coded(code: u32) -> String {
    format!("{{\"message\": \"words\", \"code\": {code}}}")
}

#[test]
fn every_code_has_its_class() {
    let words = || "words".to_owned();
    for (status, code) in [(413, 40_005), (400, 50_045), (400, 40_005)] {
        check(status, &coded(code), &Refused::TooLarge);
    }
    for code in [10_003, 40_058, 50_001, 50_008, 50_013, 50_083, 160_005, 160_006, 160_007, 400_001] {
        check(403, &coded(code), &Refused::NoAccess { code });
    }
    for code in [20_009, 50_006, 50_046, 200_000, 240_000] {
        check(400, &coded(code), &Refused::Content { code, words: words() });
    }
    check(400, &coded(50_035), &Refused::Form { message: words() });
    check(400, &coded(160_002), &Refused::NoHistory);
    check(404, &coded(10_008), &Refused::UnknownMessage);
    for code in [20_016, 20_028, 20_029, 40_062, 130_000] {
        check(400, &coded(code), &Refused::Later { what: words() });
    }
    check(403, &coded(40_333), &Refused::Blocked);
    check(401, &coded(0), &Refused::Unauthorized);
    check(401, &coded(40_001), &Refused::Unauthorized);
    check(401, &coded(50_027), &Refused::Other { status: 401, code: Some(50_027) });
    check(403, &coded(99_999), &Refused::Other { status: 403, code: Some(99_999) });
    check(404, &coded(0), &Refused::Other { status: 404, code: None });
}

#[test]
fn a_status_says_enough_when_the_body_does_not() {
    let later = |status| Refused::Later { what: format!("Discord answered with status {status}") };
    for body in ["", "<html>", "[1]", "7", "null", "{\"code\": \"x\"}", "{\"code\": -1}", "{\"code\": 1e99}"]
    {
        check(413, body, &Refused::TooLarge);
        check(401, body, &Refused::Unauthorized);
        check(403, body, &Refused::Other { status: 403, code: None });
        check(302, body, &Refused::Other { status: 302, code: None });
        check(429, body, &Refused::Limited { retry_after: SOON, scope: Scope::User });
        for status in [500, 502, 503, 520] {
            check(status, body, &later(status));
        }
        for status in [504, 524] {
            check(status, body, &Refused::Unanswered);
        }
    }
}

#[test]
fn what_is_wrong_with_a_form_is_named_with_its_place() {
    let body = r#"{"code": 50035, "message": "Invalid Form Body", "errors": {"attachments": {"0":
        {"description": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH", "message": "Must be 1024 or fewer."}]}}}}}"#;
    let message = "Invalid Form Body: attachments.0.description: BASE_TYPE_MAX_LENGTH".to_owned();
    check(400, body, &Refused::Form { message });
}

#[test]
fn no_words_of_a_service_are_long_or_of_several_lines() {
    let deep = format!("{}1{}", "{\"a\":".repeat(120), "}".repeat(120));
    let wide: Vec<String> =
        (0..5_000).map(|n| format!("\"{n}\": {{\"_errors\": [{{\"code\": \"X\"}}]}}")).collect();
    for errors in [deep, format!("{{{}}}", wide.join(","))] {
        let message = "a\\nb\\u001b[31m".repeat(1_000);
        let body = format!("{{\"code\": 50035, \"message\": \"{message}\", \"errors\": {errors}}}");
        let Refused::Form { message } = Fault::read(400, body.as_bytes()).refused() else { panic!() };
        assert_eq!(message.chars().count(), MOST_WORDS);
        assert!(message.starts_with("a b [31ma b [31m"), "{message}");
    }
}
