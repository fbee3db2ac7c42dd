//! Pass, remux, or transcode only what must change.

use crate::units::ByteSize;

/// A track as far as keeping it is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrackState {
    /// May be copied: right codec, whole, in time with the other track.
    pub(crate) keepable: bool,
    /// Its compressed bytes.
    pub(crate) bytes: ByteSize,
}

/// Everything the decision depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Situation {
    pub(crate) limit: ByteSize,
    /// Size of the input, where it is known.
    pub(crate) input: Option<ByteSize>,
    /// The file as it is plays inline and holds nothing private.
    pub(crate) plays_inline: bool,
    /// The request changes the content: a part of it, or a smaller picture.
    pub(crate) changed: bool,
    pub(crate) video: Option<TrackState>,
    pub(crate) audio: Option<TrackState>,
    /// An upper bound of the container's own bytes when streams are copied.
    pub(crate) container: ByteSize,
    /// The least bytes that acceptable sound needs.
    pub(crate) least_audio: ByteSize,
}

/// What happens to one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// There is none.
    Absent,
    /// Packets are kept.
    Copy,
    /// It is decoded and encoded again.
    Encode,
}

/// What happens to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The input is the result.
    Pass,
    /// Both tracks are kept in a new container.
    Remux,
    /// At least one track is encoded.
    Transcode {
        /// The picture track.
        video: Treatment,
        /// The sound track.
        audio: Treatment,
    },
}

/// Chooses the least change that gives a file within the limit that plays inline.
pub(crate) fn route(situation: &Situation) -> Route {
    let fits = situation.input.is_some_and(|input| input <= situation.limit);
    if situation.plays_inline
        && !situation.changed
        && fits
        && whole(situation.video)
        && whole(situation.audio)
    {
        return Route::Pass;
    }
    let bytes = |track: Option<TrackState>| track.map_or(ByteSize::ZERO, |track| track.bytes);
    let kept = bytes(situation.video).saturating_add(situation.container);
    let everything = kept.saturating_add(bytes(situation.audio));
    let keep_video = !situation.changed && situation.video.is_some_and(|track| track.keepable);
    let keep_audio = !situation.changed && situation.audio.is_some_and(|track| track.keepable);
    let nothing_to_encode =
        (keep_video || situation.video.is_none()) && (keep_audio || situation.audio.is_none());
    if nothing_to_encode && everything <= situation.limit {
        return Route::Remux;
    }
    let audio = match situation.audio {
        None => Treatment::Absent,
        // When it does not fit, the copy that is kept is the one whose loss would hurt most.
        Some(_) if keep_audio && (!keep_video || everything <= situation.limit) => Treatment::Copy,
        Some(_) => Treatment::Encode,
    };
    let video_fits = match audio {
        Treatment::Absent => kept <= situation.limit,
        Treatment::Copy => everything <= situation.limit,
        Treatment::Encode => kept.saturating_add(situation.least_audio) <= situation.limit,
    };
    match situation.video {
        None => Route::Transcode { video: Treatment::Absent, audio: Treatment::Encode },
        Some(_) if keep_video && video_fits && audio != Treatment::Copy => {
            Route::Transcode { video: Treatment::Copy, audio }
        }
        Some(_) => {
            let audio = if keep_audio { Treatment::Copy } else { audio };
            Route::Transcode { video: Treatment::Encode, audio }
        }
    }
}

fn whole(track: Option<TrackState>) -> bool {
    track.is_none_or(|track| track.keepable)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn track(keepable: bool, bytes: u64) -> Option<TrackState> {
        Some(TrackState { keepable, bytes: ByteSize::new(bytes) })
    }

    fn situation() -> Situation {
        Situation {
            limit: ByteSize::new(1000),
            input: Some(ByteSize::new(900)),
            plays_inline: false,
            changed: false,
            video: track(true, 700),
            audio: track(true, 100),
            container: ByteSize::new(50),
            least_audio: ByteSize::new(40),
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Situation), expected: Route) {
        let mut situation = situation();
        change(&mut situation);
        assert_eq!(route(&situation), expected, "{situation:?}");
    }

    #[test]
    fn the_least_change_is_chosen() {
        use Treatment::{Absent, Copy, Encode};
        check(|s| s.plays_inline = true, Route::Pass);
        check(|_| {}, Route::Remux);
        check(|s| s.audio = None, Route::Remux);
        check(|s| s.audio = track(false, 100), Route::Transcode { video: Copy, audio: Encode });
        check(|s| s.video = track(false, 700), Route::Transcode { video: Encode, audio: Copy });
        check(|s| s.video = track(true, 900), Route::Transcode { video: Copy, audio: Encode });
        check(|s| s.video = track(true, 2000), Route::Transcode { video: Encode, audio: Copy });
        check(|s| s.video = None, Route::Remux);
        check(
            |s| {
                s.video = None;
                s.audio = track(true, 2000);
            },
            Route::Transcode { video: Absent, audio: Encode },
        );
        check(|s| s.changed = true, Route::Transcode { video: Encode, audio: Encode });
        check(
            |s| {
                s.plays_inline = true;
                s.video = track(false, 700);
            },
            Route::Transcode { video: Encode, audio: Copy },
        );
    }

    proptest! {
        #[test]
        fn what_is_kept_fits(video in 0_u64..3000, audio in 0_u64..3000, container in 0_u64..300, keep_v: bool, keep_a: bool, inline: bool, changed: bool, input in 0_u64..3000) {
            let s = Situation { input: Some(ByteSize::new(input)), plays_inline: inline, changed, video: track(keep_v, video), audio: track(keep_a, audio), container: ByteSize::new(container), ..situation() };
            match route(&s) {
                Route::Pass => prop_assert!(inline && !changed && input <= 1000 && keep_v && keep_a),
                Route::Remux => prop_assert!(keep_v && keep_a && !changed && video + audio + container <= 1000),
                Route::Transcode { video: v, audio: a } => {
                    prop_assert!(v == Treatment::Encode || a == Treatment::Encode);
                    prop_assert!(v != Treatment::Copy || (keep_v && !changed && video + container <= 1000));
                    prop_assert!(a != Treatment::Copy || (keep_a && !changed));
                }
            }
        }
    }
}
