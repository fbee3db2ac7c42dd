//! What holds for everything that is sent, whichever way: its form, its files, and that it mentions nobody.

use serde_json::Value;
use serenity::model::id::AttachmentId;

use super::answer::Answer;
use super::calls::Call;
use super::form::Form;
use super::schema::check_rows;
use super::state::{File, State};

/// The most files of a message.
const MOST_FILES: usize = 10;

impl State {
    /// Checks what a message would mention: nobody, and it says so itself, since without a word all are mentioned.
    pub(super) fn check_mentions(&mut self, what: &str, body: &Value) {
        let allowed = &body["allowed_mentions"];
        let nobody =
            |name: &str| allowed[name].is_null() || allowed[name].as_array().is_some_and(Vec::is_empty);
        let explicit = allowed["parse"].as_array().is_some_and(Vec::is_empty);
        if !explicit || !nobody("users") || !nobody("roles") || allowed["replied_user"] == true {
            self.violate(format!("{what} may mention somebody: allowed_mentions is {allowed}"));
        }
    }

    /// The files of a form, as the message has them.
    ///
    /// # Errors
    ///
    /// 50035 where the list and the files do not go together, 40005 where a file is too large, 30015 where there are
    /// too many.
    pub(super) fn take_files(&mut self, form: &Form, most_bytes: u64) -> Result<Vec<File>, Answer> {
        if form.files.len() > MOST_FILES {
            return Err(Answer::refusal(
                400,
                30015,
                "Maximum number of attachments in a message reached (10)",
            ));
        }
        let none = Vec::new();
        let listed = form.body["attachments"].as_array().unwrap_or(&none);
        let number = |entry: &Value| match &entry["id"] {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        for (at, entry) in listed.iter().enumerate() {
            let known = number(entry).is_some_and(|number| form.files.contains_key(&number));
            let kept = number(entry).is_some_and(|number| number > u64::from(u32::MAX));
            if !known && !kept {
                let path = format!("attachments.{at}.id");
                return Err(Answer::form(
                    &path,
                    "ATTACHMENT_NOT_FOUND",
                    "There is no file with this number.",
                ));
            }
        }
        let too_large = form.files.values().any(|file| file.length > most_bytes)
            || self.request_limit.is_some_and(|most| form.length > most);
        if too_large {
            return Err(Answer::refusal(413, 40005, "Request entity too large"));
        }
        let mut files = Vec::new();
        for (at, upload) in &form.files {
            let entry = listed.iter().find(|entry| number(entry) == Some(*at)).unwrap_or(&Value::Null);
            let name = entry["filename"].as_str().unwrap_or(&upload.name).to_owned();
            if name.is_empty() || name.contains(['/', '\\', ' ', '"']) {
                self.violate(format!("a file has the name {name:?}, which Discord would change"));
            }
            files.push(File {
                id: AttachmentId::new(self.snowflake()),
                description: entry["description"].as_str().map(str::to_owned),
                spoiler: entry["is_spoiler"] == true || name.starts_with("SPOILER_"),
                name,
                length: upload.length,
                hash: upload.hash,
                bytes: upload.bytes.clone(),
            });
        }
        Ok(files)
    }

    /// Checks that a message has something in it, and buttons that make sense.
    pub(super) fn check_content(&self, body: &Value, files: &[File]) -> Result<(), Answer> {
        check_rows(&body["components"])?;
        let has = |name: &str| body[name].as_array().is_some_and(|list| !list.is_empty());
        let text = body["content"].as_str().unwrap_or_default();
        let is_empty = text.trim().is_empty() && files.is_empty() && !has("embeds") && !has("sticker_ids");
        if is_empty { Err(Answer::refusal(400, 50006, "Cannot send an empty message")) } else { Ok(()) }
    }

    /// Checks that a number is remembered by whoever retries.
    pub(super) fn check_nonce(&mut self, call: &Call, body: &Value) {
        if body["nonce"].is_null() {
            self.violate(format!("{} {} has no nonce", call.method, call.path));
        } else if body["enforce_nonce"] != true {
            self.violate(format!("{} {} has a nonce that is not enforced", call.method, call.path));
        }
    }
}

/// The array of a field, or an empty one.
pub(super) fn list(body: &Value, name: &str) -> Vec<Value> {
    body[name].as_array().cloned().unwrap_or_default()
}
