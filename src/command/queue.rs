//! `azalea queue`: looks after the jobs of the service, whether it runs or not.

use std::collections::HashSet;
use std::num::NonZeroU64;
use std::time::Duration;

use azalea_bot::clock::{Clock, WallTime};
use azalea_bot::config::{Config, QueueBackend};
use azalea_bot::domain::{FrontEnd, RequestId};
use azalea_bot::frontend::names::Names;
use azalea_bot::frontend::operator::{Fate, Job, MOST_JOBS, Operator, Outcome};
use azalea_bot::queue::{Attempt, Filter, JobId, JobResult, StateKind, Stats};

use crate::cli::Format;
use crate::command::service::runtime;
use crate::exit::{Exit, NoSuchJob, NoSuchRequest, NothingKept, OutputError};
use crate::settings::{Change, Named, QueueDeed, QueueSettings, Which};
use crate::terminal::{self, Screen};

pub(crate) fn run(settings: &QueueSettings, screen: &Screen) -> anyhow::Result<Exit> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let clock = Clock::system();
        let names = Names::kept_in(settings.config.store.path.join("console-names")).await;
        let view = View { names, clock: clock.clone(), format: settings.format, screen };
        if let Some(exit) = nothing_kept(&settings.config, &settings.deed, &view).await? {
            return Ok(exit);
        }
        let mut operator = Operator::reach(&settings.config, &clock).await?;
        for warning in operator.warnings() {
            screen.complain("warning", &terminal::escape(warning));
        }
        let done = match &settings.deed {
            QueueDeed::List(filter) => list(&mut operator, filter, &view).await,
            QueueDeed::Show(named) => show(&mut operator, *named, &view).await,
            QueueDeed::Change(change, which) => self::change(&mut operator, *change, which, &view).await,
        };
        operator.close().await;
        done
    })
}

/// Says so where a queue ended with its process; `None` when there is one to look into.
async fn nothing_kept(config: &Config, deed: &QueueDeed, view: &View<'_>) -> anyhow::Result<Option<Exit>> {
    let in_memory = config.queue.backend == QueueBackend::Memory;
    if !in_memory || Operator::connect(&config.store.path).await?.is_some() {
        return Ok(None);
    }
    match (deed, view.format) {
        (QueueDeed::List(_), Format::Json) => view.screen.complain("note", &NothingKept.to_string()),
        (QueueDeed::List(_), Format::Text) => view.print(&NothingKept.to_string())?,
        _ => return Err(NothingKept.into()),
    }
    Ok(Some(Exit::Done))
}

async fn list(operator: &mut Operator, filter: &Filter, view: &View<'_>) -> anyhow::Result<Exit> {
    let jobs = operator.list(filter.clone()).await?;
    if view.format == Format::Json {
        for job in &jobs {
            view.print(&serde_json::to_string(job)?)?;
        }
        return Ok(Exit::Done);
    }
    let now = view.clock.now();
    if !jobs.is_empty() {
        let mut rows = vec![HEADS.map(str::to_owned)];
        rows.extend(jobs.iter().map(|job| view.row(job, now)));
        view.print(&columns(&rows))?;
    }
    if jobs.len() >= filter.most {
        view.screen
            .note(&format!("These are the oldest {}; --most and the filters show others.", jobs.len()));
    }
    let stats = operator.stats().await?;
    view.print(&counts(&stats, now))?;
    if let Some(trouble) = &stats.trouble {
        let text = format!("what is accepted now is kept in memory only: {trouble}");
        view.screen.complain("warning", &text);
    }
    Ok(Exit::Done)
}

async fn show(operator: &mut Operator, named: Named, view: &View<'_>) -> anyhow::Result<Exit> {
    let job = match named {
        Named::Job(id) => operator.show(id).await?.ok_or(NoSuchJob(id))?,
        Named::Request(request) => match operator.find(request).await? {
            Some(job) => job,
            None => return ended(operator, request, view).await,
        },
    };
    match view.format {
        Format::Json => view.print(&serde_json::to_string(&job)?)?,
        Format::Text => view.print(&view.whole(&job, view.clock.now()))?,
    }
    Ok(Exit::Done)
}

