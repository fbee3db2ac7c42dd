//! The bot's front end in a terminal: each line is a message that somebody writes in a channel.
//!
//! `#general @ann: look https://x.com/a/status/20` is taken as a message of ann in general. Each answer begins with a line
//! `#general azalea → @ann: …`; the lines of its files are indented below it.

use std::collections::HashSet;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::clock::Clock;
use crate::dedup::{Delivered, Processed};
use crate::domain::{DeliveryKey, Failure, FrontEnd, MessageId, Options, Request, RequestId, Telling};
use crate::frontend::terminal::{Arrival, Event, Receipt, Terminal};
use crate::frontend::words;
use crate::intake::{Incoming, Intake, Outcome, Waiting};
use crate::pipeline::delivery::Notice;

/// A line that somebody typed, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typed<'a> {
    /// The channel's name, without `#`.
    pub channel: &'a str,
    /// The person's name, without `@`.
    pub user: &'a str,
    /// What is said.
    pub text: &'a str,
}

/// A line that is not of the form `#channel @user: text`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write it like this: #general @ann: https://x.com/NAME/status/NUMBER")]
pub struct NotAMessage;

/// Takes a line apart.
///
/// # Errors
/// [`NotAMessage`] when it has another form, or a name is empty.
pub fn parse(line: &str) -> Result<Typed<'_>, NotAMessage> {
    let rest = line.trim().strip_prefix('#').ok_or(NotAMessage)?;
    let (channel, rest) = rest.split_once(char::is_whitespace).ok_or(NotAMessage)?;
    let rest = rest.trim_start().strip_prefix('@').ok_or(NotAMessage)?;
    let (user, text) = rest.split_once(':').ok_or(NotAMessage)?;
    let (user, text) = (user.trim(), text.trim());
    let name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    if name(channel) && name(user) { Ok(Typed { channel, user, text }) } else { Err(NotAMessage) }
}

/// Lines longer than this are no messages: Discord takes 2000 characters, with Nitro 4000.
const LONGEST_LINE: usize = 16 * 1024;
/// So many messages have numbers of one millisecond; more than anybody, or any script, writes in one.
const MESSAGES_PER_MILLI: u64 = 1 << 12;
const FULL: &str = "too much is waiting already; try again in some minutes";
const CLOSED: &str = "this bot is being stopped; ask again later";
/// How long a line may take to be printed; a terminal that stands still holds nobody up for longer.
const PRINTING: Duration = Duration::from_secs(10);
/// Lines of output that wait to be written.
const LINES: usize = 256;

/// A console session.
#[derive(Debug)]
pub struct Console {
    intake: Intake,
    terminal: Arc<Terminal>,
    processed: Processed,
    clock: Clock,
    lines: mpsc::Sender<Said>,
}

/// A line for people. Dropped when it has been printed.
#[derive(Debug)]
pub struct Said {
    /// The line.
    pub text: String,
    _receipt: Receipt,
}

impl Console {
    /// A session that hands messages to `intake`, whose results come back through `terminal`; and the lines it says.
    pub fn new(
        intake: Intake,
        terminal: Arc<Terminal>,
        processed: Processed,
        clock: Clock,
    ) -> (Arc<Self>, mpsc::Receiver<Said>) {
        let (lines, receiver) = mpsc::channel(LINES);
        (Arc::new(Self { intake, terminal, processed, clock, lines }), receiver)
    }

