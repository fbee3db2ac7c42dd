use proptest::collection::vec;
use proptest::num::f64::ANY;
use proptest::prelude::*;

use super::pretend::{Dice, Kind, Track, goal};
use super::{Advice, Belief, Course, Cut, Goal, Order, Segment, Step};
use crate::units::ByteSize;

const KIND: Kind = Kind {
    segments: 5,
    frames: (90, 200),
    hard: false,
    deviation: 4.0,
    order: Order::Any,
    workers: 1,
    counted: true,
};

fn segments(frames: &[u32]) -> Vec<Segment> {
    frames
        .iter()
        .map(|frames| Segment { frames: *frames, source_bytes: Vec::new(), cuts: Vec::new() })
        .collect()
}

fn course(frames: &[u32], belief: Belief) -> Course {
    Course::new(segments(frames), goal(1e6), belief, Order::Any)
}

const SURE: Belief = Belief { crf: 28.0, deviation: 0.8 };
const BLIND: Belief = Belief { crf: 28.0, deviation: 4.0 };

#[test]
fn a_track_without_segments_is_done() {
    let mut course = course(&[], BLIND);
    assert_eq!(course.next(), Step::Done);
    assert_eq!(course.chosen(), Some(vec![]));
}

#[test]
fn a_very_short_track_is_not_probed() {
    assert!(matches!(course(&[48], BLIND).next(), Step::Encode { segment: 0, .. }));
    assert_eq!(course(&[90], BLIND).next(), Step::Probe { segment: 0, frames: 12, crf: 28.0 });
}

#[test]
fn other_windows_wait_for_the_first() {
    let mut course = course(&[200; 12], BLIND);
    let Step::Probe { segment, frames, crf } = course.next() else { panic!("no window") };
    assert_eq!((frames, course.next()), (16, Step::Wait));
    course.probed(segment, crf, &[3000; 16]);
    assert!(matches!(course.next(), Step::Probe { .. }));
    assert!(matches!(course.next(), Step::Probe { .. }));
}

#[test]
fn a_sure_belief_is_tested_once() {
    let mut course = course(&[200; 12], SURE);
    let Step::Probe { segment, crf, .. } = course.next() else { panic!("no window") };
    course.probed(segment, crf, &[400; 16]);
    assert!(matches!(course.next(), Step::Encode { .. }));
    assert_eq!(course.probe_frames(), 16);
}

#[test]
fn small_segments_are_pilots_and_the_last_to_land() {
    let mut course = course(&[300, 110, 250, 100, 280, 120], SURE);
    let Step::Probe { segment, crf, .. } = course.next() else { panic!("no window") };
    course.probed(segment, crf, &[800; 16]);
    let mut order = Vec::new();
    while let Step::Encode { segment, .. } = course.next() {
        order.push(segment);
    }
    assert_eq!(order, [3, 5, 0, 4, 2, 1]);
}

/// Five segments of which none is there yet, after their windows.
fn arriving() -> Course {
    let mut course = Course::new(segments(&[300, 110, 250, 100, 280]), goal(1e6), BLIND, Order::AsTheyArrive);
    for expected in [0, 1] {
        let Step::Probe { segment, crf, .. } = course.next() else { panic!("no window") };
        assert_eq!(segment, expected);
        course.probed(segment, crf, &[800; 16]);
    }
    course
}

#[test]
fn while_segments_arrive_the_first_ones_are_looked_at_and_begun_in_time() {
    let mut course = arriving();
    for expected in [0, 1, 2, 3, 4] {
        let Step::Encode { segment, .. } = course.next() else { panic!("no encode") };
        assert_eq!(segment, expected);
    }
    assert_eq!(course.next(), Step::Wait);
}

#[test]
fn segments_that_are_there_go_first_in_the_usual_order() {
    let mut course = arriving();
    course.arrived(3);
    let mut order = Vec::new();
    while let Step::Encode { segment, .. } = course.next() {
        order.push(segment);
        if order.len() == 2 {
            course.arrived(5);
        }
    }
    assert_eq!(order, [2, 0, 3, 4, 1]);
}

#[test]
fn a_running_decoder_gets_segments_in_time_order() {
    let track = Track::new(3, Kind { order: Order::InTime, ..KIND });
    let mut encodes = Vec::new();
    for step in track.run().steps {
        match step {
            Step::Probe { segment, .. } => assert_eq!(segment, 0),
            Step::Encode { segment, .. } => encodes.push(segment),
            Step::Wait | Step::Done | Step::TooLarge => {}
        }
    }
    encodes.dedup();
    assert_eq!(encodes, [0, 1, 2, 3, 4]);
}

