//! The bytes of what a queue keeps on disk.
//!
//! Each record is one byte of version, four bytes of CRC-32 (little endian) over the row's key, the version and the
//! body, then the body. A body that is right under another key is as broken as one with a flipped bit.
//!
//! Jobs have a body of JSON: there are few of them and they grow new fields. Results are many and small, so theirs is
//! binary: 8,192 of them have to fit into a file of less than 1 MiB.

mod ended;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use self::ended::{ENDED_KEY_BYTES, decode_ended, encode_ended, ended_key};
use crate::clock::WallTime;
use crate::domain::Request;
use crate::queue::book::{Counters, Entry, line};
use crate::queue::{Attempt, Intent, JobId, Priority, State};

/// Why a record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    /// A newer program wrote it, or it is damaged in its first byte.
    #[error("its version {0} is not known here")]
    Version(u8),
    /// It is not what was written under this key.
    #[error("its checksum is wrong")]
    Checksum,
    /// It is shorter than any record.
    #[error("it is cut short")]
    Short,
    /// It is what was written, and makes no sense here.
    #[error("it cannot be read: {0}")]
    Form(String),
}

/// The version of all the forms in this room but one: see [`ended`].
const VERSION: u8 = 1;

/// The bytes before the body.
const HEAD_BYTES: usize = 5;

/// A job as it is stored. Its number is the row's key.
#[derive(Serialize)]
struct StoredEntry<'a> {
    request: &'a Request,
    priority: Priority,
    state: State,
    attempts: u32,
    suspicion: u32,
    #[serde(skip_serializing_if = "is_zero")]
    spared: u32,
    #[serde(skip_serializing_if = "Clone::clone")]
    engaged: bool,
    generation: u32,
    enqueued_at: WallTime,
    deadline: WallTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    intent: Option<&'a Intent>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    history: &'a [Attempt],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    answered: bool,
}

/// What is read back: the same, owned. What later programs leave out has a default.
#[derive(Deserialize)]
struct ReadEntry {
    request: Request,
    #[serde(default)]
    priority: Priority,
    state: State,
    attempts: u32,
    #[serde(default)]
    suspicion: u32,
    #[serde(default)]
    spared: u32,
    /// An older program did not note who came to the engine; any that it held may have.
    #[serde(default = "yes")]
    engaged: bool,
    #[serde(default)]
    generation: u32,
    enqueued_at: WallTime,
    deadline: WallTime,
    #[serde(default)]
    intent: Option<Intent>,
    #[serde(default)]
    history: Vec<Attempt>,
    /// Without it somebody is rather told twice than never.
    #[serde(default)]
    answered: bool,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The record of a job.
///
/// # Errors
/// [`RecordError::Form`] when it cannot be written as JSON, which none of its fields can bring about.
pub(crate) fn encode_entry(entry: &Entry) -> Result<Vec<u8>, RecordError> {
    let stored = StoredEntry {
        request: &entry.request,
        priority: entry.priority,
        state: entry.state,
        attempts: entry.attempts,
        suspicion: entry.suspicion,
        spared: entry.spared,
        engaged: entry.engaged,
        generation: entry.generation,
        enqueued_at: entry.enqueued_at,
        deadline: entry.deadline,
        intent: entry.intent.as_ref(),
        history: &entry.history,
        answered: entry.answered,
    };
    let body = serde_json::to_vec(&stored).map_err(|error| RecordError::Form(error.to_string()))?;
    Ok(seal(&entry.id.0.to_le_bytes(), &body))
}

/// The job with this number that stands in `bytes`.
///
/// # Errors
/// When they are not what was written for it, or of another version. No bytes make it panic.
pub(crate) fn decode_entry(id: JobId, bytes: &[u8]) -> Result<Entry, RecordError> {
    let body = open(&id.0.to_le_bytes(), bytes)?;
    let read: ReadEntry =
        serde_json::from_slice(body).map_err(|error| RecordError::Form(error.to_string()))?;
    if read.state == State::Done {
        return Err(RecordError::Form("a job that is done stands among those that are not".into()));
    }
    Ok(Entry {
        id,
        line: line(&read.request),
        watched: false,
        request: Arc::new(read.request),
        priority: read.priority,
        state: read.state,
        attempts: read.attempts,
        suspicion: read.suspicion,
        spared: read.spared,
        engaged: read.engaged,
        generation: read.generation,
        enqueued_at: read.enqueued_at,
        deadline: read.deadline,
        intent: read.intent,
        history: read.history,
        answered: read.answered,
    })
}

/// The record of the counters.
pub(crate) fn encode_counters(counters: &Counters) -> Vec<u8> {
    let numbers = [counters.next_job, counters.next_token, counters.clock.as_millis()];
    let body: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
    seal(COUNTERS_KEY, &body)
}

/// The counters that stand in `bytes`.
///
/// # Errors
/// When they are not what was written, or of another version.
pub(crate) fn decode_counters(bytes: &[u8]) -> Result<Counters, RecordError> {
    let body = open(COUNTERS_KEY, bytes)?;
    let numbers: Vec<u64> = body.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
    // What stands behind these is another program's.
    let [next_job, next_token, clock, ..] = numbers.as_slice() else { return Err(RecordError::Short) };
    Ok(Counters { next_job: *next_job, next_token: *next_token, clock: WallTime::from_millis(*clock) })
}

/// What the checksum of the counters takes for their key.
const COUNTERS_KEY: &[u8] = b"counters";

/// Puts the version and the checksum before a body.
fn seal(key: &[u8], body: &[u8]) -> Vec<u8> {
    seal_as(VERSION, key, body)
}

/// The same, of another version.
fn seal_as(version: u8, key: &[u8], body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len().saturating_add(HEAD_BYTES));
    bytes.push(version);
    bytes.extend_from_slice(&checksum(key, version, body).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// The body of a record, when it is whole.
fn open<'a>(key: &[u8], bytes: &'a [u8]) -> Result<&'a [u8], RecordError> {
    open_as(&[VERSION], key, bytes).map(|(_, body)| body)
}

/// The version of a record, which is one of these, and its body.
fn open_as<'a>(versions: &[u8], key: &[u8], bytes: &'a [u8]) -> Result<(u8, &'a [u8]), RecordError> {
    let (&version, rest) = bytes.split_first().ok_or(RecordError::Short)?;
    if !versions.contains(&version) {
        return Err(RecordError::Version(version));
    }
    let (sum, body) = rest.split_first_chunk::<4>().ok_or(RecordError::Short)?;
    if checksum(key, version, body) == u32::from_le_bytes(*sum) {
        Ok((version, body))
    } else {
        Err(RecordError::Checksum)
    }
}

fn checksum(key: &[u8], version: u8, body: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(key);
    sum.update(&[version]);
    sum.update(body);
    sum.finalize()
}

#[cfg(test)]
mod tests;