/// Tells how a request ended whose job is no more.
async fn ended(operator: &mut Operator, request: RequestId, view: &View<'_>) -> anyhow::Result<Exit> {
    let result = operator.result(request).await?.ok_or(NoSuchRequest(request))?;
    let text = match view.format {
        Format::Json => {
            serde_json::json!({ "request": request, "state": "done", "result": result }).to_string()
        }
        Format::Text => {
            let text = view.result(request.front_end(), &result, view.clock.now());
            labelled(&[("request", request.to_string()), ("state", "done".to_owned()), ("result", text)])
        }
    };
    view.print(&text)?;
    Ok(Exit::Done)
}

async fn change(
    operator: &mut Operator,
    change: Change,
    which: &Which,
    view: &View<'_>,
) -> anyhow::Result<Exit> {
    let mut told = Told { change, view, exit: Exit::Done };
    match which {
        Which::Named(ids) => told.all(&apply(operator, change, ids).await?)?,
        Which::Matching(filter) => {
            // In rounds, since a list has its bound; who could not be changed would be in the next round too.
            let mut seen = HashSet::new();
            let most = if filter.most == 0 { usize::MAX } else { filter.most };
            while seen.len() < most {
                let jobs = operator.list(Filter { most: MOST_JOBS, ..filter.clone() }).await?;
                let fresh = jobs.iter().map(|job| job.id).filter(|id| !seen.contains(id));
                let ids: Vec<JobId> = fresh.take(most.saturating_sub(seen.len())).collect();
                if ids.is_empty() {
                    break;
                }
                told.all(&apply(operator, change, &ids).await?)?;
                seen.extend(ids);
            }
            if seen.is_empty() && view.format == Format::Text {
                view.print("no job is meant")?;
            }
        }
    }
    Ok(told.exit)
}

async fn apply(operator: &mut Operator, change: Change, ids: &[JobId]) -> anyhow::Result<Vec<Fate>> {
    Ok(match change {
        Change::Retry => operator.retry(ids).await?,
        Change::Drop => operator.drop_jobs(ids).await?,
    })
}

/// Tells what became of jobs.
struct Told<'a> {
    change: Change,
    view: &'a View<'a>,
    exit: Exit,
}

impl Told<'_> {
    fn all(&mut self, fates: &[Fate]) -> anyhow::Result<()> {
        for fate in fates {
            if self.view.format == Format::Json {
                self.view.print(&serde_json::to_string(fate)?)?;
            }
            let why = match (&fate.outcome, self.change) {
                (Outcome::Done, change) => {
                    if self.view.format == Format::Text {
                        let what = if change == Change::Retry { "runs again" } else { "is dropped" };
                        self.view.print(&format!("{} {what}", fate.id))?;
                    }
                    continue;
                }
                (Outcome::Absent, _) => NoSuchJob(fate.id).to_string(),
                (Outcome::Refused { state }, Change::Retry) => {
                    format!("job {} is {}; only dead ones can be had to run again", fate.id, state.name())
                }
                (Outcome::Refused { state }, Change::Drop) => {
                    format!("job {} is {}; a worker holds it", fate.id, state.name())
                }
                (Outcome::Failed { error }, _) => format!("job {}: {error}", fate.id),
            };
            self.view.screen.complain("error", &terminal::escape(&why));
            self.exit = Exit::Input;
        }
        Ok(())
    }
}

/// How jobs are told.
struct View<'a> {
    names: Names,
    clock: Clock,
    format: Format,
    screen: &'a Screen,
}

