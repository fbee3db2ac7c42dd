use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use crossbeam_channel::{bounded, unbounded};

use super::*;
use crate::error::ErrorKind;
use crate::progress::{Control, Stage};

/// Long enough that no test reaches it.
const LONG: Duration = Duration::from_secs(3600);

fn pool(threads: usize, depth: usize) -> Pool<u32> {
    Pool::start(threads, depth, true).unwrap()
}

fn work(body: impl FnOnce(&Arc<Control>) -> Result<u32, Error> + Send + 'static) -> Work<u32> {
    Box::new(body)
}

fn answer(value: u32) -> Work<u32> {
    work(move |_| Ok(value))
}

/// A job that sits in one call, deaf to every stop, until its gate opens.
struct Stuck {
    work: Work<u32>,
    begun: Receiver<()>,
    /// Opens when it is dropped.
    gate: Sender<()>,
    ended: Receiver<()>,
}

fn stuck() -> Stuck {
    let (begin, begun) = bounded(1);
    let (gate, closed) = bounded::<()>(0);
    let (end, ended) = bounded(1);
    let work = work(move |_| {
        begin.send(()).unwrap();
        assert!(closed.recv().is_err(), "the gate opens when it is dropped");
        end.send(()).unwrap();
        Ok(1)
    });
    Stuck { work, begun, gate, ended }
}

/// A job that runs until it is told to stop.
fn obedient() -> (Work<u32>, Receiver<()>, Receiver<()>) {
    let (begin, begun) = bounded(1);
    let (end, ended) = bounded(1);
    let work = work(move |control| {
        begin.send(()).unwrap();
        while control.stop().is_ok() {
            thread::yield_now();
        }
        end.send(()).unwrap();
        Err(Error::corrupt("whatever the stop interrupted"))
    });
    (work, begun, ended)
}

