use super::*;

fn headers(pairs: &[(&'static str, &str)]) -> AnswerHeaders {
    AnswerHeaders::of(pairs)
}

#[test]
fn a_limit_is_read_when_all_of_it_is_told() {
    let all = [
        ("x-ratelimit-bucket", "abcd"),
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-remaining", "4"),
        ("x-ratelimit-reset-after", "1.250"),
    ];
    let limit = Some(Told { most: 5, remaining: 4, reset_after: Duration::from_millis(1_250) });
    assert_eq!(
        Signals::read(200, &headers(&all)),
        Signals { bucket: Some("abcd".into()), limit, success: true }
    );
    for missing in 1..all.len() {
        let mut some = all.to_vec();
        some.remove(missing);
        assert_eq!(Signals::read(404, &headers(&some)).limit, None, "{some:?}");
    }
    for bad in ["", "-1", "NaN", "soon"] {
        let mut some = all;
        some[3].1 = bad;
        assert_eq!(Signals::read(200, &headers(&some)).limit, None, "{bad}");
    }
    let mut endless = all;
    endless[3].1 = "1e300";
    assert_eq!(Signals::read(200, &headers(&endless)).limit.unwrap().reset_after, LONGEST);
}

#[track_caller]
fn check(pairs: &[(&'static str, &str)], body: &str, scope: Scope, millis: u64) {
    let expected = (scope, Duration::from_millis(millis));
    assert_eq!(limited(&headers(pairs), body.as_bytes()), expected, "{pairs:?} {body}");
}

#[test]
fn a_429_says_whose_limit_it_is() {
    let body = r#"{"message": "x", "retry_after": 0.35, "global": false}"#;
    for (word, scope) in [("user", Scope::User), ("shared", Scope::Shared), ("global", Scope::Global)] {
        check(&[("x-ratelimit-scope", word), ("retry-after", "1")], body, scope, 350);
    }
    let global = r#"{"retry_after": 2, "global": true}"#;
    check(&[], global, Scope::Global, 2_000);
    check(&[("x-ratelimit-scope", "user")], global, Scope::Global, 2_000);
    check(&[("x-ratelimit-global", "true")], body, Scope::Global, 350);
    check(&[], body, Scope::User, 350);
    // Not Discord itself, but what stands before it.
    check(&[("retry-after", "600")], "<html>", Scope::Global, 600_000);
    check(&[], "", Scope::Global, 1_000);
}

#[test]
fn a_pause_that_makes_no_sense_is_another_one() {
    let scope = ("x-ratelimit-scope", "user");
    check(&[scope], r#"{"retry_after": 0}"#, Scope::User, 50);
    check(&[scope], r#"{"retry_after": -5}"#, Scope::User, 1_000);
    check(&[scope], r#"{"retry_after": 1e300}"#, Scope::User, 86_400_000);
    check(&[scope, ("retry-after", "7")], r#"{"retry_after": "x"}"#, Scope::User, 7_000);
    check(&[scope, ("x-ratelimit-reset-after", "0.5")], "", Scope::User, 500);
}