impl View<'_> {
    fn print(&self, text: &str) -> anyhow::Result<()> {
        Ok(self.screen.print(text).map_err(|cause| OutputError::stdout(&cause))?)
    }

    fn row(&self, job: &Job, now: WallTime) -> [String; 7] {
        let last = job.history.last().map_or_else(|| "-".to_owned(), |attempt| short(&failure(attempt)));
        [
            job.id.to_string(),
            in_short(job),
            ago(now.since(job.enqueued_at)),
            job.attempts.to_string(),
            job.request.post.to_string(),
            self.channel(job.request.front_end, job.request.channel.get()),
            last,
        ]
    }

    /// A channel of the terminal by its name, any other by its number.
    fn channel(&self, front_end: FrontEnd, number: u64) -> String {
        self.named(front_end, number, '#')
    }

    fn named(&self, front_end: FrontEnd, number: u64, sign: char) -> String {
        let name = NonZeroU64::new(number)
            .filter(|_| front_end == FrontEnd::Console)
            .and_then(|number| self.names.get(number));
        name.map_or_else(|| number.to_string(), |name| format!("{sign}{}", terminal::escape(&name)))
    }

    /// Everything about a job.
    fn whole(&self, job: &Job, now: WallTime) -> String {
        let wanted = &job.request;
        let mut lines = vec![
            ("job", job.id.to_string()),
            ("state", state(job, now)),
            ("link", wanted.link.clone()),
            ("wanted", wish(job)),
            ("asked by", self.named(wanted.front_end, wanted.requester.get(), '@')),
            (
                "channel",
                format!(
                    "{} on {}",
                    self.channel(wanted.front_end, wanted.channel.get()),
                    wanted.front_end.code()
                ),
            ),
        ];
        lines.extend(wanted.guild.map(|guild| ("server", guild.to_string())));
        lines.extend([
            ("message", wanted.message.to_string()),
            ("request", wanted.id.to_string()),
            ("queued", ago(now.since(job.enqueued_at))),
            ("deadline", moment(job.deadline, now)),
            ("attempts", job.attempts.to_string()),
        ]);
        if job.suspicion > 0 {
            lines.push((
                "suspicion",
                format!("the process died {} while it was at the engine", times(job.suspicion)),
            ));
        }
        if job.generation > 0 {
            lines.push(("generation", format!("had to run again {}", times(job.generation))));
        }
        lines
            .extend(job.result.as_ref().map(|result| ("result", self.result(wanted.front_end, result, now))));
        let mut text = labelled(&lines);
        for attempt in &job.history {
            text.push_str(&format!("\nattempt {}, {}", attempt.number, ago(now.since(attempt.at))));
            if let Some(stage) = attempt.stage {
                text.push_str(&format!(", at {stage}"));
            }
            text.push_str(&format!(": {}", terminal::escape(&attempt.code)));
            for cause in &attempt.chain {
                text.push_str(&format!("\n    {}", terminal::escape(cause)));
            }
        }
        text
    }

    fn result(&self, front_end: FrontEnd, result: &JobResult, now: WallTime) -> String {
        match result {
            JobResult::Delivered { front_end: _, channel, messages, at } => {
                let messages: Vec<String> = messages.iter().map(ToString::to_string).collect();
                let channel = self.channel(front_end, channel.get());
                format!("delivered {}, in {channel} as {}", ago(now.since(*at)), messages.join(", "))
            }
            JobResult::Answered { code, at } => {
                format!("answered {}: {}", ago(now.since(*at)), terminal::escape(code))
            }
        }
    }
}

/// The same in a list.
fn in_short(job: &Job) -> String {
    let name = job.state.name();
    match job.behind {
        Some(other) => format!("{name}, behind {other}"),
        None if job.waits => format!("{name}, behind another"),
        None => name.to_owned(),
    }
}

