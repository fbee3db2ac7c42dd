use std::time::Duration;

use super::super::signals::Told;
use super::*;
use crate::clock;

fn told(most: u32, remaining: u32, seconds: u64) -> Signals {
    let limit = Some(Told { most, remaining, reset_after: Duration::from_secs(seconds) });
    Signals { bucket: Some("a".into()), limit, success: true }
}

/// Takes as many as it lets through, and says how many.
fn take_all(window: &mut Window, now: Instant) -> u32 {
    let mut taken = 0;
    while window.ready(now) == Ready::Now && taken < 100 {
        window.take(now);
        taken += 1;
    }
    taken
}

fn answer(window: &mut Window, signals: &Signals, now: Instant) {
    window.answered(signals, now);
    window.settle();
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn the_first_answer_tells_the_limit() {
    let now = clock::instant();
    let mut window = Window::default();
    assert_eq!(take_all(&mut window, now), 1);
    assert_eq!(window.ready(now), Ready::AfterAnswer);
    answer(&mut window, &told(5, 4, 5), now);
    assert_eq!(take_all(&mut window, now), 4);
    assert_eq!(window.ready(now), Ready::At(now + seconds(5)));
    // The next window is as large, and its end is told by its first answer.
    let next = now + seconds(5);
    assert_eq!(take_all(&mut window, next), 5);
    assert_eq!(window.ready(next), Ready::AfterAnswer);
    answer(&mut window, &told(5, 4, 5), next);
    assert_eq!(window.ready(next), Ready::At(next + seconds(5)));
}

#[test]
fn answers_in_any_order_leave_the_least() {
    let now = clock::instant();
    let mut window = Window::default();
    window.take(now);
    answer(&mut window, &told(5, 4, 5), now);
    window.take(now);
    window.take(now);
    answer(&mut window, &told(5, 1, 5), now);
    answer(&mut window, &told(5, 3, 5), now);
    assert_eq!(take_all(&mut window, now), 1);
}

#[test]
fn what_others_used_up_is_believed() {
    let now = clock::instant();
    let mut window = Window::default();
    window.take(now);
    answer(&mut window, &told(5, 4, 5), now);
    window.take(now);
    answer(&mut window, &told(5, 0, 5), now);
    assert_eq!(window.ready(now), Ready::At(now + seconds(5)));
}

#[test]
fn an_answer_of_a_later_window_is_not_held_to_the_old_one() {
    let now = clock::instant();
    let mut window = Window::default();
    window.take(now);
    answer(&mut window, &told(2, 1, 5), now);
    window.take(now);
    // A long upload: it is counted in the window in which it ends.
    let late = now + seconds(4);
    answer(&mut window, &told(2, 1, 5), late);
    assert_eq!(window.ready(late), Ready::Now);
}

#[test]
fn a_service_without_limits_is_not_limited() {
    let now = clock::instant();
    let silent = |success| Signals { success, ..Signals::default() };
    let mut window = Window::default();
    window.take(now);
    answer(&mut window, &silent(false), now);
    assert_eq!(take_all(&mut window, now), 1, "a failure says nothing");
    answer(&mut window, &silent(true), now);
    assert_eq!(take_all(&mut window, now), 100);
}

#[test]
fn who_gets_no_answer_does_not_hold_up_the_others() {
    let now = clock::instant();
    let mut window = Window::default();
    window.take(now);
    window.settle();
    assert_eq!(window.ready(now), Ready::Now);
    window.take(now);
    answer(&mut window, &told(1, 0, 1), now);
    let next = now + seconds(1);
    assert_eq!(take_all(&mut window, next), 1);
    assert_eq!(window.ready(next), Ready::AfterAnswer);
    window.settle();
    assert_eq!(take_all(&mut window, next), 1, "and no more than one");
}

#[test]
fn after_one_too_many_nothing_goes_until_then_and_one_goes_after() {
    let now = clock::instant();
    let mut window = Window::default();
    window.take(now);
    answer(&mut window, &told(5, 4, 5), now);
    window.take(now);
    window.blocked(now + seconds(30));
    window.settle();
    window.blocked(now + seconds(3));
    assert_eq!(window.ready(now + seconds(29)), Ready::At(now + seconds(30)));
    assert!(window.matters(now));
    assert_eq!(take_all(&mut window, now + seconds(30)), 1);
}

#[test]
fn another_bucket_is_another_limit() {
    let now = clock::instant();
    let mut window = Window::default();
    window.take(now);
    answer(&mut window, &told(5, 1, 5), now);
    window.take(now);
    let other = Signals { bucket: Some("b".into()), ..told(10, 8, 5) };
    answer(&mut window, &other, now);
    assert_eq!(take_all(&mut window, now), 8);
}
