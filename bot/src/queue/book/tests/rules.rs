use super::*;
use crate::domain::Stage;
use crate::queue::Filter;

fn one() -> (Book, Lease) {
    let mut book = Book::new(BookSettings::default());
    assert_eq!(book.enqueue(job(1, 1, 1), NOW), Ok(Enqueued::New(JobId(1))));
    let lease = book.claim(1, LEASE, NOW).remove(0);
    book.commit();
    (book, lease)
}

#[test]
fn a_lease_says_what_its_worker_must_know() {
    let (mut book, lease) = one();
    assert_eq!(lease.lease, LeaseRef { job: JobId(1), token: LeaseToken(1) });
    assert_eq!((lease.attempt, lease.generation, lease.alone), (1, 0, false));
    assert_eq!((lease.enqueued_at, lease.until, lease.intent), (NOW, NOW.plus(LEASE), None));
    let intent = Intent { started_at: NOW, channel: "3".parse().unwrap(), parts: 2, posted: Vec::new() };
    assert_eq!(book.intend(lease.lease, intent.clone(), NOW), Held::Until(lease.until));
    book.retry(lease.lease, seconds(1), reason("transient"), NOW);
    let again = book.claim(1, LEASE, NOW.plus(seconds(1))).remove(0);
    assert_eq!((again.attempt, again.intent), (2, Some(intent)));
    assert_eq!(again.lease.token, LeaseToken(2));
}

#[test]
fn extending_stores_nothing_and_is_not_taken_back() {
    let (mut book, lease) = one();
    let later = NOW.plus(seconds(30));
    assert_eq!(book.extend(lease.lease, LEASE, later), Held::Until(later.plus(LEASE)));
    assert_eq!(book.changes(), []);
    book.complete(lease.lease, answered(later), later);
    assert_eq!(book.extend(lease.lease, LEASE, later), Held::Lost);
    book.roll_back();
    assert_eq!(
        book.extend(lease.lease, LEASE, later.plus(seconds(59))),
        Held::Until(later.plus(seconds(119)))
    );
    // Now a change of it is under way, and is taken back after the lease was extended.
    let intent = Intent { started_at: NOW, channel: "3".parse().unwrap(), parts: 1, posted: Vec::new() };
    book.intend(lease.lease, intent, later);
    assert_eq!(
        book.extend(lease.lease, seconds(900), later.plus(seconds(100))),
        Held::Until(later.plus(seconds(1_000)))
    );
    book.roll_back();
    book.check();
    let held = book.show(lease.lease.job, later).unwrap().state;
    assert_eq!(
        held,
        State::Leased { token: lease.lease.token, until: later.plus(seconds(1_000)), alone: false }
    );
}

#[test]
fn a_change_names_the_record_as_it_was_and_as_it_is() {
    let mut book = Book::new(BookSettings::default());
    book.enqueue(job(1, 1, 1), NOW).unwrap();
    let lease = book.claim(1, LEASE, NOW).remove(0);
    let [Change::Job { id: JobId(1), before: None, after: Some(after) }] = &book.changes()[..] else {
        panic!("{:?}", book.changes());
    };
    assert_eq!(after.state, State::Leased { token: LeaseToken(1), until: NOW.plus(LEASE), alone: false });
    let leased = after.clone();
    book.commit();
    assert_eq!(book.changes(), []);
    book.complete(lease.lease, answered(NOW), NOW);
    let ended = Ended { id: JobId(1), key: key(1), result: answered(NOW), at: NOW, line: None };
    let ended = Arc::new(ended);
    assert_eq!(
        book.changes(),
        [
            Change::Job { id: JobId(1), before: Some(leased), after: None },
            Change::Ended { key: key(1), before: None, after: Some(ended) },
        ]
    );
    assert_eq!(book.counters(), Counters { next_job: 2, next_token: 2, clock: NOW });
}

