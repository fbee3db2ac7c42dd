use std::num::NonZeroU64;

use proptest::prelude::*;

use super::*;
use crate::domain::{
    ChannelId, Destination, Edits, Form, FrontEnd, GuildId, Link, MediaChoice, MessageId, Options, RequestId,
    Stage, Trim, UserId,
};
use crate::queue::book::Ended;
use crate::queue::{DeadReason, JobResult, LeaseToken};

fn number(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).unwrap()
}

fn at(millis: u64) -> WallTime {
    WallTime::from_millis(millis)
}

fn entry() -> Entry {
    let link: Link = "https://x.com/a/status/20/video/2".parse().unwrap();
    let request = Request {
        id: RequestId::new(FrontEnd::Discord, MessageId::new(number(9)), 1),
        requester: UserId::new(number(3)),
        link,
        destination: Destination {
            front_end: FrontEnd::Discord,
            guild: Some(GuildId::new(number(4))),
            channel: ChannelId::new(number(5)),
            reply_to: Some(MessageId::new(number(9))),
        },
        options: Options {
            choice: MediaChoice::photo("3"),
            edits: Edits {
                form: Form::Gif,
                trim: Trim::new(None, Some(std::time::Duration::from_secs(2))).unwrap(),
            },
            spoiler: true,
            ..Options::default()
        },
    };
    Entry {
        id: JobId(7),
        line: line(&request),
        watched: false,
        request: Arc::new(request),
        spared: 0,
        engaged: true,
        priority: Priority::Background,
        state: State::Leased { token: LeaseToken(12), until: at(2_000), alone: true },
        attempts: 2,
        suspicion: 1,
        generation: 3,
        enqueued_at: at(1_000),
        deadline: at(9_000),
        intent: Some(Intent {
            started_at: at(1_500),
            channel: ChannelId::new(number(5)),
            parts: 2,
            posted: vec![MessageId::new(number(11))],
        }),
        history: vec![Attempt {
            number: 1,
            at: at(1_200),
            stage: Some(Stage::Download),
            code: "transient".into(),
            chain: vec!["downloading".into(), "the host \"a\" is away".into()],
        }],
        answered: false,
    }
}

fn delivered() -> Ended {
    Ended {
        id: JobId(7),
        key: RequestId::new(FrontEnd::Discord, MessageId::new(number(9)), 1),
        result: JobResult::Delivered {
            front_end: FrontEnd::Console,
            channel: ChannelId::new(number(5)),
            messages: vec![MessageId::new(number(11)), MessageId::new(number(12))],
            at: at(0x0201),
        },
        at: at(0x0304),
        line: None,
    }
}

/// As it is stored since results have lines.
fn in_line() -> Ended {
    Ended { line: Some(0x0807_0605_0403_0201), ..delivered() }
}

fn answered() -> Ended {
    Ended { result: JobResult::Answered { code: "gone".into(), at: at(0x0201) }, ..delivered() }
}

// ---- what stands in files ----------------------------------------------------------------------------------

/// The body of a job as version 1 wrote it. If this must change, the version changes too, and this test stays.
const ENTRY_BODY: &str = concat!(
    r#"{"request":{"id":"discord-9-1","requester":"3","link":{"post":"x:20","choice":{"video":2},"spoiler":false},"#,
    r#""destination":{"front_end":"discord","guild":"4","channel":"5","reply_to":"9"},"#,
    r#""options":{"choice":{"photo":3},"edits":{"form":"gif","trim":{"start":0,"end":2000}},"spoiler":true}},"#,
    r#""priority":"background","state":{"state":"leased","token":12,"until":2000,"alone":true},"#,
    r#""attempts":2,"suspicion":1,"generation":3,"enqueued_at":1000,"deadline":9000,"#,
    r#""intent":{"started_at":1500,"channel":"5","parts":2,"posted":["11"]},"#,
    r#""history":[{"number":1,"at":1200,"stage":"download","code":"transient","#,
    r#""chain":["downloading","the host \"a\" is away"]}]}"#,
);

