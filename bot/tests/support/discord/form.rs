//! Bodies of requests: JSON, or a form of several parts with files.

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::Bytes;
use serde_json::Value;

use super::answer::Answer;

/// A body that was read.
#[derive(Debug, Default)]
pub(super) struct Form {
    /// The JSON; an empty object when there is none.
    pub(super) body: Value,
    /// The files, by their number.
    pub(super) files: BTreeMap<u64, Upload>,
    /// The bytes of all files.
    pub(super) length: u64,
}

/// A file of a form.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    pub(super) name: String,
    pub(super) length: u64,
    pub(super) hash: blake3::Hash,
    /// `None` when the double does not keep what it gets.
    pub(super) bytes: Option<Bytes>,
}

/// Why a body was not read.
#[derive(Debug)]
pub(super) enum Unread {
    /// It did not come to its end.
    Broken,
    /// It is not as it should be.
    Bad(Answer),
}

impl Form {
    /// Reads a body to its end. Files are hashed as they come, and kept only when `keep` says so.
    pub(super) async fn read(parts: Parts, body: Body, keep: bool) -> Result<Self, Unread> {
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("multipart/form-data") {
            return Self::read_parts(Request::from_parts(parts, body), keep).await;
        }
        let is_json = kind.starts_with("application/json");
        let bytes = to_bytes(body, usize::MAX).await.map_err(|_| Unread::Broken)?;
        if bytes.is_empty() {
            return Ok(Self { body: Value::Object(serde_json::Map::new()), ..Self::default() });
        }
        if !is_json {
            return Err(bad(
                "",
                "CONTENT_TYPE_INVALID",
                "Expected \"Content-Type\" header to be one of JSON, form-data.",
            ));
        }
        Ok(Self { body: json(&bytes)?, ..Self::default() })
    }

    async fn read_parts(request: Request, keep: bool) -> Result<Self, Unread> {
        let mut multipart = Multipart::from_request(request, &())
            .await
            .map_err(|error| bad("", "MULTIPART_INVALID", &error.body_text()))?;
        let mut form = Self { body: Value::Null, ..Self::default() };
        while let Some(mut field) = multipart.next_field().await.map_err(|_| Unread::Broken)? {
            let name = field.name().unwrap_or_default().to_owned();
            if name == "payload_json" {
                let bytes = field.bytes().await.map_err(|_| Unread::Broken)?;
                if !form.body.is_null() {
                    return Err(bad("payload_json", "DUPLICATE", "There are two of it."));
                }
                form.body = json(&bytes)?;
                continue;
            }
            let number = name.strip_prefix("files[").and_then(|rest| rest.strip_suffix(']'));
            let number = number.and_then(|number| number.parse().ok());
            let (Some(number), Some(file)) = (number, field.file_name().map(str::to_owned)) else {
                return Err(bad(&name, "UNKNOWN_FIELD", "A part is payload_json, or files[n] with a name."));
            };
            let mut hasher = blake3::Hasher::new();
            let (mut kept, mut length) = (Vec::new(), 0);
            while let Some(chunk) = field.chunk().await.map_err(|_| Unread::Broken)? {
                hasher.update(&chunk);
                length += u64::try_from(chunk.len()).unwrap();
                if keep {
                    kept.extend_from_slice(&chunk);
                }
            }
            form.length += length;
            let bytes = keep.then(|| Bytes::from(kept));
            let upload = Upload { name: file, length, hash: hasher.finalize(), bytes };
            if form.files.insert(number, upload).is_some() {
                return Err(bad(&name, "DUPLICATE", "There are two of it."));
            }
        }
        if form.body.is_null() {
            form.body = Value::Object(serde_json::Map::new());
        }
        Ok(form)
    }
}

fn json(bytes: &[u8]) -> Result<Value, Unread> {
    let broken = Answer::refusal(400, 50109, "The request body contains invalid JSON.");
    serde_json::from_slice(bytes).map_err(|_| Unread::Bad(broken))
}

fn bad(path: &str, code: &str, message: &str) -> Unread {
    Unread::Bad(Answer::form(path, code, message))
}
