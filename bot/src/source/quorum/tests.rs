use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;

use super::*;
use crate::domain::{Author, GoneReason};
use crate::source::SourceName;
use crate::source::failure::Weight;

/// A source that says the same each time, after a while.
#[derive(Debug)]
pub(in crate::source) struct Scripted {
    name: SourceName,
    after: Duration,
    answer: Result<Post, SourceFailure>,
    pub(in crate::source) asked: AtomicUsize,
    pub(in crate::source) answered: AtomicUsize,
}

impl Scripted {
    pub(in crate::source) fn new(
        name: SourceName,
        after: u64,
        answer: Result<Post, SourceFailure>,
    ) -> Arc<Self> {
        let after = Duration::from_millis(after);
        Arc::new(Self { name, after, answer, asked: AtomicUsize::new(0), answered: AtomicUsize::new(0) })
    }

    pub(in crate::source) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Source for Scripted {
    fn name(&self) -> SourceName {
        self.name
    }

    fn fetch(&self, _: PostId) -> BoxFuture<'_, Result<Post, SourceFailure>> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(self.after).await;
            self.answered.fetch_add(1, Ordering::SeqCst);
            self.answer.clone()
        })
    }
}

pub(in crate::source) fn id() -> PostId {
    PostId::x("20").unwrap()
}

pub(in crate::source) fn post(text: &str) -> Post {
    Post {
        id: id(),
        author: Author::default(),
        text: text.to_owned(),
        sensitive: false,
        media: vec![crate::source::draft::tests::medium("https://video.twimg.com/a.mp4")],
        quoted: Vec::new(),
    }
}

const NOT_FOUND: SourceFailure =
    SourceFailure::Gone { reason: GoneReason::NotFound, weight: Weight::Witness };

fn quorum(sources: &[&Arc<Scripted>]) -> Quorum {
    let sources = sources.iter().map(|source| Arc::clone(source) as Arc<dyn Source>).collect();
    let breaker = BreakerSettings { failures: 2, ..BreakerSettings::default() };
    Quorum::new(sources, Duration::from_millis(1_500), breaker)
}

fn text(found: Result<Found, Failure>) -> String {
    found.unwrap().post.text
}