/// Where a job is in its life.
fn state(job: &Job, now: WallTime) -> String {
    let name = job.state.name();
    if job.waits {
        return in_short(job);
    }
    match job.state {
        StateKind::Delayed | StateKind::Suspect => {
            let wait = job.run_at.map(|at| at.since(now)).filter(|wait| !wait.is_zero());
            wait.map_or_else(|| name.to_owned(), |wait| format!("{name}, for {} more", span(wait)))
        }
        StateKind::Leased => {
            let alone = if job.alone { ", alone" } else { "" };
            let rest = job.leased_until.map(|until| format!(", for {} more", span(until.since(now))));
            format!("{name}{alone}{}", rest.unwrap_or_default())
        }
        StateKind::Dead => {
            let why = job.dead_reason.map(|reason| format!(" ({})", reason.name())).unwrap_or_default();
            let since = job.dead_since.map(|at| format!(", {}", ago(now.since(at)))).unwrap_or_default();
            format!("{name}{why}{since}")
        }
        StateKind::Ready | StateKind::Done => name.to_owned(),
    }
}

/// How the media are wanted.
fn wish(job: &Job) -> String {
    let wanted = &job.request;
    let mut words = vec![wanted.form.clone()];
    if wanted.start_ms > 0 || wanted.end_ms.is_some() {
        let end = wanted.end_ms.map_or_else(|| "the end".to_owned(), seconds);
        words.push(format!("from {} to {end}", seconds(wanted.start_ms)));
    }
    if wanted.spoiler {
        words.push("behind a spoiler".to_owned());
    }
    terminal::escape(&words.join(", "))
}

fn seconds(millis: u64) -> String {
    terminal::clock(Duration::from_millis(millis))
}

/// What an attempt came to, in one line.
fn failure(attempt: &Attempt) -> String {
    let stage = attempt.stage.map(|stage| format!(" at {stage}")).unwrap_or_default();
    let cause = attempt.chain.first().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{}{stage}{cause}", attempt.code)
}

/// The beginning of a text that has no place in a table.
fn short(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST_FAILURE).collect();
    if text.chars().nth(LONGEST_FAILURE).is_some() {
        short.push('…');
    }
    terminal::escape(&short)
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn counts(stats: &Stats, now: WallTime) -> String {
    let Stats { ready, delayed, leased, dead, oldest_ready, .. } = stats;
    let oldest = oldest_ready.map(|at| format!("; the oldest that is ready was due {}", ago(now.since(at))));
    format!("{ready} ready, {delayed} delayed, {leased} leased, {dead} dead{}", oldest.unwrap_or_default())
}

/// A moment that may be to come.
fn moment(at: WallTime, now: WallTime) -> String {
    if at > now { format!("in {}", span(at.since(now))) } else { ago(now.since(at)) }
}

fn ago(time: Duration) -> String {
    if time < Duration::from_secs(1) { "just now".to_owned() } else { format!("{} ago", span(time)) }
}

/// A span in its largest whole unit.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn labelled(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let lines = lines.iter().map(|(label, text)| format!("{label:width$}  {text}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Rows below each other, each column as wide as its widest text.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = text.chars().count().max(*width);
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(text, width)| format!("{text:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

const HEADS: [&str; 7] = ["id", "state", "age", "attempts", "post", "channel", "last failure"];
/// In characters: what is left of a wide terminal.
const LONGEST_FAILURE: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        for (seconds, text) in [
            (0, "just now"),
            (1, "1 s ago"),
            (59, "59 s ago"),
            (60, "1 min ago"),
            (3599, "59 min ago"),
            (3600, "1 h ago"),
            (172_799, "47 h ago"),
            (172_800, "2 d ago"),
        ] {
            assert_eq!(ago(Duration::from_secs(seconds)), text);
        }
        let now = WallTime::from_millis(1_000_000);
        assert_eq!(moment(now.plus(Duration::from_secs(90)), now), "in 1 min");
        assert_eq!(moment(now, now), "just now");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let rows = [["id", "state"], ["1", "dead"], ["100", "é"]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(&rows), "id   state\n1    dead\n100  é");
    }

    #[test]
    fn a_failure_in_a_table_is_one_short_line_that_cannot_drive_a_terminal() {
        assert_eq!(short("a\nb"), "a\\nb");
        let long = short(&"x".repeat(500));
        assert_eq!(long.chars().count(), LONGEST_FAILURE + 1);
    }
}