#[test]
fn a_clip_that_fits_transparently_is_smaller_than_the_limit() {
    let track = Track::new(5, KIND);
    let outcome = track.run_to(goal(track.bytes(18.0) * 3.0));
    assert_eq!((outcome.end, outcome.course.repairs()), (Step::Done, 0));
    assert!(outcome.mean < 18.1 && outcome.fill() < 0.5, "{} {}", outcome.mean, outcome.fill());
}

#[test]
fn what_fits_at_no_crf_is_too_large_and_says_how_large() {
    for segments in [1, 3, 12] {
        let track = Track::new(7, Kind { segments, ..KIND });
        let least = track.bytes(47.0);
        let outcome = track.run_to(goal(least * 0.6));
        assert_eq!((outcome.end, outcome.course.chosen()), (Step::TooLarge, None));
        let told = outcome.course.least_bytes().as_f64() / least;
        assert!((0.5..2.0).contains(&told), "{segments} {told}");
    }
}

#[test]
fn a_runaway_is_stopped_early() {
    let mut course = course(&[300, 300, 300], Belief { crf: 20.0, deviation: 1.0 });
    let Step::Probe { segment, crf, .. } = course.next() else { panic!("no window") };
    course.probed(segment, crf, &[1000; 16]);
    let Step::Encode { segment, crf } = course.next() else { panic!("no encode") };
    let mut packets = 0;
    while course.packet(segment, 10_000, true) != Advice::Restart {
        packets += 1;
        assert!(packets < 100);
    }
    let Step::Encode { segment: again, crf: higher } = course.next() else { panic!("no encode") };
    assert!(again == segment && higher > crf + 2.0, "{crf} {higher}");
    assert_eq!((course.frames_redone(), course.repairs()), (packets + 1, 0));
}

#[test]
fn a_sure_miss_is_mended_by_one_segment_alone() {
    let mut course = course(&[100; 8], SURE);
    let Step::Probe { segment, crf, .. } = course.next() else { panic!("no window") };
    course.probed(segment, crf, &[1200; 16]);
    let mut count = 0;
    let mut encode = |course: &mut Course, bytes: u32| {
        let Step::Encode { segment, .. } = course.next() else { return false };
        (0..100).for_each(|_| assert_ne!(course.packet(segment, bytes, true), Advice::Restart));
        course.finished(segment);
        count += 1;
        true
    };
    // Whatever the CRF, an encoder that does not listen ends one per cent above.
    (0..8).for_each(|_| assert!(encode(&mut course, 1265)));
    assert!(encode(&mut course, 1100));
    assert_eq!(course.next(), Step::Done);
    assert_eq!((course.repairs(), course.frames_redone()), (1, 100));
    assert_eq!(course.chosen().unwrap().into_iter().sum::<usize>(), 1);
}

#[test]
fn hundreds_of_segments_are_planned_as_well() {
    let track = Track::new(11, Kind { segments: 300, frames: (10, 20), ..KIND });
    let outcome = track.run();
    assert_eq!(outcome.end, Step::Done);
    assert!(outcome.fill() > 0.96, "{}", outcome.fill());
}

fn kinds() -> impl Strategy<Value = Kind> {
    let track = (1_usize..12, 1_usize..120, 0_usize..100, any::<bool>(), 0.5_f64..5.0);
    let orders = prop_oneof![Just(Order::Any), Just(Order::AsTheyArrive), Just(Order::InTime)];
    (track, orders, 1_usize..6, any::<bool>()).prop_map(
        |((segments, least, more, hard, deviation), order, workers, counted)| Kind {
            segments,
            frames: (least, least + more),
            hard,
            deviation,
            order,
            workers,
            counted,
        },
    )
}

#[test]
fn what_can_be_made_up_for_elsewhere_is_not_encoded_again() {
    let one_segment = |spare: u64| {
        let segment = Segment { frames: 40, source_bytes: vec![], cuts: vec![] };
        let goal = Goal {
            ceiling: ByteSize::new(100_000),
            enough: ByteSize::new(96_000),
            spare: ByteSize::new(spare),
        };
        let mut course =
            Course::new(vec![segment], goal, Belief { crf: 28.0, deviation: 1.0 }, Order::InTime);
        loop {
            match course.next() {
                Step::Probe { segment, crf, .. } => course.probed(segment, crf, &[20_000, 2_000, 2_000]),
                Step::Encode { segment, .. } => {
                    for _ in 0..40 {
                        course.packet(segment, 2_525, false);
                    }
                    course.finished(segment);
                    return (course.next(), course.chosen());
                }
                step => return (step, None),
            }
        }
    };
    assert_eq!(one_segment(1_000), (Step::Done, Some(vec![0])));
    let (step, chosen) = one_segment(999);
    assert!(matches!(step, Step::Encode { segment: 0, .. }), "{step:?}");
    assert_eq!(chosen, None);
}

