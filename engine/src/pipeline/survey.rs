//! Measures the tracks without decoding: where they begin and end, how even their frames are, where the bytes
//! are. Declared durations, rates and bit rates are not trusted.

use crate::error::Error;
use crate::libav::{IndexEntry, StreamFacts};
use crate::limits::{LimitKind, Limits};
use crate::media::Container;
use crate::mp4::TrackKind;
use crate::pipeline::feed::Feed;
use crate::pipeline::inspect::Tracks;
use crate::planner::cut::Shown;
use crate::units::{BitRate, ByteSize, FrameRate, Timestamp};

/// What was measured of a whole input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    pub(crate) video: Option<TrackSurvey>,
    pub(crate) audio: Option<TrackSurvey>,
    /// The container announces more than is there.
    pub(crate) cut_short: bool,
    /// The clock jumped in mid-stream.
    pub(crate) jumped: bool,
}

/// What was measured of one track.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackSurvey {
    /// When the first packet is shown.
    pub(crate) start: Timestamp,
    /// When the last packet ends.
    pub(crate) end: Timestamp,
    /// Packets that are shown.
    pub(crate) packets: u64,
    /// Packets that are only decoded, before an edit begins.
    pub(crate) hidden: u64,
    /// Compressed bytes.
    pub(crate) bytes: ByteSize,
    /// Packets with bytes missing or known to be wrong.
    pub(crate) damaged: u64,
    /// The usual distance of two packets.
    pub(crate) step: Timestamp,
    /// The mean of the distances near the usual one, in seconds: rounding of time stamps averages out.
    pub(crate) mean_step: f64,
    /// Whether nearly all packets keep that distance.
    pub(crate) even: bool,
    /// Longest distance of two packets.
    pub(crate) longest_step: Timestamp,
    /// The packets that are shown, in the order of their times. Times out of an index are decoding times moved
    /// to the beginning: exact for tracks that are even and whose groups of pictures are closed.
    pub(crate) shown: Vec<Shown>,
    /// For each packet that is shown the bytes of the file up to its end and those of all before it. Empty unless an
    /// index tells both this and exactly when key frames are shown.
    pub(crate) needed: Vec<(Timestamp, ByteSize)>,
}

impl TrackSurvey {
    /// Length from the first to the last moment.
    pub(crate) fn duration(&self) -> Timestamp {
        self.end.minus(self.start).max(Timestamp::ZERO)
    }

    /// Whether packets follow each other evenly and without any gap.
    pub(crate) fn is_unbroken(&self) -> bool {
        self.even && self.longest_step.micros() < self.step.micros().saturating_mul(3) / 2
    }

    /// Average rate.
    pub(crate) fn bit_rate(&self) -> BitRate {
        self.bytes.over(self.duration().since_zero())
    }

    /// Frames a second: the usual ones exactly where the track is even, else the average.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to what fits just before"
    )]
    #[allow(clippy::cast_precision_loss, reason = "frame counts stay far below 2^53")]
    pub(crate) fn frame_rate(&self) -> FrameRate {
        let average = self.packets.max(1) as f64 / self.duration().seconds().max(1e-6);
        let rate = if self.even && self.mean_step > 0.0 { 1.0 / self.mean_step } else { average };
        let standard = STANDARD_RATES
            .into_iter()
            .filter_map(|(numerator, denominator)| FrameRate::new(numerator, denominator))
            .find(|standard| self.even && (standard.as_f64() / rate - 1.0).abs() < STANDARD_WITHIN);
        let thousandths = (rate * 1000.0).round().clamp(1.0, 1_000_000.0) as u32;
        standard.or_else(|| FrameRate::new(thousandths, 1000)).unwrap_or(FALLBACK_RATE)
    }
}

/// Rates that cameras and editors use.
const STANDARD_RATES: [(u32, u32); 16] = [
    (24_000, 1001),
    (24, 1),
    (25, 1),
    (30_000, 1001),
    (30, 1),
    (50, 1),
    (60_000, 1001),
    (60, 1),
    (120, 1),
    (240, 1),
    (48, 1),
    (15, 1),
    (12, 1),
    (20, 1),
    (10, 1),
    (5, 1),
];
/// NTSC's rates are 0.1 % below the whole ones; this tells them apart.
const STANDARD_WITHIN: f64 = 0.000_45;
const FALLBACK_RATE: FrameRate = match FrameRate::new(25, 1) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// Measures the video track and the first sound track of `tracks`, which is read from where it stands when
/// its index does not tell enough.
pub(crate) fn survey(tracks: &mut Tracks, limits: &Limits) -> Result<Survey, Error> {
    let audio = tracks.sounds.first().cloned();
    let video = tracks.video.clone();
    let plain = tracks.layout.as_ref().is_some_and(|layout| !layout.fragmented && !layout.damaged);
    let mut survey = if plain && tracks.input.container() == Container::Mp4 {
        from_index(tracks, video.as_ref(), audio.as_ref())?
    } else {
        from_packets(tracks, video.as_ref(), audio.as_ref(), limits)?
    };
    survey.cut_short |= tracks.layout.as_ref().is_some_and(|layout| layout.cut_short);
    let frames = survey.video.as_ref().map_or(0, |video| video.packets);
    if frames > limits.frames {
        return Err(Error::TooLarge { limit: LimitKind::Frames, found: frames, allowed: limits.frames });
    }
    if survey.video.as_ref().is_none_or(|video| video.packets == 0)
        && survey.audio.as_ref().is_none_or(|audio| audio.packets == 0)
    {
        return Err(Error::corrupt("the file has a header but no picture and no sound: it is cut short"));
    }
    Ok(survey)
}

