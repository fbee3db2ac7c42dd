//! How well the course does over many pretend tracks. `--nocapture` shows the table.

use super::pretend::{Kind, Track};
use super::{Order, Step};

/// What the tracks of a kind came to, on average.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    /// The share of tracks that were at least 98 % full.
    full: f64,
    least_fill: f64,
    fill: f64,
    /// Frames encoded in vain, and frames of windows, as shares of all.
    redone: f64,
    windows: f64,
    /// The share of tracks without a repair.
    clean: f64,
    /// Standard deviation of the CRF over a track's frames.
    spread: f64,
}

impl Figures {
    fn of(kind: Kind, tracks: u64) -> Self {
        let mut sum = Self { least_fill: 1.0, ..Self::default() };
        let one = 1.0 / number(tracks);
        for seed in 0..tracks {
            let track = Track::new(seed, kind);
            let outcome = track.run();
            let fill = outcome.fill();
            assert_eq!(outcome.end, Step::Done, "{kind:?} {seed}");
            assert!(fill <= 1.0, "{kind:?} {seed} {fill}");
            let frames = number(u64::try_from(track.frames()).unwrap());
            sum.full += one * f64::from(u8::from(fill >= 0.98));
            sum.least_fill = sum.least_fill.min(fill);
            sum.fill += one * fill;
            sum.redone += one * number(outcome.course.frames_redone()) / frames;
            sum.windows += one * number(outcome.course.probe_frames()) / frames;
            sum.clean += one * f64::from(u8::from(outcome.course.repairs() == 0));
            sum.spread += one * outcome.spread;
        }
        sum
    }
}

fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// All kinds of tracks that are tried, and how many of each.
fn kinds() -> Vec<(Kind, u64)> {
    let lengths = [(1, (85, 95), 30), (3, (100, 300), 16), (9, (90, 300), 8), (40, (90, 300), 1)];
    let ways = [
        (4.0, Order::Any, 1),
        (0.8, Order::Any, 1),
        (4.0, Order::Any, 4),
        (4.0, Order::AsTheyArrive, 2),
        (4.0, Order::InTime, 1),
    ];
    let mut kinds = Vec::new();
    for (segments, frames, tracks) in lengths {
        for hard in [false, true] {
            for (deviation, order, workers) in ways {
                // A single segment is the same with any number of workers and in any order.
                if segments > 1 || (workers == 1 && order == Order::Any) {
                    let kind = Kind { segments, frames, hard, deviation, order, workers, counted: true };
                    kinds.push((kind, tracks));
                }
            }
        }
    }
    kinds
}

#[test]
fn tracks_are_full_and_little_is_encoded_twice() {
    println!("segments map   belief order   workers |  full least  mean | redone windows clean | spread");
    let (mut redone, mut full, mut count) = (0.0, 0.0, 0.0);
    for (kind, tracks) in kinds() {
        let figures = Figures::of(kind, tracks);
        println!(
            "{:8} {:5} {:6} {:7} {:7} | {:.3} {:.3} {:.3} |  {:.3}   {:.3}  {:.2} |   {:.2}",
            kind.segments,
            if kind.hard { "hard" } else { "easy" },
            kind.deviation,
            format!("{:?}", kind.order),
            kind.workers,
            figures.full,
            figures.least_fill,
            figures.fill,
            figures.redone,
            figures.windows,
            figures.clean,
            figures.spread,
        );
        assert!(figures.least_fill >= 0.96, "{kind:?} {figures:?}");
        assert!(figures.spread <= if kind.hard { 2.8 } else { 0.95 }, "{kind:?} {figures:?}");
        assert!(kind.hard || kind.segments == 1 || figures.redone <= 0.04, "{kind:?} {figures:?}");
        redone += figures.redone;
        full += figures.full;
        count += 1.0;
    }
    println!("all: {:.3} full, {:.3} redone", full / count, redone / count);
    assert!(full / count >= 0.9 && redone / count <= 0.07);
}

#[test]
fn numbers_of_frames_that_are_only_about_right_do_little_harm() {
    for segments in [1, 3, 9] {
        let kind = Kind {
            segments,
            frames: (90, 250),
            hard: false,
            deviation: 4.0,
            order: Order::Any,
            workers: 1,
            counted: false,
        };
        let figures = Figures::of(kind, 24);
        assert!(figures.least_fill >= 0.96 && figures.redone < 0.3, "{kind:?} {figures:?}");
    }
}
