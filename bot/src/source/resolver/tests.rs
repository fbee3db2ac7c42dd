use futures_util::future::join_all;

use super::*;
use crate::domain::GoneReason;
use crate::source::BreakerSettings;
use crate::source::failure::{SourceFailure, Weight};
use crate::source::quorum::tests::{Scripted, id, post};
use crate::store::StoreSettings;

const START: WallTime = WallTime::from_millis(1_796_000_000_000);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DELETED: SourceFailure = SourceFailure::Gone { reason: GoneReason::Deleted, weight: Weight::Authority };

struct Bench {
    resolver: Resolver,
    source: Arc<Scripted>,
    clock: Clock,
}

fn bench(answer: Result<Post, SourceFailure>) -> Bench {
    bench_with(answer, Store::none())
}

fn bench_with(answer: Result<Post, SourceFailure>, store: Store) -> Bench {
    bench_after(100, answer, store)
}

/// With a source that answers after so many milliseconds.
fn bench_after(after: u64, answer: Result<Post, SourceFailure>, store: Store) -> Bench {
    let source = Scripted::new(SourceName::FxTwitter, after, answer);
    let clock = Clock::manual(START);
    let sources = vec![Arc::clone(&source) as Arc<dyn Source>];
    let quorum = Quorum::new(sources, MINUTE, BreakerSettings::default());
    let resolver =
        Resolver::with(quorum, ResolverSettings::default(), store, clock.clone(), Tracker::new(true));
    Bench { resolver, source, clock }
}

fn store_in(folder: &std::path::Path) -> Store {
    let settings = StoreSettings { path: Some(folder.to_path_buf()), ..StoreSettings::default() };
    Store::open(settings, Clock::manual(START), Tracker::new(false))
}

impl Bench {
    async fn ask(&self) -> Result<Arc<Post>, Failure> {
        self.resolver.resolve(id()).await
    }

    /// Asks at this time after the start and says how often the source was asked by then.
    async fn asked_at(&self, after: Duration) -> usize {
        self.clock.set(START.plus(after));
        let _ = self.ask().await;
        // Lets a renewal that was begun beside the answer begin its wait, and end it.
        settle().await;
        tokio::time::advance(Duration::from_millis(101)).await;
        settle().await;
        self.source.asked()
    }
}

