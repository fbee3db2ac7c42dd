use std::fmt::Write;

use super::*;

const RULES: Rules = Rules { max_attempts: 3, max_alone_crashes: 2, max_spared: 2 };
const NOW: WallTime = WallTime::from_millis(1_000_000);
const BEFORE: WallTime = WallTime::from_millis(900_000);
const LATER: WallTime = WallTime::from_millis(1_100_000);
const DEADLINE: WallTime = WallTime::from_millis(2_000_000);
const TOKEN: LeaseToken = LeaseToken(7);

const fn leased(alone: bool) -> State {
    State::Leased { token: TOKEN, until: LATER, alone }
}

const STATES: [(&str, State); 6] = [
    ("scheduled", State::Scheduled { run_at: BEFORE }),
    ("suspect", State::Suspect { run_at: BEFORE }),
    ("leased", leased(false)),
    ("leased alone", leased(true)),
    ("dead", State::Dead { reason: DeadReason::Attempts, at: BEFORE }),
    ("done", State::Done),
];

const EVENTS: [(&str, Event); 13] = [
    ("lease", Event::Lease { token: TOKEN, until: LATER }),
    ("extend", Event::Extend { token: TOKEN, until: LATER }),
    ("engage", Event::Engage { token: TOKEN }),
    ("intend", Event::Intend { token: TOKEN }),
    ("complete", Event::Complete { token: TOKEN }),
    ("retry", Event::Retry { token: TOKEN, run_at: LATER }),
    ("bury", Event::Bury { token: TOKEN, why: DeadReason::Permanent }),
    ("release", Event::Release { token: TOKEN, run_at: NOW }),
    ("lease runs out", Event::Expire),
    ("process dies", Event::Crash),
    ("deadline passes", Event::Deadline),
    ("revive", Event::Revive { deadline: DEADLINE }),
    ("forget", Event::Forget),
];

const fn life(state: State) -> Life {
    Life { state, attempts: 1, suspicion: 0, spared: 0, engaged: true, generation: 0, deadline: DEADLINE }
}

/// The events that name a lease, and those that come when their moment has come.
fn moment(event: Event) -> WallTime {
    match event {
        Event::Expire => LATER,
        Event::Deadline => DEADLINE,
        _ => NOW,
    }
}

fn word(outcome: Result<Option<Life>, Refusal>) -> &'static str {
    match outcome {
        Ok(None) => "forgotten",
        Ok(Some(life)) => match life.state {
            State::Scheduled { .. } => "scheduled",
            State::Suspect { .. } => "suspect",
            State::Leased { alone: false, .. } => "leased",
            State::Leased { alone: true, .. } => "leased alone",
            State::Dead { .. } => "dead",
            State::Done => "done",
        },
        Err(Refusal::Lost) => "lost",
        Err(Refusal::Unfit) => "no",
        Err(refusal @ (Refusal::Early | Refusal::Late)) => panic!("the moment is right: {refusal:?}"),
    }
}