#[test]
fn what_comes_and_goes_between_two_commits_is_no_change() {
    let mut book = Book::new(BookSettings::default());
    book.enqueue(job(1, 1, 1), NOW).unwrap();
    assert!(book.forget(JobId(1), NOW));
    assert_eq!(book.changes(), []);
}

#[test]
fn a_history_is_bounded() {
    let (mut book, mut lease) = one();
    book.settings.max_attempts = u32::MAX;
    let mut now = NOW;
    for _ in 0..25 {
        let chain = vec!["ä".repeat(400); 12];
        let reason = Reason { stage: Some(Stage::Upload), code: "x".repeat(100), chain };
        book.retry(lease.lease, Duration::ZERO, reason, now);
        now = now.plus(seconds(1));
        lease = book.claim(1, LEASE, now).remove(0);
    }
    let history = book.show(JobId(1), now).unwrap().history;
    assert_eq!((history.len(), history[0].number, history[19].number), (20, 6, 25));
    assert_eq!((history[0].chain.len(), history[0].chain[0].len(), history[0].code.len()), (8, 500, 64));
    assert_eq!(history[0].stage, Some(Stage::Upload));
}

#[test]
fn old_results_and_old_dead_are_dropped() {
    let settings = BookSettings { results_most: 2, dead_most: 2, ..BookSettings::default() };
    let mut book = Book::new(settings);
    for number in 1..=8 {
        let now = NOW.plus(seconds(number));
        book.enqueue(job(number, 1, 1), now).unwrap();
        let lease = book.claim(1, LEASE, now).remove(0).lease;
        if number % 2 == 0 {
            book.complete(lease, answered(now), now);
        } else {
            book.bury(lease, reason("gone"), DeadReason::Permanent, now);
        }
        book.commit();
        book.check();
    }
    let kept = |book: &Book, now| {
        (1..=8).filter(|number| book.result(key(*number), now).is_some()).collect::<Vec<_>>()
    };
    let dead =
        |book: &Book| book.list(&Filter::default(), NOW).iter().map(|view| view.id.0).collect::<Vec<_>>();
    assert_eq!((kept(&book, NOW), dead(&book)), (vec![6, 8], vec![5, 7]));
    let week = NOW.plus(7 * 24 * seconds(3_600));
    assert_eq!(book.next_event(), Some(week.plus(seconds(6))));
    assert_eq!(
        kept(&book, week.plus(seconds(6))),
        [8],
        "what is too old is not told, even if it is still there"
    );
    book.tick(week.plus(seconds(6)));
    assert_eq!(book.changes().len(), 1);
    assert_eq!(book.enqueue(job(6, 1, 1), week.plus(seconds(6))), Ok(Enqueued::New(JobId(9))));
    book.forget(JobId(9), week);
    book.tick(NOW.plus(90 * 24 * seconds(3_600)).plus(seconds(5)));
    assert_eq!((kept(&book, NOW), dead(&book)), (vec![], vec![7]));
    book.check();
}

#[test]
fn what_closes_in_good_order_makes_no_suspects() {
    let (mut book, _) = one();
    book.release_all(NOW);
    book.commit();
    let mut book = restarted(&book, NOW);
    assert_eq!(book.changes(), []);
    let lease = book.claim(1, LEASE, NOW).remove(0);
    assert_eq!((lease.attempt, lease.alone, lease.lease.token), (1, false, LeaseToken(2)));
}

