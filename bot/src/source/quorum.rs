//! Asks the sources in their order until one gives the post, or until what they say is certain.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::clock;
use crate::domain::{Failure, Post, PostId};
use crate::source::breaker::Breaker;
use crate::source::failure::SourceFailure;
use crate::source::verdict::{Found, Verdict};
use crate::source::{BreakerSettings, Source, SourceName};

/// The sources in their order, each with its breaker.
#[derive(Debug)]
pub(crate) struct Quorum {
    seats: Vec<Seat>,
    hedge_delay: Duration,
}

#[derive(Debug)]
struct Seat {
    source: Arc<dyn Source>,
    breaker: Mutex<Breaker>,
}

impl Quorum {
    /// These sources, the best first. The next is asked beside a silent one after `hedge_delay`.
    pub(crate) fn new(
        sources: Vec<Arc<dyn Source>>,
        hedge_delay: Duration,
        breaker: BreakerSettings,
    ) -> Self {
        let seat = |source| {
            let breaker = Mutex::new(Breaker::new(breaker, fastrand::Rng::new()));
            Seat { source, breaker }
        };
        Self { seats: sources.into_iter().map(seat).collect(), hedge_delay }
    }

    /// The post, from the first source that has it whole.
    ///
    /// A source whose breaker is open is passed over, and counts as one in trouble. When all are, the one that failed
    /// the longest ago is asked anyway. Cancel-safe: dropping the future ends what is under way.
    ///
    /// # Errors
    /// With what the sources together say; see the ranks of [`Verdict`].
    ///
    /// `heard` is called with what each source said, and how long it took.
    pub(crate) async fn ask_aloud(
        &self,
        post: PostId,
        heard: &(dyn Fn(SourceName, &'static str, Duration) + Sync),
    ) -> Result<Found, Failure> {
        let mut verdict = Verdict::default();
        let mut rested = Verdict::default();
        let mut waiting = self.seats.iter();
        let mut under_way = FuturesUnordered::new();
        let mut is_last = false;
        let mut asked_any = false;
        let mut ask_next = true;
        loop {
            if ask_next && !is_last {
                match waiting.find(|seat| seat.admits(&mut rested)) {
                    Some(seat) => {
                        asked_any = true;
                        under_way.push(seat.ask(post));
                    }
                    None => is_last = true,
                }
            }
            if under_way.is_empty() {
                if asked_any {
                    break;
                }
                // Better a source in trouble than nobody at all.
                let Some(seat) = self.seats.iter().min_by_key(|seat| seat.lock().failed_at()) else { break };
                asked_any = true;
                rested.forgive(seat.source.name());
                under_way.push(seat.ask(post));
            }
            ask_next = tokio::select! {
                biased;
                Some((seat, answer, took)) = under_way.next() => match answer {
                    Ok(post) => {
                        heard(seat.source.name(), "gave the post", took);
                        return Ok(Found { post, whole: true });
                    }
                    Err(failure) => {
                        heard(seat.source.name(), failure.code(), took);
                        seat.report(post, &failure);
                        verdict.hear(seat.source.name(), failure);
                        if let Some(settled) = verdict.settled() {
                            return Err(settled);
                        }
                        true
                    }
                },
                () = tokio::time::sleep(self.hedge_delay), if !is_last => true,
            };
        }
        verdict.join(rested);
        verdict.close()
    }
}

#[cfg(test)]
impl Quorum {
    /// The same, where nobody listens.
    pub(crate) async fn ask(&self, post: PostId) -> Result<Found, Failure> {
        self.ask_aloud(post, &|_, _, _| {}).await
    }
}

impl Seat {
    fn lock(&self) -> std::sync::MutexGuard<'_, Breaker> {
        // A breaker is whole after each of its steps, whoever panicked.
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the source may be asked now; when not, that is noted.
    fn admits(&self, rested: &mut Verdict) -> bool {
        match self.lock().admit(clock::instant()) {
            Ok(()) => true,
            Err(rest) => {
                let what = "it was in trouble and is left alone".to_owned();
                rested.hear(self.source.name(), SourceFailure::Transient { what, retry_after: Some(rest) });
                false
            }
        }
    }

    async fn ask(&self, post: PostId) -> (&Self, Result<Post, SourceFailure>, Duration) {
        let begun = clock::instant();
        let answer = self.source.fetch(post).await;
        let now = clock::instant();
        match &answer {
            Err(failure) if failure.is_trouble() => self.lock().fail(now, failure.retry_after()),
            _ => self.lock().succeed(),
        }
        (self, answer, now.saturating_duration_since(begun))
    }

    fn report(&self, post: PostId, failure: &SourceFailure) {
        let source = self.source.name();
        match failure {
            SourceFailure::Ours { what } => {
                tracing::warn!(%source, %post, %what, "a source cannot be used");
            }
            SourceFailure::Transient { what, .. }
            | SourceFailure::Unclear { what }
            | SourceFailure::Unsupported { what } => {
                tracing::debug!(%source, %post, code = failure.code(), %what, "a source gave no post");
            }
            SourceFailure::Gone { .. }
            | SourceFailure::NeedsLogin(_)
            | SourceFailure::Sensitive
            | SourceFailure::NoMedia
            | SourceFailure::Partial(_) => {
                tracing::debug!(%source, %post, code = failure.code(), "a source gave no whole post");
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