/// Gathers the packets of one track.
#[derive(Debug, Default)]
struct Gathering {
    packets: Vec<Shown>,
    last_duration: Timestamp,
    hidden: u64,
    damaged: u64,
    bytes: u64,
}

impl Gathering {
    fn add(&mut self, shown: Shown, duration: Timestamp) {
        self.packets.push(shown);
        self.bytes = self.bytes.saturating_add(u64::from(shown.bytes));
        self.last_duration = duration;
    }

    fn finish(mut self) -> TrackSurvey {
        self.packets.sort_unstable_by_key(|shown| shown.time);
        let Some(start) = self.packets.first().map(|shown| shown.time) else {
            return TrackSurvey { hidden: self.hidden, damaged: self.damaged, ..TrackSurvey::default() };
        };
        let mut steps: Vec<Timestamp> = self
            .packets
            .windows(2)
            .filter_map(|pair| Some(pair.get(1)?.time.minus(pair.first()?.time)))
            .filter(|step| *step > Timestamp::ZERO)
            .collect();
        steps.sort_unstable();
        let step = steps.get(steps.len() / 2).copied().unwrap_or(self.last_duration);
        let near = Timestamp::from_micros((step.micros() / 20).max(1600));
        let inside = steps.iter().filter(|other| other.minus(step).micros().abs() <= near.micros()).count();
        let sum: f64 = steps
            .iter()
            .filter(|other| other.minus(step).micros().abs() <= near.micros())
            .map(|step| step.seconds())
            .sum();
        let mean_step = sum / f64::from(u32::try_from(inside).unwrap_or(u32::MAX)).max(1.0);
        let even = inside.saturating_mul(20) >= steps.len().saturating_mul(19);
        let last = self.packets.last().map_or(start, |shown| shown.time);
        let known = [self.last_duration, step].into_iter().find(|length| *length > Timestamp::ZERO);
        let length = known.unwrap_or(LONE_PICTURE);
        TrackSurvey {
            start,
            end: last.plus(length),
            packets: u64::try_from(self.packets.len()).unwrap_or(u64::MAX),
            hidden: self.hidden,
            bytes: ByteSize::new(self.bytes),
            damaged: self.damaged,
            step,
            mean_step,
            even,
            longest_step: steps.last().copied().unwrap_or(step),
            shown: self.packets,
            needed: Vec::new(),
        }
    }
}

/// A lone packet of unknown length lasts as long as a picture of a film.
const LONE_PICTURE: Timestamp = Timestamp::from_micros(40_000);

/// An mp4's index lists every packet; only the first ones are read, to learn when the tracks begin.
fn from_index(
    tracks: &mut Tracks,
    video: Option<&StreamFacts>,
    audio: Option<&StreamFacts>,
) -> Result<Survey, Error> {
    let size = tracks.bytes.get();
    let mut survey = Survey::default();
    let mut starts = [None, None];
    let streams = [video, audio].map(|stream| stream.map(|stream| stream.index));
    let mut read = 0;
    let mut pictures_seen = 0;
    let mut feed = Feed::new(&mut tracks.input)?;
    // The first picture in decoding order may not be the first one shown: a few are looked at.
    while read < FIRST_PACKETS && (pictures_seen < REORDERED || (streams[1].is_some() && starts[1].is_none()))
    {
        let Some(packet) = feed.next()? else { break };
        read += 1;
        for (start, stream) in starts.iter_mut().zip(streams) {
            if stream == Some(packet.stream())
                && !packet.is_hidden()
                && let Some(pts) = packet.pts()
            {
                *start = Some(start.map_or(pts, |earlier: Timestamp| earlier.min(pts)));
            }
        }
        if streams[0].is_none() || streams[0] == Some(packet.stream()) {
            pictures_seen += 1;
        }
    }
    let closed = tracks.layout.as_ref().is_some_and(|layout| {
        layout.video_tracks == 1
            && layout.tracks.iter().all(|track| {
                track.has_plain_edits() && (track.kind != TrackKind::Video || track.closed_groups)
            })
    });
    for (number, stream) in [video, audio].into_iter().enumerate() {
        let Some(stream) = stream else { continue };
        let index = tracks.input.index(stream.index);
        let start = starts.get(number).copied().flatten();
        let (mut track, cut) = gather_index(&index, start, stream.duration, size);
        survey.cut_short |= cut;
        if number == 0 && track.even && track.hidden == 0 && closed {
            track.needed = needed(&index, start);
        }
        *(if number == 0 { &mut survey.video } else { &mut survey.audio }) = Some(track);
    }
    Ok(survey)
}

