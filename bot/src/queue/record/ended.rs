//! The bytes of what is kept of a job that is done.
//!
//! The key is the front end (one byte), the message (eight bytes, big endian) and the link's place in it (one byte),
//! so that rows stand in the order of their messages. Numbers in the body are little endian, eight bytes long; some of
//! version 2 are short: seven bits to a byte, the lowest first, and the highest bit says that there are more.

use std::num::NonZeroU64;

use super::{RecordError, VERSION, open_as, seal, seal_as};
use crate::clock::WallTime;
use crate::domain::{ChannelId, FrontEnd, MessageId, RequestId};
use crate::queue::book::Ended;
use crate::queue::{JobId, JobResult};

/// The bytes of a key.
pub(crate) const ENDED_KEY_BYTES: usize = 10;

/// In a short number: it goes on.
const MORE: u8 = 0x80;

const DELIVERED: u8 = 0;
const ANSWERED: u8 = 1;

/// The version of deliveries that are stored with their line. Before it, and still for answers, there was version 1.
const IN_LINE: u8 = 2;

/// The key of a request's result.
pub(crate) fn ended_key(key: RequestId) -> [u8; ENDED_KEY_BYTES] {
    let [a, b, c, d, e, f, g, h] = key.origin().get().to_be_bytes();
    [front_end_code(key.front_end()), a, b, c, d, e, f, g, h, key.ordinal()]
}

/// The record of a job that is done.
pub(crate) fn encode_ended(ended: &Ended) -> Vec<u8> {
    let mut body = Vec::with_capacity(48);
    let key = ended_key(ended.key);
    match (&ended.result, ended.line) {
        (JobResult::Delivered { front_end, channel, messages, at }, Some(line)) => {
            put_short(&mut body, ended.id.0);
            put_short(&mut body, ended.at.as_millis());
            body.push(front_end_code(*front_end));
            // Two moments near each other have their high bits in common.
            put_short(&mut body, at.as_millis() ^ ended.at.as_millis());
            put(&mut body, line);
            put(&mut body, channel.get());
            messages.iter().for_each(|message| put(&mut body, message.get()));
            return seal_as(IN_LINE, &key, &body);
        }
        (JobResult::Delivered { front_end, channel, messages, at }, None) => {
            put(&mut body, ended.id.0);
            put(&mut body, ended.at.as_millis());
            body.extend_from_slice(&[DELIVERED, front_end_code(*front_end)]);
            put(&mut body, at.as_millis());
            put(&mut body, channel.get());
            messages.iter().for_each(|message| put(&mut body, message.get()));
        }
        (JobResult::Answered { code, at }, _) => {
            put(&mut body, ended.id.0);
            put(&mut body, ended.at.as_millis());
            body.push(ANSWERED);
            put(&mut body, at.as_millis());
            body.extend_from_slice(code.as_bytes());
        }
    }
    seal(&key, &body)
}

/// The result that stands in `bytes` under this key.
///
/// # Errors
/// When they are not what was written for it, or of another version. No bytes make it panic.
pub(crate) fn decode_ended(key: &[u8; ENDED_KEY_BYTES], bytes: &[u8]) -> Result<Ended, RecordError> {
    let (version, mut rest) = open_as(&[VERSION, IN_LINE], key, bytes)?;
    if version == IN_LINE {
        return in_line(key, rest);
    }
    let id = JobId(take(&mut rest)?);
    let at = WallTime::from_millis(take(&mut rest)?);
    let result = match take_byte(&mut rest)? {
        DELIVERED => {
            let front_end = front_end(take_byte(&mut rest)?)?;
            let delivered_at = WallTime::from_millis(take(&mut rest)?);
            let channel = ChannelId::new(take_id(&mut rest)?);
            JobResult::Delivered { front_end, channel, messages: messages(rest)?, at: delivered_at }
        }
        ANSWERED => {
            let answered_at = WallTime::from_millis(take(&mut rest)?);
            let code = std::str::from_utf8(rest).map_err(|error| RecordError::Form(error.to_string()))?;
            JobResult::Answered { code: code.to_owned(), at: answered_at }
        }
        kind => return Err(RecordError::Form(format!("a result of the unknown kind {kind}"))),
    };
    Ok(Ended { id, key: request_id(key)?, result, at, line: None })
}

