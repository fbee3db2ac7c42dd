use super::*;
use crate::queue::{Filter, JobView};

/// Enqueues jobs of `(guild, user)` and gives the numbers of those that are claimed one by one, in order.
fn order(jobs: &[(u64, u64)], turns: usize) -> Vec<(u64, u64)> {
    let mut book = Book::new(BookSettings::default());
    for (number, (guild, user)) in (1..).zip(jobs) {
        book.enqueue(job(number, *guild, *user), NOW).unwrap();
    }
    claims(&mut book, turns, NOW).iter().map(who).collect()
}

fn claims(book: &mut Book, turns: usize, now: WallTime) -> Vec<Lease> {
    let mut leases = Vec::new();
    for _ in 0..turns {
        leases.extend(book.claim(1, seconds(600), now));
        book.commit();
        book.check();
    }
    leases
}

fn who(lease: &Lease) -> (u64, u64) {
    let guild = lease.request.destination.guild.map_or(0, |guild| guild.get());
    (guild, lease.request.requester.get())
}

#[test]
fn no_server_waits_for_a_busy_one() {
    let mut jobs = vec![(1, 1); 1_000];
    jobs.extend([(2, 2), (3, 3), (2, 2), (3, 4), (3, 4)]);
    let served = order(&jobs, 12);
    let turns = [1, 2, 3, 1, 2, 3, 1, 3, 1, 1, 1, 1];
    assert_eq!(served.iter().map(|(guild, _)| *guild).collect::<Vec<_>>(), turns);
}

#[test]
fn the_people_of_a_server_take_turns() {
    let jobs = [(1, 1), (1, 1), (1, 1), (1, 2), (1, 3), (1, 3)];
    assert_eq!(order(&jobs, 6), [(1, 1), (1, 2), (1, 3), (1, 1), (1, 3), (1, 1)]);
}

#[test]
fn whoever_writes_privately_is_a_server_of_one() {
    let jobs = [(0, 7), (0, 7), (0, 8), (5, 7), (5, 7)];
    assert_eq!(order(&jobs, 5), [(5, 7), (0, 7), (0, 8), (5, 7), (0, 7)]);
}

#[test]
fn the_jobs_of_one_person_come_in_order() {
    let mut book = Book::new(BookSettings::default());
    for number in 1..=5 {
        book.enqueue(job(number, 1, 1), NOW).unwrap();
    }
    let first = book.claim(1, LEASE, NOW).remove(0);
    book.claim(1, LEASE, NOW);
    book.release(first.lease, Duration::ZERO, NOW);
    let keys: Vec<_> = book.claim(9, LEASE, NOW).into_iter().map(|lease| lease.request.id).collect();
    assert_eq!(keys, [key(1), key(3), key(4), key(5)], "what was handed back keeps its place");
}

#[test]
fn the_background_has_every_sixteenth_turn() {
    let mut book = Book::new(BookSettings::default());
    for number in 1..=40 {
        book.enqueue(NewJob { priority: Priority::Background, ..job(number, 1, 1) }, NOW).unwrap();
        book.enqueue(job(100 + number, 2, 2), NOW).unwrap();
    }
    let turns: Vec<usize> = claims(&mut book, 80, NOW)
        .iter()
        .enumerate()
        .filter(|(_, lease)| who(lease).0 == 1)
        .map(|(turn, _)| turn + 1)
        .collect();
    assert_eq!(turns[..3], [16, 32, 43], "and all when nobody else waits");
    assert_eq!(turns.len(), 40);
}

#[test]
fn those_who_wait_for_a_moment_hold_nobody_back() {
    let mut book = Book::new(BookSettings::default());
    for number in 1..=2_000 {
        book.enqueue(NewJob { not_before: NOW.plus(seconds(60)), ..job(number, 1, 1) }, NOW).unwrap();
    }
    book.enqueue(job(9_999, 1, 1), NOW).unwrap();
    let leases = book.claim(10, LEASE, NOW);
    assert_eq!(leases.iter().map(|lease| lease.request.id).collect::<Vec<_>>(), [key(9_999)]);
    let stats = book.stats(NOW);
    assert_eq!((stats.ready, stats.delayed, stats.leased), (0, 2_000, 1));
    assert_eq!(book.next_event(), Some(NOW.plus(LEASE)));
    assert_eq!(book.stats(NOW.plus(seconds(60))).ready, 2_000);
    assert_eq!(book.claim(10, LEASE, NOW.plus(seconds(59))).len(), 0);
    assert_eq!(book.claim(10, LEASE, NOW.plus(seconds(60))).len(), 10);
    book.check();
}