#[tokio::test(start_paused = true)]
async fn the_first_source_that_is_quick_is_the_only_one_asked() {
    let first = Scripted::new(SourceName::FxTwitter, 1_000, Ok(post("first")));
    let second = Scripted::new(SourceName::VxTwitter, 0, Ok(post("second")));
    assert_eq!(text(quorum(&[&first, &second]).ask(id()).await), "first");
    assert_eq!(second.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_source_is_hedged_and_not_given_up() {
    let slow = Scripted::new(SourceName::FxTwitter, 2_000, Ok(post("slow")));
    let slower = Scripted::new(SourceName::VxTwitter, 9_000, Ok(post("slower")));
    let begin = clock::instant();
    assert_eq!(text(quorum(&[&slow, &slower]).ask(id()).await), "slow");
    assert_eq!(slower.asked(), 1);
    assert_eq!(begin.elapsed(), Duration::from_secs(2));

    let hanging = Scripted::new(SourceName::FxTwitter, 600_000, Ok(post("hanging")));
    let good = Scripted::new(SourceName::VxTwitter, 100, Ok(post("good")));
    let begin = clock::instant();
    assert_eq!(text(quorum(&[&hanging, &good]).ask(id()).await), "good");
    assert_eq!(begin.elapsed(), Duration::from_millis(1_600));
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_the_next_is_asked_at_once() {
    let bad = Scripted::new(SourceName::FxTwitter, 10, Err(SourceFailure::transient("503")));
    let good = Scripted::new(SourceName::VxTwitter, 10, Ok(post("good")));
    let begin = clock::instant();
    assert_eq!(text(quorum(&[&bad, &good]).ask(id()).await), "good");
    assert_eq!(begin.elapsed(), Duration::from_millis(20));
}

#[tokio::test(start_paused = true)]
async fn two_witnesses_end_the_asking_and_one_does_not() {
    let one = Scripted::new(SourceName::FxTwitter, 0, Err(NOT_FOUND));
    let two = Scripted::new(SourceName::Syndication, 0, Err(NOT_FOUND));
    let three = Scripted::new(SourceName::YtDlp, 0, Ok(post("there")));
    assert_eq!(text(quorum(&[&one, &three]).ask(id()).await), "there");
    let gone = quorum(&[&one, &two, &three]).ask(id()).await;
    assert_eq!(gone, Err(Failure::Gone(GoneReason::NotFound)));
    assert_eq!(three.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_whole_post_is_better_than_a_part_of_it() {
    let part = Scripted::new(SourceName::YtDlp, 0, Err(SourceFailure::Partial(Box::new(post("part")))));
    let whole = Scripted::new(SourceName::FxTwitter, 3_000, Ok(post("whole")));
    let bad = Scripted::new(SourceName::VxTwitter, 0, Err(SourceFailure::transient("503")));
    let found = quorum(&[&part, &whole]).ask(id()).await.unwrap();
    assert_eq!((found.post.text.as_str(), found.whole), ("whole", true));
    let found = quorum(&[&part, &bad]).ask(id()).await.unwrap();
    assert_eq!((found.post.text.as_str(), found.whole), ("part", false));
}

#[tokio::test(start_paused = true)]
async fn a_source_in_trouble_is_passed_over_until_its_pause_is_over() {
    let bad = Scripted::new(SourceName::FxTwitter, 0, Err(SourceFailure::transient("503")));
    let good = Scripted::new(SourceName::VxTwitter, 0, Ok(post("good")));
    let quorum = quorum(&[&bad, &good]);
    for _ in 0..10 {
        assert_eq!(text(quorum.ask(id()).await), "good");
    }
    assert_eq!(bad.asked(), 2);
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(text(quorum.ask(id()).await), "good");
    assert_eq!(bad.asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_source_is_left_alone_as_long_as_it_asked() {
    let retry_after = Some(Duration::from_secs(60));
    let failure = SourceFailure::Transient { what: "429".to_owned(), retry_after };
    let limited = Scripted::new(SourceName::FxTwitter, 0, Err(failure));
    let good = Scripted::new(SourceName::VxTwitter, 0, Ok(post("good")));
    let quorum = quorum(&[&limited, &good]);
    for (pass, wanted) in [(0, 1), (59, 1), (1, 2)] {
        tokio::time::advance(Duration::from_secs(pass)).await;
        assert_eq!(text(quorum.ask(id()).await), "good");
        assert_eq!(limited.asked(), wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn when_all_are_in_trouble_the_one_that_failed_longest_ago_is_asked() {
    let one = Scripted::new(SourceName::FxTwitter, 10, Err(SourceFailure::transient("503")));
    let two = Scripted::new(SourceName::VxTwitter, 10, Err(SourceFailure::transient("503")));
    let quorum = quorum(&[&one, &two]);
    for _ in 0..2 {
        assert!(quorum.ask(id()).await.is_err());
    }
    assert_eq!((one.asked(), two.asked()), (2, 2));
    let failure = quorum.ask(id()).await.unwrap_err();
    assert_eq!((one.asked(), two.asked()), (3, 2));
    assert_eq!(failure.code(), "transient");
    assert!(quorum.ask(id()).await.is_err());
    assert_eq!((one.asked(), two.asked()), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn what_a_resting_source_might_know_is_not_ruled_out() {
    let bad = Scripted::new(SourceName::FxTwitter, 0, Err(SourceFailure::transient("503")));
    let login = SourceFailure::NeedsLogin(Weight::Witness);
    let login = Scripted::new(SourceName::YtDlp, 0, Err(login));
    let quorum = quorum(&[&bad, &login]);
    for _ in 0..4 {
        assert_eq!(quorum.ask(id()).await.unwrap_err().code(), "transient");
    }
    assert_eq!(bad.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn words_about_a_post_are_no_trouble_of_the_source() {
    let gone = Scripted::new(SourceName::FxTwitter, 0, Err(NOT_FOUND));
    let quorum = quorum(&[&gone]);
    for _ in 0..20 {
        assert_eq!(quorum.ask(id()).await.unwrap_err().code(), "transient");
    }
    assert_eq!(gone.asked(), 20);
}

#[tokio::test(start_paused = true)]
async fn nobody_to_ask_is_our_own_fault() {
    assert_eq!(quorum(&[]).ask(id()).await.unwrap_err().code(), "ours");
}