/// The version and the checksum before that body.
const ENTRY_HEAD: [u8; 5] = [1, 135, 243, 96, 141];

#[test]
fn a_job_of_version_one_is_as_stored() {
    let mut bytes = ENTRY_HEAD.to_vec();
    bytes.extend_from_slice(ENTRY_BODY.as_bytes());
    assert_eq!(encode_entry(&entry()), Ok(bytes.clone()));
    assert_eq!(decode_entry(JobId(7), &bytes), Ok(entry()));
}

#[test]
fn that_a_person_was_told_is_kept() {
    let told = Entry { answered: true, ..entry() };
    assert_eq!(decode_entry(JobId(7), &encode_entry(&told).unwrap()), Ok(told));
}

#[test]
fn a_job_with_what_version_one_always_wrote_is_read() {
    let body = concat!(
        r#"{"request":{"id":"console-9-0","requester":"3","link":{"post":"x:20","choice":null,"spoiler":false},"#,
        r#""destination":{"front_end":"console","guild":null,"channel":"5","reply_to":null},"options":{}},"#,
        r#""state":{"state":"dead","reason":"poison","at":5},"attempts":0,"enqueued_at":1,"deadline":2,"later":"?"}"#,
    );
    let read = decode_entry(JobId(1), &seal(&1_u64.to_le_bytes(), body.as_bytes())).unwrap();
    assert_eq!(read.state, State::Dead { reason: DeadReason::Poison, at: at(5) });
    assert_eq!((read.priority, read.suspicion, read.generation), (Priority::Interactive, 0, 0));
    assert_eq!((read.intent, read.history.len(), read.request.options), (None, 0, Options::default()));
}

