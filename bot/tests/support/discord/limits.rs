//! Rate limits: the headers that every answer has, and 429 for those who ask too often.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::Discord;
use super::answer::Answer;
use super::calls::Call;
use super::faults::{Scope, fits};

/// So many requests in so much time. Generous, so that only those tests meet it that ask for less.
const GENEROUS: Rate = Rate { requests: 1000, per: Duration::from_secs(1) };
/// What was on its way when we said to wait may still come, for so long.
const ON_ITS_WAY: Duration = Duration::from_millis(250);

/// So many requests in so much time.
#[derive(Clone, Copy, Debug)]
struct Rate {
    requests: u64,
    per: Duration,
}

/// All rate limits.
#[derive(Debug)]
pub(super) struct Limits {
    /// Smaller ones, by method and template of the path.
    rates: Vec<(String, String, Rate)>,
    global: Option<Rate>,
    windows: HashMap<String, Window>,
    /// Who was told to wait: since when, and until when.
    told: HashMap<String, (Instant, Instant)>,
    /// Who asked again though told to wait.
    hurried: Vec<String>,
    on_its_way: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rates: Vec::new(),
            global: None,
            windows: HashMap::new(),
            told: HashMap::new(),
            hurried: Vec::new(),
            on_its_way: ON_ITS_WAY,
        }
    }
}

#[derive(Debug)]
struct Window {
    began: Instant,
    used: u64,
}

/// The key of what is limited over all routes.
const GLOBAL: &str = "global";

impl Discord {
    /// Sets the limit of the routes that are like this. The template is one as for faults.
    pub(crate) fn set_limit(&self, method: &str, path: &str, requests: u64, per: Duration) {
        let limit = (method.to_owned(), path.to_owned(), Rate { requests, per });
        self.shared.change(|state| state.limits.rates.insert(0, limit));
    }

    /// Sets the limit over all routes together; there is none before. Discord itself has 50 in a second.
    pub(crate) fn set_global_limit(&self, requests: u64, per: Duration) {
        self.shared.change(|state| state.limits.global = Some(Rate { requests, per }));
    }

    /// Sets how long after a 429 others are believed to have been on their way; a quarter of a second before.
    pub(crate) fn set_on_its_way(&self, time: Duration) {
        self.shared.change(|state| state.limits.on_its_way = time);
    }

    /// The requests that came though their sender had been told to wait. Those that may have been on their way already
    /// are left out.
    pub(crate) fn hurried(&self) -> Vec<String> {
        self.look(|state| state.limits.hurried.clone())
    }
}

impl Limits {
    /// Counts a request: the headers of its answer, or the 429.
    pub(super) fn count(&mut self, call: &Call) -> Outcome {
        let now = Instant::now();
        // The endpoints of interactions are not in the global limit.
        let is_interaction = ["interactions", "webhooks"].contains(&call.part(0));
        let bucket = call.bucket();
        for key in [GLOBAL, &bucket] {
            let told = self.told.get(key).filter(|_| key != GLOBAL || !is_interaction);
            if let Some((since, until)) = told
                && now > *since + self.on_its_way
                && now < *until
            {
                self.hurried.push(format!("{} {} came before its time", call.method, call.path));
            }
        }
        if let Some(rate) = self.global.filter(|_| !is_interaction)
            && let Err(wait) = self.take(GLOBAL, rate, now)
        {
            return Err(self.limited(call, Scope::Global, wait));
        }
        let rate = self.rates.iter().find(|(method, template, _)| {
            ["*", &call.method].contains(&&**method) && fits(template, &call.path)
        });
        let rate = rate.map_or(GENEROUS, |(_, _, rate)| *rate);
        match self.take(&bucket, rate, now) {
            Ok((left, reset)) => Ok(headers(&bucket, rate.requests, left, reset)),
            Err(wait) => Err(self.limited(call, Scope::User, wait)),
        }
    }

    /// Takes one of what is left in a window, or says how long to wait.
    fn take(&mut self, key: &str, rate: Rate, now: Instant) -> Result<(u64, Duration), Duration> {
        let window = self.windows.entry(key.to_owned()).or_insert(Window { began: now, used: 0 });
        if now >= window.began + rate.per {
            *window = Window { began: now, used: 0 };
        }
        let reset = (window.began + rate.per).saturating_duration_since(now);
        if window.used >= rate.requests {
            return Err(reset);
        }
        window.used += 1;
        Ok((rate.requests - window.used, reset))
    }

    /// A 429. The header has whole seconds, the body has the exact time, as Discord's have.
    pub(super) fn limited(&mut self, call: &Call, scope: Scope, wait: Duration) -> Answer {
        let now = Instant::now();
        let bucket = call.bucket();
        let key = if scope == Scope::Global { GLOBAL } else { &bucket };
        self.told.insert(key.to_owned(), (now, now + wait));
        let seconds = wait.as_secs_f64();
        let body = json!({
            "message": "You are being rate limited.",
            "retry_after": seconds,
            "global": scope == Scope::Global,
        });
        let mut answer = Answer { status: 429, ..Answer::ok(body) };
        answer.headers.push(("Retry-After", format!("{:.0}", seconds.ceil())));
        answer.headers.push(("X-RateLimit-Scope", scope.word().to_owned()));
        if scope == Scope::Global {
            answer.headers.push(("X-RateLimit-Global", "true".to_owned()));
        } else {
            answer.headers.extend(headers(&bucket, GENEROUS.requests, 0, wait));
        }
        answer
    }
}

/// The headers of an answer, or the answer that refuses.
pub(super) type Outcome = Result<Headers, Answer>;
type Headers = Vec<(&'static str, String)>;

fn headers(bucket: &str, limit: u64, left: u64, reset: Duration) -> Headers {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + reset;
    let id = blake3::hash(bucket.as_bytes()).to_hex();
    vec![
        ("X-RateLimit-Limit", limit.to_string()),
        ("X-RateLimit-Remaining", left.to_string()),
        ("X-RateLimit-Reset", format!("{:.3}", until.as_secs_f64())),
        ("X-RateLimit-Reset-After", format!("{:.3}", reset.as_secs_f64())),
        ("X-RateLimit-Bucket", id.chars().take(32).collect()),
    ]
}