/// What can come of it, over all counts that a job can have.
fn outcomes(state: State, event: Event) -> String {
    const ORDER: [&str; 9] =
        ["scheduled", "suspect", "leased", "leased alone", "dead", "done", "forgotten", "lost", "no"];
    let mut found = Vec::new();
    for attempts in 1..=RULES.max_attempts {
        for suspicion in 0..=RULES.max_alone_crashes {
            for engaged in [false, true] {
                let life = Life { attempts, suspicion, engaged, ..life(state) };
                found.push(word(step(life, event, moment(event), RULES)));
            }
        }
    }
    ORDER.into_iter().filter(|word| found.contains(word)).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_table_in_the_docs_is_what_the_code_does() {
    let mut table = String::from("| what happens |");
    for (name, _) in STATES {
        write!(table, " {name} |").unwrap();
    }
    table.push_str("\n|---|---|---|---|---|---|---|\n");
    for (name, event) in EVENTS {
        write!(table, "| {name} |").unwrap();
        for (_, state) in STATES {
            write!(table, " {} |", outcomes(state, event)).unwrap();
        }
        table.push('\n');
    }
    let docs = include_str!("../../../../docs/queue.md");
    let begin = docs.find("<!-- table: begin -->\n").unwrap() + "<!-- table: begin -->\n".len();
    let end = docs.find("<!-- table: end -->").unwrap();
    assert_eq!(&docs[begin..end], table);
}

#[test]
fn another_token_is_lost_whatever_it_says() {
    let other = LeaseToken(8);
    let events = [
        Event::Extend { token: other, until: LATER },
        Event::Engage { token: other },
        Event::Intend { token: other },
        Event::Complete { token: other },
        Event::Retry { token: other, run_at: LATER },
        Event::Bury { token: other, why: DeadReason::Permanent },
        Event::Release { token: other, run_at: NOW },
    ];
    for event in events {
        for alone in [false, true] {
            assert_eq!(step(life(leased(alone)), event, NOW, RULES), Err(Refusal::Lost), "{event:?}");
        }
    }
}

#[test]
fn a_lease_is_over_at_its_end_even_if_nobody_has_noticed() {
    for (name, event) in &EVENTS[1..8] {
        assert_eq!(step(life(leased(false)), *event, LATER, RULES), Err(Refusal::Lost), "{name}");
    }
}

#[test]
fn nothing_happens_before_its_moment() {
    let lease = Event::Lease { token: TOKEN, until: DEADLINE };
    for state in [State::Scheduled { run_at: LATER }, State::Suspect { run_at: LATER }] {
        assert_eq!(step(life(state), lease, NOW, RULES), Err(Refusal::Early));
        assert_eq!(step(life(state), lease, DEADLINE, RULES), Err(Refusal::Late));
        assert_eq!(step(life(state), Event::Deadline, NOW, RULES), Err(Refusal::Early));
    }
    assert_eq!(step(life(leased(true)), Event::Expire, NOW, RULES), Err(Refusal::Early));
}

#[track_caller]
fn becomes(before: Life, event: Event, at: WallTime) -> Life {
    step(before, event, at, RULES).unwrap().unwrap()
}

#[test]
fn an_attempt_is_counted_when_it_begins_and_given_back_when_it_was_none() {
    let begun = becomes(life(STATES[0].1), EVENTS[0].1, NOW);
    assert_eq!(begun.attempts, 2);
    assert_eq!(becomes(begun, Event::Release { token: TOKEN, run_at: NOW }, NOW).attempts, 1);
    assert_eq!(becomes(begun, Event::Expire, LATER).attempts, 2);
    let engage = |job| becomes(job, Event::Engage { token: TOKEN }, NOW);
    let crashed = becomes(engage(begun), Event::Crash, NOW);
    assert_eq!((crashed.attempts, crashed.suspicion), (1, 1));
    let alone = becomes(crashed, EVENTS[0].1, NOW);
    assert_eq!(alone.state, leased(true));
    let again = becomes(engage(alone), Event::Crash, NOW);
    assert_eq!((again.attempts, again.suspicion), (2, 2));
}

#[test]
fn the_second_crash_alone_is_poison() {
    let mut job = Life { attempts: 0, ..life(STATES[0].1) };
    let engaged = |job| becomes(becomes(job, EVENTS[0].1, NOW), Event::Engage { token: TOKEN }, NOW);
    for _ in 0..2 {
        job = becomes(engaged(job), Event::Crash, NOW);
        assert_eq!(job.state, State::Suspect { run_at: NOW });
    }
    job = becomes(engaged(job), Event::Crash, NOW);
    assert_eq!(job.state, State::Dead { reason: DeadReason::Poison, at: NOW });
    let revived = becomes(job, Event::Revive { deadline: DEADLINE }, NOW);
    assert_eq!((revived.attempts, revived.suspicion, revived.generation), (0, 1, 1));
    assert_eq!(revived.state, State::Suspect { run_at: NOW });
}

#[test]
fn a_death_before_the_engine_or_after_it_suspects_nobody_for_a_while() {
    let lease = |job| becomes(job, EVENTS[0].1, NOW);
    let engage = |job| becomes(job, Event::Engage { token: TOKEN }, NOW);
    let mut job = Life { attempts: 0, ..life(STATES[0].1) };
    job = becomes(lease(job), Event::Crash, NOW);
    assert_eq!((job.state, job.attempts, job.suspicion), (State::Scheduled { run_at: NOW }, 0, 0));
    // What it posts is made.
    job = becomes(becomes(engage(lease(job)), Event::Intend { token: TOKEN }, NOW), Event::Crash, NOW);
    assert_eq!((job.state, job.attempts, job.suspicion), (State::Scheduled { run_at: NOW }, 0, 0));
    // But nothing runs for ever: it may be the download that it dies of.
    for state in [State::Suspect { run_at: NOW }, State::Suspect { run_at: NOW }] {
        job = becomes(lease(job), Event::Crash, NOW);
        assert_eq!(job.state, state);
    }
    job = becomes(lease(job), Event::Crash, NOW);
    assert_eq!(job.state, State::Dead { reason: DeadReason::Poison, at: NOW });
}

#[test]
fn a_suspect_that_dies_before_the_engine_is_not_charged() {
    let suspect = Life { suspicion: 2, ..life(STATES[1].1) };
    let alone = becomes(suspect, EVENTS[0].1, NOW);
    let after = becomes(alone, Event::Crash, NOW);
    assert_eq!((after.state, after.attempts, after.suspicion), (State::Suspect { run_at: NOW }, 1, 2));
    let engaged = becomes(alone, Event::Engage { token: TOKEN }, NOW);
    assert_eq!(
        becomes(engaged, Event::Crash, NOW).state,
        State::Dead { reason: DeadReason::Poison, at: NOW }
    );
}

#[test]
fn what_would_come_too_late_is_dead_at_once() {
    let job = life(leased(false));
    for run_at in [DEADLINE, WallTime::from_millis(u64::MAX)] {
        let after = becomes(job, Event::Retry { token: TOKEN, run_at }, NOW);
        assert_eq!(after.state, State::Dead { reason: DeadReason::Deadline, at: NOW });
    }
    let last = Life { attempts: RULES.max_attempts, ..job };
    let after = becomes(last, Event::Retry { token: TOKEN, run_at: LATER }, NOW);
    assert_eq!(after.state, State::Dead { reason: DeadReason::Attempts, at: NOW });
    assert_eq!(
        becomes(job, Event::Expire, DEADLINE).state,
        State::Dead { reason: DeadReason::Deadline, at: DEADLINE }
    );
}