/// The body of version 2: a delivery and its line.
fn in_line(key: &[u8; ENDED_KEY_BYTES], mut rest: &[u8]) -> Result<Ended, RecordError> {
    let id = JobId(take_short(&mut rest)?);
    let at = take_short(&mut rest)?;
    let front_end = front_end(take_byte(&mut rest)?)?;
    let delivered_at = WallTime::from_millis(take_short(&mut rest)? ^ at);
    let line = Some(take(&mut rest)?);
    let channel = ChannelId::new(take_id(&mut rest)?);
    let result = JobResult::Delivered { front_end, channel, messages: messages(rest)?, at: delivered_at };
    Ok(Ended { id, key: request_id(key)?, result, at: WallTime::from_millis(at), line })
}

/// All that is left.
fn messages(mut rest: &[u8]) -> Result<Vec<MessageId>, RecordError> {
    let mut messages = Vec::with_capacity(rest.len() / 8);
    while !rest.is_empty() {
        messages.push(MessageId::new(take_id(&mut rest)?));
    }
    Ok(messages)
}

fn request_id(key: &[u8; ENDED_KEY_BYTES]) -> Result<RequestId, RecordError> {
    let [code, a, b, c, d, e, f, g, h, ordinal] = *key;
    let origin = id(u64::from_be_bytes([a, b, c, d, e, f, g, h]))?;
    Ok(RequestId::new(front_end(code)?, MessageId::new(origin), ordinal))
}

/// The byte of a front end. It stands in files.
const fn front_end_code(front_end: FrontEnd) -> u8 {
    match front_end {
        FrontEnd::Discord => 0,
        FrontEnd::Console => 1,
    }
}

fn front_end(code: u8) -> Result<FrontEnd, RecordError> {
    match code {
        0 => Ok(FrontEnd::Discord),
        1 => Ok(FrontEnd::Console),
        other => Err(RecordError::Form(format!("the unknown front end {other}"))),
    }
}

fn put(body: &mut Vec<u8>, number: u64) {
    body.extend_from_slice(&number.to_le_bytes());
}

fn put_short(body: &mut Vec<u8>, mut number: u64) {
    while number >= u64::from(MORE) {
        body.push(number.to_le_bytes()[0] | MORE);
        number >>= 7;
    }
    body.push(number.to_le_bytes()[0]);
}

fn take_short(rest: &mut &[u8]) -> Result<u64, RecordError> {
    let mut number = 0_u64;
    for place in (0..64).step_by(7) {
        let byte = take_byte(rest)?;
        number |= u64::from(byte & !MORE) << place;
        if byte & MORE == 0 {
            return Ok(number);
        }
    }
    Err(RecordError::Form("a number that is too long".into()))
}

fn take(rest: &mut &[u8]) -> Result<u64, RecordError> {
    let (number, behind) = rest.split_first_chunk::<8>().ok_or(RecordError::Short)?;
    *rest = behind;
    Ok(u64::from_le_bytes(*number))
}

fn take_byte(rest: &mut &[u8]) -> Result<u8, RecordError> {
    let (&byte, behind) = rest.split_first().ok_or(RecordError::Short)?;
    *rest = behind;
    Ok(byte)
}

fn take_id(rest: &mut &[u8]) -> Result<NonZeroU64, RecordError> {
    id(take(rest)?)
}

fn id(number: u64) -> Result<NonZeroU64, RecordError> {
    NonZeroU64::new(number).ok_or_else(|| RecordError::Form("the id zero".into()))
}
