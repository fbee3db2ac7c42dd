//! Weighs what several sources said about one post.
//!
//! Ranks, the strongest first:
//!
//! 1. A post of which a part is shown: the one with most media.
//! 2. Gone, by an authority.
//! 3. Needs login, by an authority.
//! 4. Gone, by two witnesses.
//! 5. No media, by any source that shows the post.
//! 6. Transient, when any source was in trouble: it might have known better.
//! 7. Needs login, sensitive, unsupported, in this order, by any source.
//! 8. Transient, when any word was unclear or one witness stands alone.
//! 9. Ours: nobody could be asked, by our own fault.

use std::time::Duration;

use crate::domain::{Failure, GoneReason, Post};
use crate::source::SourceName;
use crate::source::failure::{SourceFailure, Weight};

/// A post, and whether the source shows all of its media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) post: Post,
    pub(crate) whole: bool,
}

/// What was said so far.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    heard: Vec<(SourceName, SourceFailure)>,
}

impl Verdict {
    /// Adds what one source said. Each source is heard once.
    pub(crate) fn hear(&mut self, name: SourceName, failure: SourceFailure) {
        self.heard.push((name, failure));
    }

    /// Adds all that another verdict heard.
    pub(crate) fn join(&mut self, other: Self) {
        self.heard.extend(other.heard);
    }

    /// Forgets what was heard of this source.
    pub(crate) fn forgive(&mut self, name: SourceName) {
        self.heard.retain(|(heard, _)| *heard != name);
    }

    /// The failure that no further source can change; `None` while one may.
    pub(crate) fn settled(&self) -> Option<Failure> {
        if self.partial().is_some() {
            return None;
        }
        let no_media = self.all().filter(|failure| **failure == SourceFailure::NoMedia).count();
        self.certain().or_else(|| (no_media >= WITNESSES).then_some(Failure::NoMedia))
    }

    /// The outcome when there is nobody left to ask.
    pub(crate) fn close(mut self) -> Result<Found, Failure> {
        if let Some(post) = self.take_partial() {
            return Ok(Found { post, whole: false });
        }
        let said = |wanted: SourceFailure| self.all().any(|failure| *failure == wanted);
        let failure = self
            .certain()
            .or_else(|| said(SourceFailure::NoMedia).then_some(Failure::NoMedia))
            .or_else(|| self.trouble())
            .or_else(|| said(SourceFailure::NeedsLogin(Weight::Witness)).then_some(Failure::NeedsLogin))
            .or_else(|| said(SourceFailure::Sensitive).then_some(Failure::Sensitive))
            .or_else(|| self.unsupported())
            .or_else(|| self.unclear());
        Err(failure.unwrap_or_else(|| self.ours()))
    }

    fn all(&self) -> impl Iterator<Item = &SourceFailure> {
        self.heard.iter().map(|(_, failure)| failure)
    }

    /// Ranks 2 to 4: what is true whatever others say.
    fn certain(&self) -> Option<Failure> {
        let gone = |wanted: Weight| {
            self.all().filter_map(move |failure| match failure {
                SourceFailure::Gone { reason, weight } if *weight == wanted => Some(*reason),
                _ => None,
            })
        };
        if let Some(reason) = gone(Weight::Authority).next() {
            return Some(Failure::Gone(reason));
        }
        if self.all().any(|failure| *failure == SourceFailure::NeedsLogin(Weight::Authority)) {
            return Some(Failure::NeedsLogin);
        }
        let told = gone(Weight::Witness).find(|reason| *reason != GoneReason::NotFound);
        (gone(Weight::Witness).count() >= WITNESSES)
            .then(|| Failure::Gone(told.unwrap_or(GoneReason::NotFound)))
    }

    /// Rank 6. When every source in trouble said how long it wants to be left alone, the shortest of that.
    fn trouble(&self) -> Option<Failure> {
        let mut texts = Vec::new();
        let mut wishes = Some(Vec::new());
        for (name, failure) in &self.heard {
            if let SourceFailure::Transient { what, retry_after } = failure {
                texts.push(format!("{name}: {what}"));
                match (retry_after, &mut wishes) {
                    (Some(wish), Some(all)) => all.push(*wish),
                    // One that did not say so may be well again at any time.
                    _ => wishes = None,
                }
            }
        }
        let retry_after: Option<Duration> = wishes.and_then(|all| all.into_iter().min());
        (!texts.is_empty()).then(|| Failure::Transient { what: texts.join("; "), retry_after })
    }

    fn unsupported(&self) -> Option<Failure> {
        self.all().find_map(|failure| match failure {
            SourceFailure::Unsupported { what } => Some(Failure::Unsupported { what: what.clone() }),
            _ => None,
        })
    }

