//! Messages over real sockets to a double of Discord.

use std::num::{NonZeroU8, NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use url::Url;

use super::*;
use crate::clock::WallTime;
use crate::domain::{ArtifactKey, Edits, LimitClass, MediumIndex, PostId, ProfileVersion};
use crate::http::double::{Double, Reply, Say, reply};
use crate::http::{EgressRule, HttpSettings};
use crate::pipeline::optimize::{Content, Facts, Made, Times};
use crate::store::{Artifact, ArtifactSettings, Artifacts};

const LONG: Duration = Duration::from_secs(20);
/// For a service that says nothing, and long enough for one that is merely slow.
const SHORT: Duration = Duration::from_secs(1);

pub(super) fn settings(base: &Url, timeout: Duration) -> RestSettings {
    RestSettings {
        base: base.clone(),
        token: Secret::new("secret".to_owned()),
        clock: Clock::manual(WallTime::from_millis(1_000)),
        timeout,
    }
}

/// The rules of the client that it is given let nothing through: its own count.
pub(super) fn rest(settings: RestSettings) -> Rest {
    let rule = EgressRule {
        urls: Arc::new(|_| Err("nothing may be asked".into())),
        addresses: Arc::new(|_| Err("nothing may be asked".into())),
    };
    Rest::new(Http::new(HttpSettings::new(rule)).unwrap(), settings)
}

fn made(content: Content) -> Arc<Made> {
    let facts = Facts {
        action: "pass".into(),
        extension: "mp4".into(),
        media_type: "video/mp4".into(),
        bytes: 0,
        source_bytes: 0,
        width: 0,
        height: 0,
        duration: 0.0,
        warnings: Vec::new(),
    };
    Arc::new(Made { content, facts, times: Times::default() })
}

pub(super) fn in_memory(bytes: &'static [u8]) -> Arc<Made> {
    made(Content::Memory(Bytes::from_static(bytes)))
}

fn file(made: Arc<Made>) -> OutgoingFile {
    OutgoingFile { name: "a.mp4".into(), alt: None, spoiler: false, made }
}

fn text() -> Outgoing {
    Outgoing { content: "hello".into(), ..Outgoing::default() }
}

/// The same with a nonce, so that it may be sent again.
fn safe() -> Outgoing {
    Outgoing { nonce: Some("n".into()), ..text() }
}

fn channel() -> ChannelId {
    "42".parse().unwrap()
}

fn ok() -> Reply {
    reply(200, r#"{"id": "7", "channel_id": "42", "type": 0, "author": {"id": "1"}}"#)
}

fn posted() -> Posted {
    Posted { id: "7".parse().unwrap(), channel: channel(), files: 0 }
}

fn limited(scope: &str, seconds: f64) -> Reply {
    let global = scope == "global";
    reply(429, format!("{{\"message\": \"x\", \"retry_after\": {seconds}, \"global\": {global}}}"))
        .header("X-RateLimit-Scope", scope)
        .header("Retry-After", "1")
}

/// What becomes of a message when the service says this, how often it was asked, and what it cost of the budget.
async fn send(
    script: impl IntoIterator<Item = Say>,
    message: &Outgoing,
) -> (Result<Posted, Refused>, usize, u32) {
    let script: Vec<Say> = script.into_iter().collect();
    let silent = script.iter().any(|say| matches!(say, Say::Nothing));
    let double = Double::start(script).await;
    let rest = rest(settings(&double.base(), if silent { SHORT } else { LONG }));
    let result = rest.create(channel(), message).await;
    (result, double.taken().len(), rest.0.budget.refused())
}

#[tokio::test]
async fn a_message_is_sent_to_its_channel() {
    let double = Double::start([ok().into()]).await;
    let rest = rest(settings(&double.base(), LONG));
    assert_eq!(rest.create(channel(), &text()).await, Ok(posted()));
    let [taken] = &double.taken()[..] else { panic!() };
    assert_eq!(taken.line, "POST /api/v10/channels/42/messages");
    assert_eq!(taken.header("authorization"), "Bot secret");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(taken.header("user-agent"), format!("DiscordBot (https://azalea.invalid, {version}) azalea"));
    assert_eq!(taken.header("content-type"), "application/json");
    assert_eq!(taken.body, br#"{"content":"hello","allowed_mentions":{"parse":[]}}"#);
}

async fn artifact(folder: &std::path::Path, content: &'static [u8]) -> Artifact {
    let settings = ArtifactSettings { dir: Some(folder.to_owned()), ..ArtifactSettings::default() };
    let artifacts = Artifacts::open(settings, Clock::system());
    let key = ArtifactKey {
        post: PostId::x("20").unwrap(),
        medium: MediumIndex::new(NonZeroU8::MIN),
        edits: Edits::default(),
        limit: LimitClass::new(NonZeroU64::MIN),
        profile: ProfileVersion::new(NonZeroU32::MIN),
    };
    artifacts.put(&key, Bytes::from_static(content), Vec::new()).await.unwrap()
}

#[tokio::test]
async fn files_are_sent_from_memory_and_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = made(Content::Disk(artifact(folder.path(), b"from disk").await));
    let message = Outgoing {
        files: vec![
            OutgoingFile { spoiler: true, ..file(in_memory(b"from memory")) },
            OutgoingFile { name: "b.mp4".into(), ..file(on_disk) },
        ],
        ..text()
    };
    let double = Double::start([ok().into()]).await;
    let rest = rest(settings(&double.base(), LONG));
    assert_eq!(rest.create(channel(), &message).await, Ok(posted()));
    let [taken] = &double.taken()[..] else { panic!() };
    let boundary = taken.header("content-type").strip_prefix("multipart/form-data; boundary=").unwrap();
    let body = String::from_utf8_lossy(&taken.body).replace(boundary, "B");
    let json = concat!(
        r#"{"content":"hello","allowed_mentions":{"parse":[]},"attachments":["#,
        r#"{"id":0,"filename":"SPOILER_a.mp4","is_spoiler":true},"#,
        r#"{"id":1,"filename":"b.mp4","is_spoiler":false}]}"#,
    );
    let part = |name: &str, kind: &str, content: &str| {
        format!(
            "--B\r\nContent-Disposition: form-data; name={name}\r\nContent-Type: {kind}\r\n\r\n{content}\r\n"
        )
    };
    let expected = part("\"payload_json\"", "application/json", json)
        + &part("\"files[0]\"; filename=\"SPOILER_a.mp4\"", "video/mp4", "from memory")
        + &part("\"files[1]\"; filename=\"b.mp4\"", "video/mp4", "from disk")
        + "--B--\r\n";
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_file_that_is_not_what_it_was_is_our_fault_and_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let artifact = artifact(folder.path(), b"from disk").await;
    let message = Outgoing { files: vec![file(made(Content::Disk(artifact.clone())))], ..safe() };
    std::fs::write(&artifact.path, b"shorter").unwrap();
    let (result, asked, _) = send([ok().into()], &message).await;
    let what = "a finished file has 7 bytes instead of 9".to_owned();
    assert_eq!((result, asked), (Err(Refused::Ours { what }), 0));

    std::fs::remove_file(&artifact.path).unwrap();
    let (result, asked, _) = send([ok().into()], &message).await;
    let Err(Refused::Ours { what }) = result else { panic!("{result:?}") };
    assert!(what.starts_with("a finished file cannot be read: "), "{what}");
    assert_eq!(asked, 0);
}

#[tokio::test]
async fn with_a_nonce_what_may_pass_is_tried_three_times() {
    let later = |status| Refused::Later { what: format!("Discord answered with status {status}") };
    let error = |status: u16| Say::from(reply(status, ""));
    assert_eq!(send([error(502), error(500), ok().into()], &safe()).await, (Ok(posted()), 3, 0));
    assert_eq!(send([error(500), error(502), error(503)], &safe()).await, (Err(later(503)), 3, 0));
    assert_eq!(send([error(500)], &text()).await, (Err(later(500)), 1, 0));
    for lost in [Say::Close(5), Say::Nothing, Say::Cut(ok()), reply(200, "{}").into(), error(504)] {
        let script = [lost.clone(), ok().into()];
        assert_eq!(send(script.clone(), &safe()).await, (Ok(posted()), 2, 0), "{lost:?}");
        assert_eq!(send(script, &text()).await, (Err(Refused::Unanswered), 1, 0), "{lost:?}");
    }
}

#[tokio::test]
async fn what_may_have_been_taken_once_stays_in_doubt() {
    let error = |status: u16| Say::from(reply(status, ""));
    let script = [Say::Close(5), error(500), error(500)];
    assert_eq!(send(script, &safe()).await, (Err(Refused::Unanswered), 3, 0));
    // A word about this very message is better than a doubt.
    let removed = reply(404, "{\"code\": 10008}");
    let script = [Say::Close(5), removed.into()];
    assert_eq!(send(script, &safe()).await, (Err(Refused::UnknownMessage), 2, 0));
}

/// A try may run into a time-out of minutes, and two more after it would be beyond what the nonce is kept for.
#[test]
fn a_nonce_is_relied_on_for_a_minute() {
    let seconds = Duration::from_secs;
    assert_eq!(nonce_left(seconds(0), seconds(1)), Some(seconds(59)));
    assert_eq!(nonce_left(seconds(59), seconds(1)), Some(Duration::ZERO));
    assert_eq!(nonce_left(seconds(59), seconds(2)), None);
    assert_eq!(nonce_left(seconds(300), Duration::ZERO), None);
    assert_eq!(nonce_left(Duration::MAX, seconds(1)), None);
}

#[tokio::test]
async fn a_definite_no_is_not_asked_again() {
    for (status, code, refused, cost) in [
        (413, 40_005, Refused::TooLarge, 0),
        (403, 50_013, Refused::NoAccess { code: 50_013 }, 1),
        (400, 160_002, Refused::NoHistory, 0),
        (403, 40_333, Refused::Blocked, 1),
        (418, 1, Refused::Other { status: 418, code: Some(1) }, 0),
    ] {
        let answer = reply(status, format!("{{\"code\": {code}, \"message\": \"words\"}}"));
        assert_eq!(send([answer.into()], &safe()).await, (Err(refused), 1, cost));
    }
}

#[tokio::test]
async fn a_short_limit_is_waited_out() {
    for (scope, cost) in [("user", 1), ("global", 1), ("shared", 0)] {
        let begun = clock::instant();
        let script = [limited(scope, 0.3).into(), ok().into()];
        assert_eq!(send(script, &text()).await, (Ok(posted()), 2, cost), "{scope}");
        assert!(begun.elapsed() >= Duration::from_millis(300), "{scope}: {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn a_long_limit_is_told_and_kept() {
    let double = Double::start([limited("user", 1000.5).into(), ok().into()]).await;
    let rest = rest(settings(&double.base(), LONG));
    let retry_after = Duration::from_millis(1_000_500);
    let refused = rest.create(channel(), &safe()).await;
    assert_eq!(refused, Err(Refused::Limited { retry_after, scope: Scope::User }));
    // The second is not sent at all; another channel is none of that.
    let Err(Refused::Limited { retry_after, .. }) = rest.create(channel(), &safe()).await else { panic!() };
    assert!((990..=1000).contains(&retry_after.as_secs()), "{retry_after:?}");
    assert_eq!(double.taken().len(), 1);
    assert_eq!(rest.create("43".parse().unwrap(), &safe()).await, Ok(posted()));
}

#[tokio::test]
async fn a_limit_without_end_is_given_up() {
    let (result, asked, cost) = send([limited("user", 0.0).into()], &text()).await;
    assert!(matches!(result, Err(Refused::Limited { .. })), "{result:?}");
    assert_eq!((asked, cost), (6, 6));
}

#[tokio::test]
async fn what_the_limit_leaves_is_known_before_it_is_met() {
    let told = |remaining: u32| {
        ok().header("X-RateLimit-Bucket", "b")
            .header("X-RateLimit-Limit", "2")
            .header("X-RateLimit-Remaining", remaining.to_string())
            .header("X-RateLimit-Reset-After", "0.4")
    };
    let double = Double::start([told(1), told(0), told(1)].map(Say::from)).await;
    let rest = rest(settings(&double.base(), LONG));
    let begun = clock::instant();
    let message = text();
    let sends = [(); 3].map(|()| rest.create(channel(), &message));
    assert_eq!(futures_util::future::join_all(sends).await, [Ok(posted()), Ok(posted()), Ok(posted())]);
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
    assert_eq!((double.taken().len(), rest.0.budget.refused()), (3, 0));
}

#[tokio::test]
async fn a_token_that_is_refused_is_not_sent_again() {
    let double =
        Double::start([reply(401, "{\"message\": \"401: Unauthorized\", \"code\": 0}").into()]).await;
    let rest = rest(settings(&double.base(), LONG));
    for _ in 0..3 {
        assert_eq!(rest.create(channel(), &safe()).await, Err(Refused::Unauthorized));
    }
    assert_eq!((double.taken().len(), rest.0.budget.refused()), (1, 1));
    assert_eq!(rest.admitted(&mut Patience::new()).await, Err(Refused::Unauthorized));
}

#[tokio::test]
async fn a_used_up_budget_lets_nothing_out() {
    let double = Double::start([ok().into()]).await;
    let rest = rest(settings(&double.base(), LONG));
    for _ in 0..5_000 {
        rest.0.budget.count();
    }
    let Err(Refused::Paused { until }) = rest.create(channel(), &safe()).await else { panic!() };
    assert!((590_000..=602_000).contains(&until.as_millis()), "{until:?}");
    assert!(matches!(rest.admitted(&mut Patience::new()).await, Err(Refused::Paused { .. })));
    assert_eq!(double.taken().len(), 0);
}

#[tokio::test]
async fn the_token_is_sent_to_a_safe_base_only_and_never_shown() {
    let base = Url::parse("http://discord.example").unwrap();
    let rest = rest(settings(&base, LONG));
    let refused = rest.create(channel(), &safe()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "discord.example must not be asked: \
         discord.example must be asked by https: plain http is for this machine only"
    );
    let settings = settings(&base, LONG);
    for shown in [format!("{rest:?}"), format!("{settings:?}"), format!("{refused:?}")] {
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[tokio::test]
async fn a_base_that_is_not_there_is_tried_again_later() {
    let double = Double::start([ok().into()]).await;
    let rest = rest(settings(&double.base(), LONG));
    let host = double.base().host_str().unwrap().to_owned();
    drop(double);
    let Err(Refused::Later { what }) = rest.create(channel(), &text()).await else { panic!() };
    assert!(what.starts_with(&host) && what.ends_with(" cannot be reached"), "{what}");
}