#[test]
fn a_cliff_of_bytes_is_found_between_two_versions() {
    // Noise falls by more than two thirds within half a step of CRF, where it is no longer worth its bits.
    for steepness in [0.2, 1.0, 2.5, 6.0] {
        let segment = Segment { frames: 75, source_bytes: vec![], cuts: vec![] };
        let (ceiling, enough) = (ByteSize::new(100_000), ByteSize::new(96_600));
        let goal = Goal { ceiling, enough, spare: ByteSize::ZERO };
        let mut course = Course::new(vec![segment], goal, Belief { crf: 30.0, deviation: 2.0 }, Order::Any);
        let mut sizes = Vec::new();
        loop {
            match course.next() {
                Step::Probe { segment, crf, .. } => course.probed(segment, crf, &[2_000, 300, 300, 300]),
                Step::Encode { segment, crf } => {
                    let bytes = 1_000.0 * (steepness * (32.4 - crf)).exp2();
                    let bytes = u32::try_from(ByteSize::from_f64(bytes.min(1e6)).get()).unwrap();
                    for _ in 0..75 {
                        course.packet(segment, bytes, false);
                    }
                    course.finished(segment);
                    sizes.push(u64::from(bytes) * 75);
                }
                step => {
                    assert_eq!(step, Step::Done, "{steepness}: {sizes:?}");
                    break;
                }
            }
        }
        let chosen = sizes[course.chosen().unwrap()[0]];
        assert!((96_600..=100_000).contains(&chosen), "{steepness}: {chosen} of {sizes:?}");
        assert!(sizes.len() <= 9, "{steepness}: {sizes:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn it_ends_never_above_the_ceiling_and_fits_whatever_can(
        kind in kinds(),
        seed in any::<u64>(),
        share in 0.05_f64..4.0,
    ) {
        let track = Track::new(seed, kind);
        let goal = goal(track.bytes(track.crf) * share);
        let outcome = track.run_to(goal);
        match outcome.end {
            Step::Done => {
                prop_assert!(outcome.course.chosen().is_some());
                prop_assert!(outcome.bytes <= goal.ceiling.get());
            }
            // Where only the very worst CRF fits, the noise of the encoder decides.
            _ => prop_assert!(track.bytes(46.8) > goal.ceiling.as_f64() * 0.99),
        }
        let frames = u64::try_from(track.frames()).unwrap();
        if outcome.course.chosen().is_some() {
            prop_assert_eq!(outcome.course.frames_redone(), outcome.encoded - frames);
        }
    }

    #[test]
    fn the_same_observations_give_the_same_steps(kind in kinds(), seed in any::<u64>()) {
        let track = Track::new(seed, kind);
        let (first, second) = (track.run(), track.run());
        prop_assert_eq!(first.steps, second.steps);
        prop_assert_eq!(first.bytes, second.bytes);
    }

    #[test]
    fn wild_inputs_neither_panic_nor_last_for_ever(
        frames in vec((0_u32..300, vec(ANY, 0..20)), 0..8),
        ceiling in any::<u64>(),
        enough in any::<u64>(),
        spare in any::<u64>(),
        crf in ANY,
        deviation in ANY,
        seed in any::<u64>(),
    ) {
        let count = frames.len();
        let segments =
            frames.into_iter().map(|(frames, source_bytes)| Segment { frames, source_bytes, cuts: vec![Cut { frame: 7, ratio: f64::NAN }, Cut { frame: u32::MAX, ratio: -1.0 }] }).collect();
        let goal = Goal { ceiling: ByteSize::new(ceiling), enough: ByteSize::new(enough), spare: ByteSize::new(spare) };
        let mut course = Course::new(segments, goal, Belief { crf, deviation }, Order::Any);
        let mut dice = Dice::new(seed);
        let mut ended = false;
        for _ in 0..20 * (count + 4) {
            // What was never asked for is told as well.
            let stray = dice.below(count + 2);
            course.packet(stray, u32::MAX, true);
            course.probed(stray, [f64::NAN, f64::MAX][dice.below(2)], &[7, 5]);
            match course.next() {
                Step::Probe { segment, frames, crf } => {
                    prop_assert!(frames > 0 && crf.is_finite());
                    course.probed(segment, crf, &[u32::MAX; 20][..dice.below(20)]);
                }
                Step::Encode { segment, crf } => {
                    prop_assert!((18.0..=47.0).contains(&crf));
                    let bytes = u32::try_from(1_usize << dice.below(31)).unwrap();
                    let advices = (0..dice.below(300)).map(|_| course.packet(segment, bytes, true));
                    if advices.into_iter().all(|advice| advice != Advice::Restart) {
                        course.finished(segment);
                    }
                }
                Step::Wait => course.lost(stray),
                Step::Done | Step::TooLarge => {
                    ended = true;
                    break;
                }
            }
        }
        prop_assert!(ended);
        prop_assert!(course.predicted_crf().is_finite() && course.mean_crf().is_finite());
        course.predicted_bytes();
        course.least_bytes();
    }
}
