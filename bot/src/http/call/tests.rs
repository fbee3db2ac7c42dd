use std::sync::Arc;

use tempfile::NamedTempFile;

use super::*;
use crate::http::double::{Double, Say, reply};
use crate::http::{EgressRule, HttpSettings, Reach};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(150);
const MIB: u64 = 1 << 20;

fn http() -> Http {
    let rule = EgressRule { urls: Arc::new(|_| Ok(Reach::Anywhere)), addresses: Arc::new(|_| Ok(())) };
    Http::new(HttpSettings::new(rule)).unwrap()
}

async fn post(base: &Url, body: CallBody, timeout: Duration) -> Result<CallAnswer, CallError> {
    let request = CallRequest {
        verb: Verb::Post,
        url: base,
        user_agent: "Tester (https://tester.example, 1)",
        authorization: Authorization::new("Bot secret").unwrap(),
        timeout,
        cap: 100,
        body,
    };
    http().call(request).await
}

fn json() -> CallBody {
    CallBody::Json(Bytes::from_static(b"{\"a\":1}"))
}

fn form(content: FieldContent) -> CallBody {
    let text = Field {
        name: "payload_json".into(),
        file_name: None,
        media_type: "application/json".into(),
        content: FieldContent::Memory(Bytes::from_static(b"{}")),
    };
    let file = Field {
        name: "files[0]".into(),
        file_name: Some("a.mp4".into()),
        media_type: "video/mp4".into(),
        content,
    };
    CallBody::Form(vec![text, file])
}

/// A file of zeros that takes no room.
fn sparse(bytes: u64) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    file.as_file().set_len(bytes).unwrap();
    file
}

async fn content(file: &NamedTempFile, bytes: u64) -> FieldContent {
    FieldContent::File { file: File::open(file.path()).await.unwrap(), bytes }
}

#[tokio::test]
async fn a_request_is_sent_as_it_is_said() {
    let double = Double::start([reply(200, "{}").header("X-A", "b").into()]).await;
    let answer = post(&double.base(), json(), LONG).await.unwrap();
    assert_eq!((answer.status, &*answer.body.unwrap()), (200, &b"{}"[..]));
    assert_eq!((answer.headers.get("x-a"), answer.headers.get("x-b")), (Some("b"), None));

    let [taken] = &double.taken()[..] else { panic!() };
    assert_eq!((&*taken.line, &*taken.body), ("POST /", &b"{\"a\":1}"[..]));
    for (name, value) in [
        ("content-type", "application/json"),
        ("content-length", "7"),
        ("user-agent", "Tester (https://tester.example, 1)"),
        ("authorization", "Bot secret"),
        ("accept-encoding", "identity"),
        ("transfer-encoding", ""),
    ] {
        assert_eq!(taken.header(name), value, "{name}");
    }
}

#[tokio::test]
async fn a_form_has_a_length_and_its_parts_in_order() {
    let double = Double::start([reply(200, "{}").into()]).await;
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"film and more").unwrap();
    post(&double.base(), form(content(&file, 4).await), LONG).await.unwrap();

    let [taken] = &double.taken()[..] else { panic!() };
    let boundary = taken.header("content-type").strip_prefix("multipart/form-data; boundary=").unwrap();
    let expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"payload_json\"\r\n\
         Content-Type: application/json\r\n\r\n{{}}\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"files[0]\"; filename=\"a.mp4\"\r\n\
         Content-Type: video/mp4\r\n\r\nfilm\r\n--{boundary}--\r\n"
    );
    assert_eq!(String::from_utf8_lossy(&taken.body), expected);
    assert_eq!(taken.header("content-length"), expected.len().to_string());
}

#[test]
fn a_large_file_is_not_in_memory_while_it_is_sent() {
    const SIZE: u64 = 64 * MIB;
    let file = sparse(SIZE);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut came = 0;
    // Client and service run on this thread; what reads the file keeps one piece.
    let measured = allocation_counter::measure(|| {
        came = runtime.block_on(async {
            let double = Double::start([reply(200, "{}").into()]).await;
            let answer = post(&double.base(), form(content(&file, SIZE).await), LONG).await.unwrap();
            assert_eq!(answer.status, 200);
            double.taken()[0].bytes
        });
    });
    assert!((SIZE..SIZE + 1000).contains(&came), "{came}");
    // A mebibyte of it is what the double keeps, and as much again while that grows.
    assert!(measured.bytes_max < 4 * MIB, "{} bytes at once", measured.bytes_max);
    assert!(measured.bytes_total > SIZE, "the pieces are counted: {}", measured.bytes_total);
}

#[tokio::test]
async fn a_file_that_became_shorter_is_no_matter_of_the_network() {
    let double = Double::start([reply(200, "{}").into()]).await;
    let file = sparse(MIB);
    let error = post(&double.base(), form(content(&file, 2 * MIB).await), LONG).await.unwrap_err();
    let CallError::Source(cause) = error else { panic!("{error:?}") };
    assert_eq!(cause.kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn what_was_not_sent_is_told_from_what_may_have_been() {
    let free = Double::start([Say::Nothing]).await.base();
    let error = post(&free, json(), LONG).await.unwrap_err();
    assert!(matches!(error, CallError::Unsent(HttpError::Unreachable { .. })), "{error:?}");

    for say in [Say::Close(7), Say::Close(3), Say::Nothing] {
        let double = Double::start([say.clone()]).await;
        let timeout = if matches!(say, Say::Nothing) { SHORT } else { LONG };
        let error = post(&double.base(), json(), timeout).await.unwrap_err();
        assert!(matches!(error, CallError::Unanswered(_)), "{say:?}: {error:?}");
    }
}

#[tokio::test]
async fn an_answer_without_its_body_is_an_answer() {
    let long = "x".repeat(101);
    for say in [Say::Cut(reply(200, "{\"id\":\"1\"}")), Say::Answer(reply(200, long))] {
        let double = Double::start([say.clone()]).await;
        let answer = post(&double.base(), json(), LONG).await.unwrap();
        assert_eq!(answer.status, 200);
        let error = answer.body.unwrap_err();
        match say {
            Say::Cut(_) => assert!(matches!(error, HttpError::Cut { .. }), "{error:?}"),
            _ => assert!(matches!(error, HttpError::TooLarge { cap: 100, .. }), "{error:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_that_comes_before_all_is_sent_is_heard() {
    let file = sparse(32 * MIB);
    let double = Double::start([Say::Early(100_000, reply(413, "{}"))]).await;
    let answer = post(&double.base(), form(content(&file, 32 * MIB).await), LONG).await.unwrap();
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn a_redirect_does_not_get_the_credentials() {
    let other = Double::start([reply(200, "{}").into()]).await;
    for status in [301, 302, 303, 307, 308] {
        let double = Double::start([reply(status, "").header("Location", other.base()).into()]).await;
        assert_eq!(post(&double.base(), json(), LONG).await.unwrap().status, status);
    }
    assert_eq!(other.taken().len(), 0);
}

#[test]
fn credentials_are_not_shown() {
    let authorization = Authorization::new("Bot secret").unwrap();
    assert_eq!(format!("{authorization:?}"), "Authorization");
    assert!(Authorization::new("Bot sec\nret").is_none());
}
