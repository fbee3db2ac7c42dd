//! One try to make a call.

use std::time::Duration;

use bytes::Bytes;
use tokio::fs::File;

use super::outgoing::OutgoingFile;
use super::refused::{Fault, Refused, Scope};
use super::signals::{self, Signals};
use super::{Patience, Rest, base};
use crate::clock;
use crate::http::{
    Authorization, CallAnswer, CallBody, CallError, CallRequest, Field, FieldContent, HttpError, Verb,
};
use crate::pipeline::optimize::{Content, Made};

/// A call, as it is made in each try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) verb: Verb,
    /// Below `/api/v10`.
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    /// What Discord counts together with it.
    pub(super) route: &'a str,
    /// How long one try may take.
    pub(super) timeout: Duration,
}

/// Why a try failed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// An answer said that there were too many; the lane or all of them know how long to wait.
    Limited { retry_after: Duration, scope: Scope },
    /// It may be better in a moment.
    Passing(Refused),
    /// The next try would end alike.
    Refused(Refused),
}

impl Rest {
    /// Waits for a turn, then makes the call once, with what `body` gives; the body of its answer.
    pub(super) async fn attempt<B>(
        &self,
        call: Call<'_>,
        body: B,
        patience: &mut Patience,
    ) -> Result<Bytes, Trouble>
    where
        B: Future<Output = Result<CallBody, Refused>> + Send,
    {
        let inner = &*self.0;
        let waits = clock::instant();
        let permit = inner.lanes.enter(call.route, patience.end()).await.map_err(|too_long| {
            Trouble::Refused(Refused::Limited { retry_after: too_long.wait, scope: too_long.scope })
        })?;
        patience.spend(waits.elapsed());
        self.admitted(patience).await.map_err(Trouble::Refused)?;

        let authorization = Authorization::new(&format!("Bot {}", inner.token.expose()));
        let request = CallRequest {
            verb: call.verb,
            url: &base::below(&inner.base, call.path, call.query),
            user_agent: USER_AGENT,
            authorization: authorization.ok_or_else(|| ours("the token has characters that no token has"))?,
            timeout: call.timeout,
            cap: MOST_ANSWER,
            body: body.await.map_err(Trouble::Refused)?,
        };
        patience.sent = clock::instant();
        let answer = inner.http.call(request).await.map_err(unsent)?;
        let status = answer.status;
        if status == 429 {
            let (scope, retry_after) =
                signals::limited(&answer.headers, answer.body.as_deref().unwrap_or_default());
            self.count(status, Some(scope));
            permit.limited(scope, retry_after);
            return Err(Trouble::Limited { retry_after, scope });
        }
        self.count(status, None);
        permit.answered(&Signals::read(status, &answer.headers));
        let answered = read(answer);
        if let Err(Trouble::Refused(over @ (Refused::Unauthorized | Refused::Blocked))) = &answered {
            tracing::error!(error = %over, "Discord takes nothing more");
            inner.over.send_replace(Some(over.clone()));
        }
        answered
    }
}

/// What an answer says, unless it is a 429.
fn read(answer: CallAnswer) -> Result<Bytes, Trouble> {
    let CallAnswer { status, body, .. } = answer;
    if (200..300).contains(&status) {
        // It is done; only what came of it cannot be read.
        return body.map_err(|_| Trouble::Passing(Refused::Unanswered));
    }
    let refused = Fault::read(status, &body.unwrap_or_default()).refused();
    Err(if (500..600).contains(&status) { Trouble::Passing(refused) } else { Trouble::Refused(refused) })
}

fn unsent(error: CallError) -> Trouble {
    match error {
        CallError::Unanswered(_) => Trouble::Passing(Refused::Unanswered),
        CallError::Source(error) => ours(format!("a finished file cannot be read: {error}")),
        CallError::Unsent(error @ (HttpError::Refused { .. } | HttpError::Setup(_))) => {
            ours(error.to_string())
        }
        CallError::Unsent(error) => Trouble::Passing(Refused::Later { what: error.to_string() }),
    }
}

fn ours(what: impl Into<String>) -> Trouble {
    Trouble::Refused(Refused::Ours { what: what.into() })
}

/// The body of one try: files are opened for each.
pub(super) async fn body(payload: Bytes, files: &[OutgoingFile]) -> Result<CallBody, Refused> {
    if files.is_empty() {
        return Ok(CallBody::Json(payload));
    }
    let mut fields = vec![Field {
        name: "payload_json".to_owned(),
        file_name: None,
        media_type: "application/json".to_owned(),
        content: FieldContent::Memory(payload),
    }];
    for (number, file) in files.iter().enumerate() {
        fields.push(Field {
            name: format!("files[{number}]"),
            file_name: Some(file.sent_name()),
            media_type: file.made.facts.media_type.clone(),
            content: open(&file.made).await?,
        });
    }
    Ok(CallBody::Form(fields))
}

async fn open(made: &Made) -> Result<FieldContent, Refused> {
    let artifact = match &made.content {
        Content::Memory(bytes) => return Ok(FieldContent::Memory(bytes.clone())),
        Content::Disk(artifact) => artifact,
    };
    let cannot = |error| Refused::Ours { what: format!("a finished file cannot be read: {error}") };
    let file = File::open(&artifact.path).await.map_err(cannot)?;
    let bytes = file.metadata().await.map_err(cannot)?.len();
    if bytes != artifact.bytes {
        let what = format!("a finished file has {bytes} bytes instead of {}", artifact.bytes);
        return Err(Refused::Ours { what });
    }
    Ok(FieldContent::File { file, bytes })
}

/// The name that Discord wants from bots: an address and a version. Azalea has no address of its own, and one that
/// nobody can have says so.
const USER_AGENT: &str =
    concat!("DiscordBot (https://azalea.invalid, ", env!("CARGO_PKG_VERSION"), ") azalea");

/// A message as Discord answers it has some kilobytes.
const MOST_ANSWER: u64 = 1 << 20;