/// Notes each wake-up in a channel.
struct Bell(Sender<()>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

fn bell() -> (Waker, Receiver<()>) {
    let (ring, rung) = unbounded();
    (Waker::from(Arc::new(Bell(ring))), rung)
}

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Drives a future to its end on this thread.
fn drive<F: Future + Unpin>(mut future: F) -> F::Output {
    let (waker, rung) = bell();
    loop {
        if let Poll::Ready(output) = poll(&mut future, &waker) {
            return output;
        }
        rung.recv().unwrap();
    }
}

#[track_caller]
fn check_kind<V: fmt::Debug>(result: Result<V, Error>, kind: ErrorKind) {
    assert_eq!(result.unwrap_err().kind(), kind);
}

#[test]
fn result_reaches_who_blocks_and_who_awaits() {
    let pool = pool(1, 4);
    assert_eq!(pool.try_submit(LONG, answer(7)).unwrap().wait().unwrap(), 7);
    assert_eq!(drive(pool.try_submit(LONG, answer(8)).unwrap()).unwrap(), 8);
    assert_eq!(drive(drive(pool.submit(LONG, answer(9))).unwrap()).unwrap(), 9);
}

#[test]
fn finished_job_shows_the_last_stage_and_the_whole_fraction() {
    let pool = pool(1, 1);
    let job = stuck();
    let ticket = pool.try_submit(LONG, job.work).unwrap();
    let watcher = ticket.watcher();
    assert_eq!(watcher.progress().stage, Stage::Queued);
    drop(job.gate);
    assert_eq!(ticket.wait().unwrap(), 1);
    assert_eq!(watcher.progress().stage, Stage::Done);
    assert!((watcher.progress().fraction - 1.0).abs() < 1e-6);
}

#[test]
fn future_polled_after_its_end_gives_an_error() {
    let pool = pool(1, 1);
    let (waker, _) = bell();
    let mut submission = pool.submit(LONG, answer(1));
    let Poll::Ready(Ok(mut ticket)) = poll(&mut submission, &waker) else { panic!("there was room") };
    assert!(matches!(poll(&mut submission, &waker), Poll::Ready(Err(Error::Internal { .. }))));
    assert_eq!(drive(&mut ticket).unwrap(), 1);
    check_kind(drive(&mut ticket), ErrorKind::Internal);
}

#[test]
fn full_queue_is_busy_and_says_how_deep_it_is() {
    let pool = pool(1, 2);
    let job = stuck();
    let first = pool.try_submit(LONG, job.work).unwrap();
    job.begun.recv().unwrap();
    let queued = [pool.try_submit(LONG, answer(2)).unwrap(), pool.try_submit(LONG, answer(3)).unwrap()];
    assert!(matches!(pool.try_submit(LONG, answer(4)), Err(Error::Busy { depth: 2 })));
    drop(job.gate);
    assert_eq!(first.wait().unwrap(), 1);
    assert_eq!(queued.map(|ticket| ticket.wait().unwrap()), [2, 3]);
}

/// A pool of one thread with one job at work and one in its only place.
fn crowded() -> (Pool<u32>, Sender<()>, [Ticket<u32>; 2], Sender<()>) {
    let pool = pool(1, 1);
    let (running, queued) = (stuck(), stuck());
    let first = pool.try_submit(LONG, running.work).unwrap();
    running.begun.recv().unwrap();
    let second = pool.try_submit(LONG, queued.work).unwrap();
    (pool, running.gate, [first, second], queued.gate)
}

#[test]
fn submission_is_woken_when_a_worker_takes_a_job() {
    let (pool, first_gate, _tickets, second_gate) = crowded();
    let (waker, rung) = bell();
    let mut submission = pool.submit(LONG, answer(5));
    assert!(poll(&mut submission, &waker).is_pending());
    drop(first_gate);
    rung.recv().unwrap();
    let Poll::Ready(Ok(ticket)) = poll(&mut submission, &waker) else { panic!("woken for a place") };
    drop(second_gate);
    assert_eq!(ticket.wait().unwrap(), 5);
}

#[test]
fn submission_keeps_its_turn_over_polls_and_its_last_waker() {
    let (pool, first_gate, _tickets, _second_gate) = crowded();
    let (old, old_rung) = bell();
    let (new, new_rung) = bell();
    let (other, other_rung) = bell();
    let (mut early, mut late) = (pool.submit(LONG, answer(5)), pool.submit(LONG, answer(6)));
    assert!(poll(&mut early, &old).is_pending());
    assert!(poll(&mut late, &other).is_pending());
    assert!(poll(&mut early, &new).is_pending());
    drop(first_gate);
    new_rung.recv().unwrap();
    assert!(old_rung.try_recv().is_err());
    assert!(other_rung.try_recv().is_err());
}

#[test]
fn submission_dropped_after_its_wake_up_wakes_the_next() {
    let (pool, first_gate, _tickets, second_gate) = crowded();
    let (waker, rung) = bell();
    let (next_waker, next_rung) = bell();
    let (mut submission, mut next) = (pool.submit(LONG, answer(5)), pool.submit(LONG, answer(6)));
    assert!(poll(&mut submission, &waker).is_pending());
    assert!(poll(&mut next, &next_waker).is_pending());
    drop(first_gate);
    rung.recv().unwrap();
    assert!(next_rung.try_recv().is_err(), "one place, one wake-up");
    drop(submission);
    next_rung.recv().unwrap();
    let Poll::Ready(Ok(ticket)) = poll(&mut next, &next_waker) else { panic!("woken for a place") };
    drop(second_gate);
    assert_eq!(ticket.wait().unwrap(), 6);
}

#[test]
fn submission_dropped_before_its_wake_up_leaves_the_line() {
    let (pool, first_gate, _tickets, _second_gate) = crowded();
    let (waker, rung) = bell();
    let (next_waker, next_rung) = bell();
    let (mut submission, mut next) = (pool.submit(LONG, answer(5)), pool.submit(LONG, answer(6)));
    assert!(poll(&mut submission, &waker).is_pending());
    assert!(poll(&mut next, &next_waker).is_pending());
    drop(submission);
    assert!(next_rung.try_recv().is_err(), "there is no place yet");
    drop(first_gate);
    next_rung.recv().unwrap();
    assert!(rung.try_recv().is_err());
}

#[test]
fn all_submissions_of_a_crowd_get_in() {
    let pool = Arc::new(pool(2, 2));
    let sum = Arc::new(AtomicUsize::new(0));
    let submitters: Vec<_> = (0..4)
        .map(|_| {
            let (pool, sum) = (Arc::clone(&pool), Arc::clone(&sum));
            let submit = move || {
                for value in 0..50 {
                    let (waker, _rung) = bell();
                    let mut submission = pool.submit(LONG, answer(1));
                    // Every third gives up when it would have to wait.
                    let ticket = match poll(&mut submission, &waker) {
                        Poll::Ready(ticket) => ticket.unwrap(),
                        Poll::Pending if value % 3 == 0 => continue,
                        Poll::Pending => drive(submission).unwrap(),
                    };
                    drive(ticket).unwrap();
                    sum.fetch_add(1, Ordering::Relaxed);
                }
            };
            thread::Builder::new().spawn(submit).unwrap()
        })
        .collect();
    for submitter in submitters {
        submitter.join().unwrap();
    }
    assert!(sum.load(Ordering::Relaxed) >= 4 * 33);
}

#[test]
fn cancel_is_seen_at_once_although_the_thread_is_stuck() {
    let pool = pool(1, 1);
    let job = stuck();
    let ticket = pool.try_submit(LONG, job.work).unwrap();
    let watcher = ticket.watcher();
    job.begun.recv().unwrap();
    watcher.cancel();
    check_kind(ticket.wait(), ErrorKind::Cancelled);
    assert!(job.ended.try_recv().is_err(), "the thread is still in its call");
    assert_eq!(watcher.progress().stage, Stage::Done);
    drop(job.gate);
    job.ended.recv().unwrap();
    assert_eq!(pool.try_submit(LONG, answer(2)).unwrap().wait().unwrap(), 2);
}

#[test]
fn cancel_wakes_who_awaits() {
    let pool = pool(1, 1);
    let job = stuck();
    let mut ticket = pool.try_submit(LONG, job.work).unwrap();
    let (waker, rung) = bell();
    assert!(poll(&mut ticket, &waker).is_pending());
    ticket.watcher().cancel();
    rung.recv().unwrap();
    assert!(matches!(poll(&mut ticket, &waker), Poll::Ready(Err(Error::Cancelled))));
}

#[test]
fn cancel_after_the_result_changes_nothing() {
    let pool = pool(1, 1);
    let job = stuck();
    let mut ticket = pool.try_submit(LONG, job.work).unwrap();
    let (waker, rung) = bell();
    assert!(poll(&mut ticket, &waker).is_pending());
    drop(job.gate);
    rung.recv().unwrap();
    ticket.watcher().cancel();
    assert_eq!(ticket.wait().unwrap(), 1);
}

#[test]
fn deadline_is_seen_although_the_thread_is_stuck() {
    let pool = pool(2, 1);
    let (slow, job) = (stuck(), stuck());
    // The clock sleeps until the far deadline and must be woken for the near one.
    let _patient = pool.try_submit(LONG, slow.work).unwrap();
    slow.begun.recv().unwrap();
    let allowed = Duration::from_millis(5);
    let ticket = pool.try_submit(allowed, job.work).unwrap();
    assert!(matches!(ticket.wait(), Err(Error::Deadline { allowed: told }) if told == allowed));
    assert!(job.ended.try_recv().is_err(), "the thread is still in its call");
}

#[test]
fn time_in_the_queue_does_not_count() {
    let pool = pool(1, 1);
    let job = stuck();
    let first = pool.try_submit(Duration::from_millis(20), job.work).unwrap();
    job.begun.recv().unwrap();
    let mut second = pool.try_submit(Duration::from_millis(1), answer(2)).unwrap();
    check_kind(first.wait(), ErrorKind::Deadline);
    let (waker, _) = bell();
    assert!(poll(&mut second, &waker).is_pending());
}

#[test]
fn endless_wall_time_is_no_deadline() {
    let pool = pool(1, 1);
    assert_eq!(pool.try_submit(Duration::MAX, answer(2)).unwrap().wait().unwrap(), 2);
}

#[test]
fn error_after_a_stop_gives_way_to_the_reason_to_stop() {
    let pool = pool(1, 1);
    let fails = work(|_| Err(Error::corrupt("whatever the stop interrupted")));
    check_kind(pool.try_submit(Duration::ZERO, fails).unwrap().wait(), ErrorKind::Deadline);
}

#[test]
fn panic_ends_its_job_alone_and_is_told_on_one_line() {
    let pool = pool(1, 1);
    // `resume_unwind` does not go through the panic hook, which would print.
    for payload in
        [Box::new("of\n  two lines") as Box<dyn std::any::Any + Send>, Box::new("of\ntwo lines".to_owned())]
    {
        let ticket = pool.try_submit(LONG, work(move |_| panic::resume_unwind(payload))).unwrap();
        let error = ticket.wait().unwrap_err();
        assert_eq!(error.to_string(), "internal error: a job panicked: of two lines");
    }
    assert_eq!(pool.try_submit(LONG, answer(2)).unwrap().wait().unwrap(), 2);
}

#[test]
fn dropped_ticket_stops_the_running_job() {
    let pool = pool(1, 1);
    let (work, begun, ended) = obedient();
    let ticket = pool.try_submit(LONG, work).unwrap();
    begun.recv().unwrap();
    drop(ticket);
    ended.recv().unwrap();
}

#[test]
fn dropped_ticket_lets_go_of_what_the_queued_job_holds() {
    let (pool, _first_gate, _tickets, _second_gate) = crowded();
    let (held, watched) = bounded::<()>(0);
    let mut submission = pool.submit(LONG, work(move |_| held.send(()).map_or(Ok(0), |()| Ok(1))));
    let (waker, _) = bell();
    assert!(poll(&mut submission, &waker).is_pending());
    drop(submission);
    assert!(watched.recv().is_err());

    let pool = self::pool(1, 1);
    let job = stuck();
    let _running = pool.try_submit(LONG, job.work).unwrap();
    job.begun.recv().unwrap();
    let (held, watched) = bounded::<()>(0);
    drop(pool.try_submit(LONG, work(move |_| held.send(()).map_or(Ok(0), |()| Ok(1)))).unwrap());
    assert!(watched.recv().is_err());
}

#[test]
fn late_result_is_dropped() {
    let pool: Pool<Arc<()>> = Pool::start(1, 1, false).unwrap();
    let (begin, begun) = bounded(1);
    let (gate, closed) = bounded::<()>(0);
    let value = Arc::new(());
    let result = Arc::clone(&value);
    let ticket = pool
        .try_submit(
            LONG,
            Box::new(move |_| {
                begin.send(()).unwrap();
                let _ = closed.recv();
                Ok(result)
            }),
        )
        .unwrap();
    begun.recv().unwrap();
    ticket.watcher().cancel();
    check_kind(ticket.wait(), ErrorKind::Cancelled);
    drop(gate);
    drop(pool);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn dropped_pool_cancels_all_jobs_and_joins_its_threads() {
    let pool = pool(1, 1);
    let (work, begun, ended) = obedient();
    let running = pool.try_submit(LONG, work).unwrap();
    begun.recv().unwrap();
    let queued = pool.try_submit(LONG, answer(2)).unwrap();
    let mut waiting = pool.submit(LONG, answer(3));
    let (waker, rung) = bell();
    assert!(poll(&mut waiting, &waker).is_pending());
    drop(pool);
    ended.try_recv().expect("the thread ended before the drop did");
    rung.try_recv().expect("the submission was woken");
    check_kind(running.wait(), ErrorKind::Cancelled);
    check_kind(queued.wait(), ErrorKind::Cancelled);
    check_kind(drive(waiting), ErrorKind::Cancelled);
}

#[test]
fn pool_dropped_on_its_own_thread_does_not_wait_for_itself() {
    let pool = Arc::new(pool(1, 1));
    let (hand_over, handed) = bounded::<Arc<Pool<u32>>>(1);
    let (end, ended) = bounded(1);
    let last = work(move |_| {
        drop(handed.recv());
        end.send(()).unwrap();
        Ok(1)
    });
    let ticket = pool.try_submit(LONG, last).unwrap();
    hand_over.send(pool).unwrap();
    ended.recv().unwrap();
    check_kind(ticket.wait(), ErrorKind::Cancelled);
}