#[test]
fn an_input_that_kills_the_process_costs_its_bystanders_nothing() {
    let mut book = Book::new(BookSettings::default());
    let poison = key(3);
    for number in 1..=30 {
        book.enqueue(job(number, number % 4, number), NOW).unwrap();
    }
    let (mut deaths, mut done) = (0, 0);
    // Eight workers; whoever takes the poison kills the process as soon as all have one.
    while done < 29 || deaths < 3 {
        let leases = book.claim(8, LEASE, NOW);
        assert!(!leases.is_empty(), "{:?}", book.stats(NOW));
        for lease in &leases {
            book.engage(lease.lease, NOW);
        }
        book.commit();
        if leases.iter().any(|lease| lease.request.id == poison) {
            deaths += 1;
            book = restarted(&book, NOW);
            book.commit();
        } else {
            for lease in leases {
                assert_eq!(lease.attempt, 1, "a bystander was charged");
                assert_eq!(book.complete(lease.lease, answered(NOW), NOW), Completed::Done);
                done += 1;
            }
            book.commit();
        }
        book.check();
    }
    assert_eq!((deaths, done), (3, 29));
    let [dead] = &book.list(&Filter::default(), NOW)[..] else { panic!("more than one is left") };
    assert_eq!(dead.state, State::Dead { reason: DeadReason::Poison, at: NOW });
    let history: Vec<_> = dead.history.iter().map(|attempt| (attempt.number, &*attempt.code)).collect();
    assert_eq!(history, [(1, "crashed"), (2, "crashed"), (3, "crashed")], "each has a number of its own");
}

#[test]
fn a_file_that_was_mended_gives_each_key_once() {
    let (book, _) = one();
    let entry = Entry::clone(&book.jobs[&JobId(1)]);
    let twin = Entry { id: JobId(5), ..entry.clone() };
    let over = Entry { id: JobId(6), request: Arc::new(request(2, 1, 1)), ..entry.clone() };
    let ended = Ended { id: JobId(4), key: key(2), result: answered(NOW), at: NOW, line: None };
    let counters = Counters::default();
    let book = Book::restore(book.settings, vec![twin, over, entry], vec![ended], counters, NOW);
    book.check();
    assert_eq!(book.counters(), Counters { next_job: 7, next_token: 2, clock: NOW });
    assert_eq!(book.jobs.keys().collect::<Vec<_>>(), [&JobId(1)]);
    assert_eq!(book.changes().len(), 3, "one came back and two are to be removed");
}

#[test]
fn a_clock_that_is_put_back_a_little_is_waited_for() {
    let (mut book, lease) = one();
    let back = WallTime::from_millis(NOW.as_millis() - 59_000);
    assert_eq!(
        book.retry(lease.lease, seconds(5), reason("transient"), back),
        Retried::At(NOW.plus(seconds(5)))
    );
    assert_eq!(book.counters().clock, NOW);
    assert!(book.claim(1, LEASE, back.plus(seconds(5))).is_empty());
    assert_eq!(book.claim(1, LEASE, NOW.plus(seconds(5))).len(), 1);
}

#[test]
fn a_clock_that_was_wrong_for_a_while_stops_nothing() {
    let mut book = Book::new(BookSettings::default());
    let wrong = NOW.plus(30 * 24 * seconds(3_600));
    for number in 1..=3 {
        let deadline = wrong.plus(seconds(3_600));
        book.enqueue(NewJob { deadline, ..job(number, 1, 1) }, wrong).unwrap();
    }
    let held = book.claim(2, LEASE, wrong);
    book.retry(held[0].lease, seconds(100), reason("transient"), wrong);
    book.commit();
    let before = book.clone();
    // It is put right by 30 days. The third is ready, the first 100 seconds away, the second held for a minute.
    let lease = book.claim(9, LEASE, NOW).remove(0);
    assert_eq!(lease.lease.job, JobId(3));
    book.check();
    let view = book.show(JobId(1), NOW).unwrap();
    assert_eq!(view.state, State::Scheduled { run_at: NOW.plus(seconds(100)) });
    assert_eq!(view.deadline, NOW.plus(seconds(3_600)));
    assert_eq!(book.extend(held[1].lease, LEASE, NOW.plus(seconds(59))), Held::Until(NOW.plus(seconds(119))));
    assert_eq!(book.changes().len(), 3);
    book.roll_back();
    book.check();
    book.assert_same(&before);
    book.tick(NOW);
    assert_eq!(book.show(JobId(1), NOW).unwrap().state, State::Scheduled { run_at: NOW.plus(seconds(100)) });
    assert_eq!(book.extend(held[1].lease, LEASE, NOW.plus(seconds(59))), Held::Until(NOW.plus(seconds(119))));
}