    /// Rank 8.
    fn unclear(&self) -> Option<Failure> {
        let texts = self.heard.iter().filter_map(|(name, failure)| match failure {
            SourceFailure::Unclear { what } => Some(format!("{name}: {what}")),
            SourceFailure::Gone { reason, .. } => Some(format!("{name} alone says {reason}")),
            _ => None,
        });
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| Failure::transient(texts.join("; ")))
    }

    /// Rank 9.
    fn ours(&self) -> Failure {
        let texts = self.heard.iter().filter_map(|(name, failure)| match failure {
            SourceFailure::Ours { what } => Some(format!("{name}: {what}")),
            _ => None,
        });
        let texts: Vec<String> = texts.collect();
        Failure::ours(if texts.is_empty() { "no source was asked".to_owned() } else { texts.join("; ") })
    }

    fn partial(&self) -> Option<usize> {
        let parts = self.heard.iter().enumerate().filter_map(|(at, (_, failure))| match failure {
            SourceFailure::Partial(post) => Some((post.media.len(), at)),
            _ => None,
        });
        // The first heard of those with most media: its source stands earlier in the order.
        parts.max_by_key(|(media, at)| (*media, std::cmp::Reverse(*at))).map(|(_, at)| at)
    }

    fn take_partial(&mut self) -> Option<Post> {
        let at = self.partial()?;
        match self.heard.swap_remove(at).1 {
            SourceFailure::Partial(post) => Some(*post),
            _ => None,
        }
    }
}

/// So many sources that do not know each other must say the same before one of them is believed.
const WITNESSES: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Author;
    use crate::domain::PostId;

    const WITNESS: SourceFailure =
        SourceFailure::Gone { reason: GoneReason::NotFound, weight: Weight::Witness };
    const DELETED: SourceFailure =
        SourceFailure::Gone { reason: GoneReason::Deleted, weight: Weight::Authority };

    fn heard(failures: &[SourceFailure]) -> Verdict {
        let mut verdict = Verdict::default();
        for (name, failure) in SourceName::ALL.into_iter().zip(failures) {
            verdict.hear(name, failure.clone());
        }
        verdict
    }

    fn limited(seconds: Option<u64>) -> SourceFailure {
        SourceFailure::Transient { what: "429".into(), retry_after: seconds.map(Duration::from_secs) }
    }

    fn partial(media: usize) -> SourceFailure {
        let medium = crate::source::draft::tests::medium("https://video.twimg.com/a.mp4");
        SourceFailure::Partial(Box::new(Post {
            id: PostId::x("20").unwrap(),
            author: Author::default(),
            text: String::new(),
            sensitive: false,
            media: vec![medium; media],
            quoted: Vec::new(),
        }))
    }

    #[track_caller]
    fn check(failures: &[SourceFailure], code: &str) {
        let failure = heard(failures).close().unwrap_err();
        assert_eq!(failure.code(), code, "{failures:?}");
    }

    #[test]
    fn gone_needs_an_authority_or_two_witnesses() {
        check(std::slice::from_ref(&WITNESS), "transient");
        check(&[WITNESS, SourceFailure::unclear("HTML")], "transient");
        check(&[WITNESS, limited(None)], "transient");
        check(&[WITNESS, WITNESS], "gone");
        check(&[WITNESS, limited(None), WITNESS], "gone");
        check(&[limited(None), DELETED], "gone");
    }

    #[test]
    fn the_reason_that_was_told_is_kept() {
        let told = SourceFailure::Gone { reason: GoneReason::Suspended, weight: Weight::Witness };
        assert_eq!(heard(&[WITNESS, told]).settled(), Some(Failure::Gone(GoneReason::Suspended)));
    }

    #[test]
    fn a_source_in_trouble_might_have_known_better() {
        check(&[SourceFailure::NeedsLogin(Weight::Witness), limited(None)], "transient");
        check(&[SourceFailure::NeedsLogin(Weight::Witness), SourceFailure::Sensitive], "needs-login");
        check(&[SourceFailure::NeedsLogin(Weight::Authority), limited(None)], "needs-login");
        check(&[SourceFailure::Sensitive, SourceFailure::unclear("404")], "sensitive");
        check(&[SourceFailure::NoMedia, limited(None)], "no-media");
        check(&[SourceFailure::ours("no program"), SourceFailure::unclear("404")], "transient");
        check(&[SourceFailure::ours("no program")], "ours");
    }

    #[test]
    fn asking_ends_when_nobody_can_change_the_answer() {
        assert_eq!(heard(&[DELETED]).settled(), Some(Failure::Gone(GoneReason::Deleted)));
        assert_eq!(heard(&[SourceFailure::NoMedia]).settled(), None);
        assert_eq!(
            heard(&[SourceFailure::NoMedia, SourceFailure::NoMedia]).settled(),
            Some(Failure::NoMedia)
        );
        assert_eq!(heard(&[SourceFailure::NeedsLogin(Weight::Witness)]).settled(), None);
        assert_eq!(heard(&[partial(1), DELETED]).settled(), None);
    }

    #[test]
    fn a_part_is_better_than_nothing() {
        let found = heard(&[partial(1), partial(2), DELETED]).close().unwrap();
        assert!(!found.whole);
        assert_eq!(found.post.media.len(), 2);
    }

    #[test]
    fn the_shortest_wish_counts_when_all_have_one() {
        let wish = |failures: &[SourceFailure]| match heard(failures).close() {
            Err(Failure::Transient { retry_after, .. }) => retry_after,
            other => panic!("{other:?}"),
        };
        assert_eq!(wish(&[limited(Some(60)), limited(Some(30))]), Some(Duration::from_secs(30)));
        assert_eq!(wish(&[limited(Some(60)), limited(None)]), None);
        assert_eq!(wish(&[limited(Some(60)), WITNESS]), Some(Duration::from_secs(60)));
    }
}