    /// Reads messages until `input` ends, then waits until every request has its answer; `open` are those of an earlier
    /// session that have none yet.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub async fn run(
        self: Arc<Self>,
        mut input: impl AsyncBufRead + Unpin,
        mut events: mpsc::Receiver<Event>,
        open: Vec<RequestId>,
    ) -> std::io::Result<()> {
        let mut waiting: JoinSet<Option<RequestId>> = JoinSet::new();
        // Which, and not how many: answers come to others too, as when an operator has dead ones run again.
        let mut open: HashSet<RequestId> = open.into_iter().collect();
        // Messages of different runs are different messages: a run begins where the time of day is.
        let mut next = self.clock.now().as_millis().saturating_mul(MESSAGES_PER_MILLI);
        let mut reading = true;
        let mut line = Vec::new();
        while reading || !open.is_empty() || !waiting.is_empty() {
            tokio::select! {
                biased;
                // First: who reads on while answers wait has more to lose.
                Some(event) = events.recv() => {
                    if let Some(answered) = self.hear(event).await {
                        open.remove(&answered);
                    }
                }
                read = next_line(&mut input, &mut line), if reading => match read? {
                    Line::End => reading = false,
                    Line::TooLong => self.say("that line is too long to be a message".to_owned()).await,
                    Line::Whole => {
                        let text = String::from_utf8_lossy(&line).into_owned();
                        line.clear();
                        if !text.trim().is_empty() {
                            let message = MessageId::new(NonZeroU64::new(next).unwrap_or(NonZeroU64::MIN));
                            next = next.saturating_add(1);
                            open.extend(self.message(&text, message, &mut waiting).await);
                        }
                    }
                },
                Some(more) = waiting.join_next(), if !waiting.is_empty() => open.extend(more.ok().flatten()),
                else => break,
            }
        }
        Ok(())
    }

    /// Takes one line; the requests that it put on their way.
    async fn message(
        self: &Arc<Self>,
        line: &str,
        message: MessageId,
        waiting: &mut JoinSet<Option<RequestId>>,
    ) -> Vec<RequestId> {
        let typed = match parse(line) {
            Ok(typed) => typed,
            Err(error) => {
                self.say(error.to_string()).await;
                return Vec::new();
            }
        };
        let author = self.terminal.person(typed.user).await;
        let incoming = Incoming {
            front_end: FrontEnd::Console,
            guild: None,
            channel: self.terminal.channel(typed.channel).await,
            author,
            message,
            text: typed.text,
            options: Options::default(),
        };
        let taken = self.intake.take(&incoming).await;
        let mut accepted = Vec::new();
        if taken.outcomes.is_empty() {
            let text = "there is no link to a post in that message";
            self.say(format!("#{} azalea → @{}: {text}", typed.channel, typed.user)).await;
        }
        for outcome in taken.outcomes {
            let outcome = self.look(outcome).await;
            accepted.extend(self.outcome(outcome, waiting).await);
        }
        if taken.dropped > 0 {
            let more = format!("{} more links are too many for one message", taken.dropped);
            self.say(format!("#{} azalea → @{}: {more}", typed.channel, typed.user)).await;
        }
        accepted
    }

    /// An answer whose files were removed, or went to another folder, is none: what was asked for is sent again.
    async fn look(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::AlreadyThere { request, delivered } if !self.terminal.stands(&delivered).await => {
                self.processed.forget_this(&DeliveryKey::of(&request), &delivered);
                self.intake.send(request).await
            }
            other => other,
        }
    }

    /// Says what became of a link; the request, when its answer is still to come as an event.
    async fn outcome(
        self: &Arc<Self>,
        outcome: Outcome,
        waiting: &mut JoinSet<Option<RequestId>>,
    ) -> Option<RequestId> {
        match outcome {
            Outcome::Accepted(request) => return Some(request.id),
            // Its answer came, or comes, to the first coming of the message.
            Outcome::Again(_) => {}
            Outcome::Joined { request, waiting: place } => {
                let console = Arc::clone(self);
                waiting.spawn(async move { console.behind(request, place).await });
            }
            Outcome::AlreadyThere { request, delivered } => {
                let text = self.pointer(&delivered);
                self.answer(&request, &text).await;
            }
            Outcome::Limited { request, retry_after } => {
                let seconds = retry_after.as_secs_f64().ceil();
                self.answer(&request, &format!("too many requests; the next one is taken in {seconds} s"))
                    .await;
            }
            Outcome::Full(request) => {
                self.answer(&request, FULL).await;
            }
            Outcome::Closed(request) => {
                self.answer(&request, CLOSED).await;
            }
        }
        None
    }

    /// Waits for the end of somebody else's request; this one, when its answer is still to come as an event.
    async fn behind(&self, mut request: Request, mut place: Waiting) -> Option<RequestId> {
        loop {
            let text = match place.end().await {
                Some(Ok(delivered)) => self.pointer(&delivered),
                Some(Err(failure)) => failed(&failure),
                // It was given up, so this one is next.
                None => match self.intake.go_on(request, place).await {
                    Outcome::Joined { request: same, waiting } => {
                        (request, place) = (same, waiting);
                        continue;
                    }
                    Outcome::Accepted(request) => return Some(request.id),
                    Outcome::AlreadyThere { request, delivered } => {
                        self.answer(&request, &self.pointer(&delivered)).await;
                        return None;
                    }
                    Outcome::Again(_) => return None,
                    Outcome::Limited { request, .. } | Outcome::Full(request) => {
                        self.answer(&request, FULL).await;
                        return None;
                    }
                    Outcome::Closed(request) => {
                        self.answer(&request, CLOSED).await;
                        return None;
                    }
                },
            };
            place
                .answer(async || {
                    self.answer(&request, &text).await;
                    Telling::Settled
                })
                .await;
            return None;
        }
    }

    /// Says what an event means; the request that it answered.
    async fn hear(&self, event: Event) -> Option<RequestId> {
        match event {
            Event::Stage(..) => None,
            Event::Delivered(arrival) => {
                let (head, files) = describe(&arrival);
                self.answer(&arrival.request, &head).await;
                for file in files {
                    self.say(file).await;
                }
                Some(arrival.request.id)
            }
            Event::Told(request, Notice::Failed(failure), _receipt) => {
                self.answer(&request, &failed(&failure)).await;
                Some(request.id)
            }
            Event::Told(request, Notice::Pointer(delivered), _receipt) => {
                let text = self.pointer(&delivered);
                self.answer(&request, &text).await;
                Some(request.id)
            }
        }
    }

    fn pointer(&self, delivered: &Delivered) -> String {
        let number = delivered.messages.first().map_or_else(String::new, ToString::to_string);
        format!("already here: answer {number} in #{}", self.terminal.channel_name(delivered.channel))
    }

    async fn answer(&self, request: &Request, text: &str) {
        let channel = self.terminal.channel_name(request.destination.channel);
        let name = self.terminal.person_name(request.requester);
        self.say(format!("#{channel} azalea → @{name}: {text}")).await;
    }

    /// Says a line, and waits until it is printed.
    async fn say(&self, text: String) {
        let (receipt, printed) = Receipt::new();
        // Where nobody reads any more, the session is over.
        if self.lines.send(Said { text, _receipt: receipt }).await.is_ok() {
            drop(timeout(PRINTING, printed).await);
        }
    }
}