/// See [`TrackSurvey::needed`]; `start` is when the first packet is shown.
fn needed(index: &[IndexEntry], start: Option<Timestamp>) -> Vec<(Timestamp, ByteSize)> {
    let first = index.first().map_or(Timestamp::ZERO, |entry| entry.dts);
    let offset = start.map_or(Timestamp::ZERO, |start| start.minus(first));
    let mut most = 0;
    let up_to = |entry: &IndexEntry| {
        most = entry.position.saturating_add(u64::from(entry.bytes)).max(most);
        (entry.dts.plus(offset), ByteSize::new(most))
    };
    index.iter().map(up_to).collect()
}

/// `start` is when the first packet is shown, `end` the length of the track from its first decoding time on, as
/// far as these are known.
fn gather_index(
    index: &[IndexEntry],
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    size: u64,
) -> (TrackSurvey, bool) {
    let mut gathering = Gathering::default();
    let mut cut_short = false;
    let first = index.iter().find(|entry| !entry.hidden).map_or(Timestamp::ZERO, |entry| entry.dts);
    // Decoding times are even where presentation times are; only the origin differs.
    let offset = start.map_or(Timestamp::ZERO, |start| start.minus(first));
    for entry in index {
        if entry.position.saturating_add(u64::from(entry.bytes)) > size {
            cut_short = true;
        } else if entry.hidden {
            gathering.hidden += 1;
            gathering.bytes = gathering.bytes.saturating_add(u64::from(entry.bytes));
        } else {
            let shown = Shown { time: entry.dts.plus(offset), bytes: entry.bytes, key: entry.key };
            gathering.add(shown, Timestamp::ZERO);
        }
    }
    // A picture may stay on the screen for long: an index tells how long by how long the track is. With B-frames
    // decoding begins before the presentation does.
    let beginning = index.first().map_or(Timestamp::ZERO, |entry| entry.dts);
    if let (Some(end), Some(last)) = (end, index.last().filter(|last| !last.hidden && !cut_short)) {
        gathering.last_duration = beginning.plus(end).minus(last.dts).max(Timestamp::ZERO);
    }
    (gathering.finish(), cut_short)
}

fn from_packets(
    tracks: &mut Tracks,
    video: Option<&StreamFacts>,
    audio: Option<&StreamFacts>,
    limits: &Limits,
) -> Result<Survey, Error> {
    let mut gatherings = [Gathering::default(), Gathering::default()];
    let streams = [video, audio].map(|stream| stream.map(|stream| stream.index));
    let mut last = [Timestamp::ZERO; 2];
    let mut feed = Feed::new(&mut tracks.input)?;
    let mut packets = 0_u64;
    while let Some(packet) = feed.next()? {
        packets += 1;
        // Sound packets are short: sixteen of them to a picture is more than any file has.
        if packets > limits.frames.saturating_mul(16) {
            return Err(Error::TooLarge { limit: LimitKind::Frames, found: packets, allowed: limits.frames });
        }
        let Some(number) = streams.iter().position(|stream| *stream == Some(packet.stream())) else {
            continue;
        };
        let (Some(gathering), Some(last)) = (gatherings.get_mut(number), last.get_mut(number)) else {
            continue;
        };
        if packet.is_damaged() {
            gathering.damaged += 1;
        }
        // AVI and raw streams give a decoding time alone; it is as good for measuring.
        let time = packet.pts().or_else(|| packet.dts()).unwrap_or(*last);
        *last = time.plus(packet.duration());
        if packet.is_hidden() {
            gathering.hidden += 1;
        } else {
            let bytes = u32::try_from(packet.data().len()).unwrap_or(u32::MAX);
            gathering.add(Shown { time, bytes, key: packet.is_key() }, packet.duration());
        }
    }
    let jumped = feed.jumps() > 0;
    let [pictures, sounds] = gatherings.map(Gathering::finish);
    Ok(Survey { video: video.map(|_| pictures), audio: audio.map(|_| sounds), cut_short: false, jumped })
}

/// Packets read at most to learn when the tracks begin.
const FIRST_PACKETS: u32 = 400;
/// H.264 and HEVC reorder within sixteen pictures.
const REORDERED: u32 = 17;