/// A book of `others` jobs in which two were at the engine when its process died.
fn after_a_crash(others: u64) -> Book {
    let mut book = Book::new(BookSettings::default());
    for number in 1..=2 {
        book.enqueue(job(number, 1, number), NOW).unwrap();
    }
    let held = book.claim(9, LEASE, NOW);
    assert_eq!(held.len(), 2);
    for lease in held {
        book.engage(lease.lease, NOW);
    }
    for number in 0..others {
        book.enqueue(job(100 + number, 2, 2), NOW).unwrap();
    }
    book.commit();
    restarted(&book, NOW)
}

#[test]
fn suspects_come_first_and_one_by_one_when_nothing_is_held() {
    let mut book = after_a_crash(3);
    let first = book.claim(9, LEASE, NOW);
    assert_eq!(
        first.iter().map(|lease| (lease.request.id, lease.alone)).collect::<Vec<_>>(),
        [(key(1), true)]
    );
    assert!(!book.anything_ready(NOW));
    assert_eq!(book.claim(9, LEASE, NOW), []);
    book.complete(first[0].lease, answered(NOW), NOW);
    let second = book.claim(9, LEASE, NOW);
    assert_eq!(
        second.iter().map(|lease| (lease.request.id, lease.alone)).collect::<Vec<_>>(),
        [(key(2), true)]
    );
    book.complete(second[0].lease, answered(NOW), NOW);
    assert_eq!(book.claim(9, LEASE, NOW).len(), 3);
    book.check();
}

#[test]
fn a_suspect_waits_30_seconds_for_an_endless_stream_of_others_and_no_longer() {
    let mut book = after_a_crash(100);
    let lease = book.claim(1, LEASE, NOW).remove(0);
    // It comes back while the other waits for its moment, so that the others have their turn.
    let second = JobId(2);
    assert_eq!(
        book.retry(lease.lease, seconds(10), reason("transient"), NOW),
        Retried::At(NOW.plus(seconds(10)))
    );
    let other = book.claim(9, LEASE, NOW).remove(0);
    assert_eq!((other.lease.job, other.alone), (second, true));
    book.complete(other.lease, answered(NOW), NOW);
    let mut held = book.claim(1, LEASE, NOW);
    let mut now = NOW;
    let mut served = 0;
    // A worker takes one as it ends one, so that there is never a moment without any.
    let alone = loop {
        now = now.plus(seconds(1));
        let next = book.claim(1, LEASE, now);
        for lease in held.drain(..) {
            assert_eq!(book.complete(lease.lease, answered(now), now), Completed::Done);
        }
        let next = if next.is_empty() { book.claim(1, LEASE, now) } else { next };
        served += next.len();
        if next[0].alone {
            break next;
        }
        held = next;
    };
    assert_eq!(alone[0].lease.job, JobId(1));
    assert_eq!(now, NOW.plus(seconds(40)), "10 seconds as it was told, then 30");
    assert_eq!(served, 40);
    book.check();
}

#[test]
fn a_list_has_what_is_meant_the_oldest_first() {
    let mut book = Book::new(BookSettings::default());
    for number in 1..=150 {
        book.enqueue(job(number, number % 2, number % 3 + 1), NOW.plus(seconds(number))).unwrap();
    }
    let now = NOW.plus(seconds(200));
    let lease = book.claim(1, LEASE, now).remove(0);
    book.bury(lease.lease, reason("no-media"), DeadReason::Permanent, now);
    let buried = lease.lease.job;
    let numbers =
        |filter: Filter| book.list(&filter, now).iter().map(|view: &JobView| view.id).collect::<Vec<_>>();
    assert_eq!(numbers(Filter::default()).len(), 100);
    assert_eq!(numbers(Filter { most: 3, ..Filter::default() }), [1, 2, 3].map(JobId));
    let dead = Filter { state: Some(StateKind::Dead), ..Filter::default() };
    assert_eq!(numbers(dead.clone()), [buried]);
    for code in ["no-media", "permanent"] {
        assert_eq!(numbers(Filter { reason: Some(code.to_owned()), ..Filter::default() }), [buried]);
    }
    assert_eq!(numbers(Filter { reason: Some("poison".to_owned()), ..dead }), []);
    let old = Filter { older_than: Some(seconds(198)), ..Filter::default() };
    assert_eq!(numbers(old), [1, 2].map(JobId));
    let guild = Filter { guild: Some("1".parse().unwrap()), most: 2, ..Filter::default() };
    assert_eq!(numbers(guild), [1, 3].map(JobId));
    let user = Filter { user: Some("1".parse().unwrap()), most: 2, ..Filter::default() };
    assert_eq!(numbers(user), [3, 6].map(JobId));
    assert_eq!(numbers(Filter { state: Some(StateKind::Done), ..Filter::default() }), []);
}