/// Lets every task run until it waits.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_who_ask_at_once_cause_one_fetch() {
    let bench = bench(Ok(post("hi")));
    let answers = join_all((0..200).map(|_| bench.ask())).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|post| post.text == "hi")));
    assert_eq!(bench.source.asked(), 1);
    let failing = self::bench(Err(SourceFailure::transient("503")));
    let answers = join_all((0..200).map(|_| failing.ask())).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(|failure| failure.code() == "transient")));
    assert_eq!(failing.source.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn answers_are_counted_by_where_they_came_from() {
    let folder = tempfile::tempdir().unwrap();
    let counts = |bench: &Bench| {
        let totals = bench.resolver.core.tracker.totals();
        [Counter::ResolverHits, Counter::ResolverMisses, Counter::ResolverNegativeHits]
            .map(|counter| totals.counter(counter))
    };
    let store = store_in(folder.path());
    let first = bench_with(Ok(post("hi")), store.clone());
    join_all((0..5).map(|_| first.ask())).await;
    first.ask().await.unwrap();
    assert_eq!(counts(&first), [1, 1, 0], "four joined the first, which asked; the last one was remembered");
    store.close().await;
    let second = bench_with(Err(SourceFailure::transient("not asked")), store_in(folder.path()));
    second.ask().await.unwrap();
    assert_eq!(counts(&second), [1, 0, 0], "from the store");
    let gone = bench(Err(DELETED));
    for _ in 0..3 {
        gone.ask().await.unwrap_err();
    }
    assert_eq!(counts(&gone), [0, 1, 2]);
    let failing = bench(Err(SourceFailure::transient("503")));
    for _ in 0..2 {
        failing.ask().await.unwrap_err();
    }
    assert_eq!(counts(&failing), [0, 2, 0]);
}

#[tokio::test(start_paused = true)]
async fn one_who_goes_away_does_not_end_the_look_up() {
    let bench = bench(Ok(post("hi")));
    assert!(tokio::time::timeout(Duration::from_millis(50), bench.ask()).await.is_err());
    tokio::time::advance(Duration::from_millis(51)).await;
    assert_eq!(bench.ask().await.unwrap().text, "hi");
    assert_eq!(bench.source.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn look_ups_end_with_the_last_resolver() {
    let bench = bench(Ok(post("hi")));
    assert!(tokio::time::timeout(Duration::from_millis(50), bench.ask()).await.is_err());
    drop(bench.resolver);
    tokio::time::advance(Duration::from_secs(5)).await;
    tokio::task::yield_now().await;
    assert_eq!(bench.source.answered.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_post_is_remembered_for_about_a_day() {
    let bench = bench(Ok(post("hi")));
    assert_eq!(bench.asked_at(Duration::ZERO).await, 1);
    assert_eq!(bench.asked_at(HOUR * 21).await, 1);
    assert_eq!(bench.asked_at(HOUR * 27).await, 2);
}

#[tokio::test(start_paused = true)]
async fn that_a_post_is_gone_is_remembered_for_about_five_minutes() {
    let login = SourceFailure::NeedsLogin(Weight::Authority);
    for (failure, code) in [(DELETED, "gone"), (login, "needs-login")] {
        let bench = bench(Err(failure));
        assert_eq!(bench.asked_at(Duration::ZERO).await, 1);
        assert_eq!(bench.asked_at(MINUTE * 4).await, 1);
        assert_eq!(bench.ask().await.unwrap_err().code(), code);
        assert_eq!(bench.asked_at(MINUTE * 6).await, 2);
    }
}

#[tokio::test]
async fn no_transient_failure_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_in(folder.path());
    let not_found = SourceFailure::Gone { reason: GoneReason::NotFound, weight: Weight::Witness };
    for failure in [
        SourceFailure::transient("503"),
        SourceFailure::unclear("404"),
        SourceFailure::ours("no program"),
        SourceFailure::Sensitive,
        SourceFailure::NoMedia,
        not_found,
    ] {
        let bench = bench_after(0, Err(failure.clone()), store.clone());
        assert!(bench.ask().await.is_err());
        assert!(bench.ask().await.is_err());
        assert_eq!(bench.source.asked(), 2, "{failure:?}");
        assert_eq!(store.get(Shelf::Resolved, "x:20").await, None, "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_post_is_not_remembered_as_the_whole() {
    let bench = bench(Err(SourceFailure::Partial(Box::new(post("part")))));
    assert_eq!(bench.ask().await.unwrap().text, "part");
    assert_eq!(bench.asked_at(MINUTE * 4).await, 1);
    assert_eq!(bench.asked_at(MINUTE * 6).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_hot_answer_is_renewed_in_the_last_tenth_of_its_life() {
    let bench = bench(Ok(post("hi")));
    for _ in 0..5 {
        assert_eq!(bench.asked_at(Duration::ZERO).await, 1);
    }
    // Its life has between 21.6 and 26.4 hours.
    assert_eq!(bench.asked_at(HOUR * 19).await, 1);
    let known = bench.resolver.core.remembered(id(), bench.clock.now()).unwrap();
    let late = known.expires.since(START).saturating_sub(HOUR);
    assert_eq!(bench.asked_at(late).await, 2);
    let renewed = bench.resolver.core.remembered(id(), bench.clock.now()).unwrap();
    assert_eq!(renewed.made, bench.clock.now());
    assert_eq!(bench.asked_at(late + HOUR * 20).await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_asks_for_is_not_renewed() {
    let bench = bench(Ok(post("hi")));
    bench.ask().await.unwrap();
    let known = bench.resolver.core.remembered(id(), bench.clock.now()).unwrap();
    let late = known.expires.since(START).saturating_sub(HOUR);
    assert_eq!(bench.asked_at(late).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_back_an_hour_neither_loses_a_post_nor_keeps_a_failure() {
    let good = bench(Ok(post("hi")));
    assert_eq!(good.asked_at(HOUR * 2).await, 1);
    assert_eq!(good.asked_at(HOUR).await, 1);
    assert_eq!(good.asked_at(HOUR * 29).await, 2);
    let gone = bench(Err(DELETED));
    assert_eq!(gone.asked_at(HOUR * 2).await, 1);
    assert_eq!(gone.asked_at(HOUR).await, 2, "it would have been kept for an hour and more");
}

#[tokio::test(start_paused = true)]
async fn lives_are_scattered_by_a_tenth() {
    let life = Duration::from_secs(1_000);
    assert_eq!(scattered(life, 0), Duration::from_secs(900));
    assert_eq!(scattered(life, 100), life);
    assert_eq!(scattered(life, 200), Duration::from_secs(1_100));
    assert_eq!(scattered(Duration::MAX, 200), Duration::MAX);
}

#[tokio::test(start_paused = true)]
async fn no_life_means_no_memory() {
    let source = Scripted::new(SourceName::FxTwitter, 0, Ok(post("hi")));
    let quorum =
        Quorum::new(vec![Arc::clone(&source) as Arc<dyn Source>], MINUTE, BreakerSettings::default());
    let settings = ResolverSettings { post_ttl: Duration::ZERO, capacity: 0, ..ResolverSettings::default() };
    let resolver = Resolver::with(quorum, settings, Store::none(), Clock::manual(START), Tracker::new(false));
    for wanted in [1, 2] {
        assert!(resolver.resolve(id()).await.is_ok());
        assert_eq!(source.asked(), wanted);
    }
}

// The store works in real time, so these do not pause it.

#[tokio::test]
async fn an_answer_outlives_the_resolver_with_its_own_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_in(folder.path());
    let first = bench_with(Ok(post("hi")), store.clone());
    first.ask().await.unwrap();
    let expires = first.resolver.core.remembered(id(), START).unwrap().expires;
    let second = bench_with(Err(SourceFailure::transient("503")), store);
    second.clock.set(START.plus(HOUR * 20));
    assert_eq!(second.ask().await.unwrap().text, "hi");
    assert_eq!(second.resolver.core.remembered(id(), second.clock.now()).unwrap().expires, expires);
    assert_eq!(second.source.asked(), 0);
    second.clock.set(expires);
    assert_eq!(second.ask().await.unwrap_err().code(), "transient");
}

#[tokio::test]
async fn a_damaged_record_is_removed_and_the_sources_are_asked() {
    let folder = tempfile::tempdir().unwrap();
    let store = store_in(folder.path());
    store.put(Shelf::Resolved, "x:20".to_owned(), b"\x01{\"made\":".to_vec(), START.plus(HOUR));
    let bench = bench_with(Err(SourceFailure::transient("503")), store.clone());
    assert!(bench.ask().await.is_err());
    assert_eq!(bench.source.asked(), 1);
    assert_eq!(store.get(Shelf::Resolved, "x:20").await, None);
}

#[test]
fn a_resolver_can_be_shared_between_threads() {
    fn check<T: Send + Sync + Clone>() {}
    check::<Resolver>();
}
