//! Jobs side by side: how they wait, report, stop and end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use azalea_engine::{ByteSize, Engine, Error, ErrorKind, GrowingWriter, JobHandle, Source, Stage};

use crate::support::clips;
use crate::support::{KIB, MIB, fit, near, wait_until, within};

/// A job that waits for a download that does not move.
fn waiting(engine: &Engine) -> (GrowingWriter, Result<JobHandle, Error>) {
    let (writer, source) = Source::growing(ByteSize::mebibytes(1), None);
    (writer, engine.try_submit(source, within(MIB)))
}

#[track_caller]
fn wait_until_begun(job: &JobHandle) {
    wait_until("the job begins", || job.progress().stage == Stage::Probe);
}

#[test]
fn full_queue_is_said_at_once() {
    let engine = Engine::builder().threads(1).queue_depth(1).build().unwrap();
    let (_first_writer, first) = waiting(&engine);
    let first = first.unwrap();
    wait_until_begun(&first);
    let (_second_writer, second) = waiting(&engine);
    let second = second.unwrap();
    match waiting(&engine).1 {
        Err(error @ Error::Busy { depth }) => assert_eq!((depth, error.kind()), (1, ErrorKind::Busy)),
        other => panic!("{other:?}"),
    }
    assert_eq!(second.progress().stage, Stage::Queued);
    drop(first);
    wait_until_begun(&second);
    assert!(waiting(&engine).1.is_ok(), "there is room again");
}

#[test]
fn two_jobs_run_at_once() {
    let engine = Engine::builder().threads(2).build().unwrap();
    let jobs = [(); 2].map(|()| {
        let (writer, job) = waiting(&engine);
        (writer, job.unwrap())
    });
    for (_, job) in &jobs {
        wait_until_begun(job);
    }
    let clip = clips::plain();
    for (mut writer, job) in jobs {
        writer.append(clip.clone()).unwrap();
        writer.finish();
        assert!(*job.wait().unwrap().bytes() == clip);
    }
}

#[test]
fn two_jobs_at_once_give_what_each_gives_alone() {
    let request = within(120 * KIB);
    let alone = [clips::old(), clips::noisy()].map(|clip| fit(&clip, request));
    let engine = Engine::builder().threads(2).build().unwrap();
    let together = [clips::old(), clips::noisy()]
        .map(|clip| engine.try_submit(Source::bytes(clip), request).unwrap())
        .map(|job| job.wait().unwrap());
    for (alone, together) in alone.iter().zip(&together) {
        assert_eq!(alone.report().dimensions, together.report().dimensions);
        assert_eq!(alone.report().frames, together.report().frames);
        near("fill", together.report().fill(), alone.report().fill(), 0.2);
    }
}

#[test]
fn progress_never_goes_back_and_ends_at_one() {
    let engine = Engine::builder().threads(1).build().unwrap();
    for (clip, limit) in [(clips::plain(), MIB), (clips::old(), MIB), (clips::noisy(), 100 * KIB)] {
        let job = engine.try_submit(Source::bytes(clip), within(limit)).unwrap();
        let control = job.control();
        let mut seen = vec![control.progress()];
        wait_until("the job ends", || {
            seen.push(control.progress());
            control.progress().stage == Stage::Done
        });
        let frames = job.wait().unwrap().report().frames;
        seen.push(control.progress());
        for pair in seen.windows(2) {
            assert!(pair[0].fraction <= pair[1].fraction, "{pair:?}");
            assert!(pair[0].frames <= pair[1].frames, "{pair:?}");
        }
        let last = seen.last().unwrap();
        assert!((last.fraction - 1.0).abs() < f32::EPSILON, "{last:?}");
        assert!(last.frames == 0 || last.frames >= frames, "{last:?}, {frames} in the result");
    }
}

/// A minute of hard work.
fn long_job(engine: &Engine) -> JobHandle {
    let clip = clips::make(
        "long.mkv",
        "-f lavfi -i testsrc2=size=1280x720:rate=30:duration=20 -c:v mpeg4 -q:v 2 -preset ultrafast",
    );
    engine.try_submit(Source::bytes(clip), within(MIB)).unwrap()
}

#[test]
fn cancelled_work_ends_at_once() {
    let engine = Engine::builder().threads(1).build().unwrap();
    let job = long_job(&engine);
    wait_until("pictures are encoded", || job.progress().frames > 0);
    let control = job.control();
    let began = Instant::now();
    control.cancel();
    assert_eq!(job.wait().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // The thread is free again for whoever comes next.
    let clip = clips::plain();
    assert!(
        *engine.try_submit(Source::bytes(clip.clone()), within(MIB)).unwrap().wait().unwrap().bytes() == clip
    );
}

#[test]
fn dropped_engine_settles_its_jobs() {
    let engine = Engine::builder().threads(1).build().unwrap();
    let running = long_job(&engine);
    wait_until("pictures are encoded", || running.progress().frames > 0);
    let (_writer, queued) = waiting(&engine);
    let queued = queued.unwrap();
    let began = Instant::now();
    drop(engine);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    for job in [running, queued] {
        assert_eq!(job.wait().unwrap_err().kind(), ErrorKind::Cancelled);
    }
}

/// Wakes the thread that blocks on a future.
struct Bell(Thread);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Bell(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn futures_work_without_any_runtime() {
    let engine = Engine::builder().threads(1).queue_depth(1).build().unwrap();
    let clip = clips::plain();
    let fitted = block_on(async {
        let mut jobs = Vec::new();
        for _ in 0..4 {
            // More than there is room for: each waits for its place.
            jobs.push(engine.submit(Source::bytes(clip.clone()), within(MIB)).await?);
        }
        let mut fitted = Vec::new();
        for job in jobs {
            fitted.push(job.await?);
        }
        Ok::<_, Error>(fitted)
    });
    assert!(fitted.unwrap().iter().all(|fitted| *fitted.bytes() == clip));
}