fn failed(failure: &Failure) -> String {
    format!("no media: {}", words(failure))
}

/// The words of an answer, and a line for each file.
fn describe(arrival: &Arrival) -> (String, Vec<String>) {
    let number = arrival.delivered.messages.first().map_or_else(String::new, ToString::to_string);
    let count = arrival.files.len();
    let noun = if count == 1 { "file" } else { "files" };
    let by = if arrival.author.handle.is_empty() {
        String::new()
    } else {
        format!(" of @{}", arrival.author.handle)
    };
    let spoiler = if arrival.spoiler { ", behind a spoiler" } else { "" };
    let mut head = format!("answer {number}, {count} {noun}{by}{spoiler}");
    for failure in &arrival.missing {
        head.push_str(&format!("; one is missing: {}", words(failure)));
    }
    let mut lines = Vec::new();
    for file in &arrival.files {
        lines.push(format!("    {}", file.path.display()));
        lines.extend(file.facts.warnings.iter().map(|warning| format!("        note: {warning}")));
    }
    (head, lines)
}

enum Line {
    Whole,
    TooLong,
    End,
}

/// Reads on until `line` is a whole line. Cancel-safe: what was read stands in `line`.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> std::io::Result<Line> {
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(if line.is_empty() { Line::End } else { whole(line) });
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(buffer.len(), |end| end + 1);
        // What is beyond a message is read, and left out.
        let room = LONGEST_LINE.saturating_add(1).saturating_sub(line.len());
        line.extend(buffer.iter().take(end.unwrap_or(taken)).take(room));
        input.consume(taken);
        if end.is_some() {
            return Ok(whole(line));
        }
    }
}

fn whole(line: &mut Vec<u8>) -> Line {
    if line.len() > LONGEST_LINE {
        line.clear();
        return Line::TooLong;
    }
    Line::Whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_message_of_somebody_somewhere() {
        let typed = Typed { channel: "general", user: "ann", text: "@azalea https://x.com/a/status/20" };
        for line in [
            "#general @ann: @azalea https://x.com/a/status/20",
            "  #general   @ann:@azalea https://x.com/a/status/20  ",
        ] {
            assert_eq!(parse(line), Ok(typed), "{line}");
        }
        for line in
            ["", "hello", "#general", "#general ann: hi", "# @ann: hi", "#general @: hi", "#g @a b: hi"]
        {
            assert_eq!(parse(line), Err(NotAMessage), "{line}");
        }
    }

    #[tokio::test]
    async fn long_lines_are_left_out_and_the_last_one_needs_no_end() {
        let long = "x".repeat(100_000);
        let text = format!("one\n{long}\ntwo");
        let mut input = text.as_bytes();
        let mut line = Vec::new();
        assert!(matches!(next_line(&mut input, &mut line).await.unwrap(), Line::Whole));
        assert_eq!(line, b"one");
        line.clear();
        assert!(matches!(next_line(&mut input, &mut line).await.unwrap(), Line::TooLong));
        assert!(matches!(next_line(&mut input, &mut line).await.unwrap(), Line::Whole));
        assert_eq!(line, b"two");
        line.clear();
        assert!(matches!(next_line(&mut input, &mut line).await.unwrap(), Line::End));
    }
}
