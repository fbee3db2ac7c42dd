use std::time::Duration;

use proptest::prelude::*;

use crate::mp4::{
    Movie, Pacing, Planned, PlannedAudio, PlannedVideo, Sample, Track, overhead_bound, size, write,
};
use crate::units::ByteSize;

use super::writer::any_samples;
use super::{audio_format, movie, payload, picture, sound, video_format};

fn overhead(movie: &Movie) -> u64 {
    size(movie).get() - payload(movie)
}

fn end(samples: &[Sample], timescale: u32) -> Duration {
    let end = samples.iter().map(|sample| sample.pts + i64::from(sample.duration)).max().unwrap();
    Duration::from_micros(u64::try_from(end * 1_000_000 / i64::from(timescale)).unwrap())
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap()
}

fn pacing(samples: &[Sample]) -> Pacing {
    let mut deltas = samples.windows(2).map(|pair| pair[1].dts - pair[0].dts);
    let first = deltas.next();
    if deltas.all(|delta| Some(delta) == first) { Pacing::Even } else { Pacing::Uneven }
}

/// Sound is decoded in the order of presentation, from any packet.
fn as_sound(mut samples: Vec<Sample>) -> Vec<Sample> {
    for sample in &mut samples {
        sample.pts = sample.dts;
        sample.sync = true;
    }
    samples
}

/// The plan that a movie would have come from.
fn plan(movie: &Movie) -> Planned {
    let video = movie.video.as_ref();
    let audio = movie.audio.as_ref();
    let ends = video.map(|track| end(&track.samples, track.timescale)).into_iter();
    let ends = ends.chain(audio.map(|track| end(&track.samples, track.timescale)));
    Planned {
        duration: ends.max().unwrap_or_default(),
        video: video.map(|track| PlannedVideo {
            frames: count(track.samples.len()),
            key_frames: count(track.samples.iter().filter(|sample| sample.sync).count()),
            pacing: pacing(&track.samples),
            reordered: track.samples.iter().any(|sample| sample.pts != sample.dts),
            avcc: ByteSize::of(&track.format.avcc),
        }),
        audio: audio.map(|track| PlannedAudio {
            packets: count(track.samples.len()),
            pacing: pacing(&track.samples),
        }),
    }
}

#[test]
fn bound_is_tight_for_usual_files() {
    for (timescale, delta, seconds) in [(90_000, 3000, 5), (30_000, 1001, 60), (90_000, 1500, 600)] {
        let frames = timescale / delta * seconds;
        let mut movie = movie(Some(picture(timescale, delta, frames)), Some(sound(seconds * 375 / 8)));
        for with_sound in [true, false] {
            if !with_sound {
                movie.audio = None;
            }
            let real = overhead(&movie);
            let mut planned = plan(&movie);
            planned.video.as_mut().unwrap().avcc = PlannedVideo::AVCC_ALLOWANCE;
            let bound = overhead_bound(&planned).get();
            assert!(bound >= real);
            assert!(bound <= real + real * 3 / 100 + 400, "{bound} for {real} in {seconds} s");
        }
    }
}

#[test]
fn bound_counts_long_times() {
    let mut slow = picture(1000, 60_000, 900);
    slow.samples[0].duration = 1;
    let movie = movie(Some(slow), Some(sound(2)));
    assert!(write(&movie).is_ok());
    assert!(overhead_bound(&plan(&movie)).get() >= overhead(&movie));
}

#[test]
fn bound_of_an_endless_plan_saturates() {
    let video = PlannedVideo {
        frames: u64::MAX,
        key_frames: u64::MAX,
        pacing: Pacing::Uneven,
        reordered: true,
        avcc: ByteSize::new(u64::MAX),
    };
    let planned = Planned { duration: Duration::MAX, video: Some(video), audio: None };
    assert_eq!(overhead_bound(&planned), ByteSize::new(u64::MAX));
}

proptest! {
    #[test]
    fn bound_is_never_below_the_real_overhead(
        video in prop::option::of(any_samples(30_000)),
        audio in prop::option::of(any_samples(48_000).prop_map(as_sound)),
    ) {
        prop_assume!(video.is_some() || audio.is_some());
        let video = video.map(|samples| Track { format: video_format(60), timescale: 30_000, samples });
        let audio = audio.map(|samples| Track { format: audio_format(), timescale: 48_000, samples });
        let movie = movie(video, audio);
        prop_assert!(overhead_bound(&plan(&movie)).get() >= overhead(&movie));
    }

    #[test]
    fn bound_holds_for_every_length_of_an_even_movie(
        rate in prop_oneof![Just((30_000, 1001)), Just((90_000, 1500)), Just((10, 1)), Just((1, 2)), Just((24_000, 1001))],
        frames in 1_u32..2000,
        packets in 2_u32..3000,
    ) {
        let movie = movie(Some(picture(rate.0, rate.1, frames)), Some(sound(packets)));
        prop_assert!(overhead_bound(&plan(&movie)).get() >= overhead(&movie));
    }
}