#[test]
fn results_of_version_one_are_as_stored() {
    let key = [0, 0, 0, 0, 0, 0, 0, 0, 9, 1];
    assert_eq!(ended_key(delivered().key), key);
    let eight = |byte: u8| [byte, 0, 0, 0, 0, 0, 0, 0];
    let mut bytes = vec![1, 158, 42, 41, 94];
    bytes.extend_from_slice(&eight(7));
    bytes.extend_from_slice(&[4, 3, 0, 0, 0, 0, 0, 0, /* delivered */ 0, /* console */ 1]);
    bytes.extend_from_slice(&[1, 2, 0, 0, 0, 0, 0, 0]);
    [5, 11, 12].into_iter().for_each(|id| bytes.extend_from_slice(&eight(id)));
    assert_eq!(encode_ended(&delivered()), bytes);
    assert_eq!(decode_ended(&key, &bytes), Ok(delivered()));

    let mut bytes = vec![1, 40, 251, 16, 187];
    bytes.extend_from_slice(&eight(7));
    bytes.extend_from_slice(&[4, 3, 0, 0, 0, 0, 0, 0, /* answered */ 1, 1, 2, 0, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(b"gone");
    assert_eq!(encode_ended(&answered()), bytes);
    assert_eq!(decode_ended(&key, &bytes), Ok(answered()));
}

#[test]
fn deliveries_of_version_two_are_as_stored() {
    let key = ended_key(in_line().key);
    let mut bytes = vec![
        2, 165, 62, 40, 4, 7, /* 0x0304 */ 0x84, 0x06, /* console */ 1,
        /* 0x0304 ^ 0x0201 */ 0x85, 0x02,
    ];
    bytes.extend_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    [5, 11, 12].into_iter().for_each(|id: u8| bytes.extend_from_slice(&u64::from(id).to_le_bytes()));
    assert_eq!(encode_ended(&in_line()), bytes);
    assert_eq!(decode_ended(&key, &bytes), Ok(in_line()));
}

#[test]
fn what_the_engine_has_is_kept_and_older_jobs_may_be_there() {
    let waits = Entry { engaged: false, spared: 3, ..entry() };
    let bytes = encode_entry(&waits).unwrap();
    assert_eq!(decode_entry(JobId(7), &bytes), Ok(waits));
    assert!(decode_entry(JobId(7), &encode_entry(&entry()).unwrap()).unwrap().engaged);
}

#[test]
fn counters_of_version_one_are_as_stored() {
    let counters = Counters { next_job: 2, next_token: 3, clock: at(0x0201) };
    let mut bytes = vec![1, 229, 40, 159, 186, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend_from_slice(&[1, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encode_counters(&counters), bytes);
    assert_eq!(decode_counters(&bytes), Ok(counters));
}

// ---- what does not ----------------------------------------------------------------------------------------

#[test]
fn other_versions_are_reported() {
    let mut bytes = encode_entry(&entry()).unwrap();
    for version in [0, 2, 255] {
        bytes[0] = version;
        assert_eq!(decode_entry(JobId(7), &bytes), Err(RecordError::Version(version)));
    }
}

#[test]
fn every_flipped_bit_is_seen() {
    let key = ended_key(delivered().key);
    for bytes in [encode_ended(&delivered()), encode_ended(&in_line())] {
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(decode_ended(&key, &damaged).is_err(), "bit {bit} of byte {at}");
            }
        }
    }
}

#[test]
fn a_record_under_another_key_is_broken() {
    let bytes = encode_entry(&entry()).unwrap();
    assert_eq!(decode_entry(JobId(8), &bytes), Err(RecordError::Checksum));
    let other = ended_key(RequestId::new(FrontEnd::Discord, MessageId::new(number(10)), 1));
    assert_eq!(decode_ended(&other, &encode_ended(&delivered())), Err(RecordError::Checksum));
}

#[test]
fn what_is_whole_and_makes_no_sense_is_reported() {
    let key = ended_key(delivered().key);
    for body in
        [&[][..], &[0; 16], &[0; 17], &[2; 40], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]]
    {
        assert!(decode_ended(&key, &seal(&key, body)).is_err(), "{body:?}");
    }
    let done =
        ENTRY_BODY.replace(r#""state":"leased","token":12,"until":2000,"alone":true"#, r#""state":"done""#);
    let done = decode_entry(JobId(7), &seal(&7_u64.to_le_bytes(), done.as_bytes()));
    assert!(matches!(done, Err(RecordError::Form(_))));
    assert_eq!(decode_counters(&seal(COUNTERS_KEY, &[0; 23])), Err(RecordError::Short));
}

#[test]
fn a_record_cut_anywhere_is_reported() {
    let bytes = encode_entry(&entry()).unwrap();
    for length in 0..bytes.len() {
        assert!(decode_entry(JobId(7), &bytes[..length]).is_err(), "{length} bytes");
    }
}

proptest! {
    #[test]
    fn results_survive_their_bytes(
        id: u64, origin in 1_u64.., ordinal: u8, channel in 1_u64.., messages in prop::collection::vec(1_u64.., 0..10),
        code: String, times: (u64, u64), is_answer: bool, line: Option<u64>,
    ) {
        let key = RequestId::new(FrontEnd::Console, MessageId::new(number(origin)), ordinal);
        let result = if is_answer {
            JobResult::Answered { code, at: at(times.0) }
        } else {
            JobResult::Delivered {
                front_end: FrontEnd::Discord,
                channel: ChannelId::new(number(channel)),
                messages: messages.into_iter().map(|id| MessageId::new(number(id))).collect(),
                at: at(times.0),
            }
        };
        let line = line.filter(|_| !is_answer);
        let ended = Ended { id: JobId(id), key, result, at: at(times.1), line };
        prop_assert_eq!(decode_ended(&ended_key(key), &encode_ended(&ended)), Ok(ended));
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, key: [u8; ENDED_KEY_BYTES]) {
        let _ = decode_entry(JobId(1), &bytes);
        let _ = decode_ended(&key, &bytes);
        let _ = decode_ended(&key, &seal(&key, &bytes));
        let _ = decode_ended(&key, &seal_as(2, &key, &bytes));
        let _ = decode_counters(&bytes);
    }
}
