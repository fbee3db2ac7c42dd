//! Makes a picture fit: kept, stripped of metadata, or encoded again.

use bytes::Bytes;

use crate::error::Error;
use crate::fit::Verify;
use crate::libav::{Answer, Care, Encoder, Frame, Graph, PictureCodec, PicturePath, Pictures, PixelTarget};
use crate::media::{Container, Orientation};
use crate::picture::{self, PictureFacts};
use crate::pipeline::decode::Decoding;
use crate::pipeline::finish::Job;
use crate::pipeline::inspect::{PictureFile, open_pictures};
use crate::pipeline::webp;
use crate::planner::still::{Attempt, attempts};
use crate::progress::Stage;
use crate::report::{Action, Fitted, OutputKind, Warning};
use crate::units::{ByteSize, Dimensions};

/// Makes a picture file fit.
pub(crate) fn run(file: &PictureFile, mut job: Job<'_>) -> Result<Fitted, Error> {
    let facts = file.facts;
    if job.fit.start.is_some_and(|start| !start.is_zero()) {
        return Err(Error::unsupported("the part that is asked for is empty: a picture has no length"));
    }
    let stripped = picture::strip(file.container, &file.bytes)?;
    let low_enough = job.fit.max_height.is_none_or(|height| facts.dimensions.height <= height);
    let keepable = facts.whole && facts.orientation == Orientation::Upright && low_enough;
    if keepable && ByteSize::of(&stripped) <= job.fit.limit {
        let began = job.enter(Stage::Verify);
        let checked = job.fit.verify == Verify::Decode && decoded_bytes(&facts) <= VERIFIED_BYTES;
        let whole = !checked || decode(file, &job)?.1 == 0;
        job.stages.verify += began.elapsed();
        if whole {
            let action = if facts.has_metadata { Action::Remux } else { Action::Pass };
            let mut report = job.report(action, kind(file.container));
            report.dimensions = Some(facts.dimensions);
            report.frames = 1;
            return job.finish(stripped, report);
        }
    }
    let kept = Some(ByteSize::of(&stripped)).filter(|size| keepable && *size > job.fit.limit);
    encode(file, kept, job)
}

/// Encodes the picture; `kept` is the size at which it could be kept.
fn encode(file: &PictureFile, kept: Option<ByteSize>, mut job: Job<'_>) -> Result<Fitted, Error> {
    let began = job.enter(Stage::Video);
    let (frame, damaged) = decode(file, &job)?;
    if !file.facts.whole {
        job.warn(Warning::CutShort);
    } else {
        job.warn_damaged(damaged);
    }
    let stored = frame.dimensions();
    let turned = if file.facts.orientation.swaps_sides() { stored.turned() } else { stored };
    let mut smallest = kept.unwrap_or(ByteSize::new(u64::MAX));
    let mut source = Source { frame, orientation: file.facts.orientation, prepared: None };
    for attempt in attempts(turned, file.facts.alpha, job.fit.max_height) {
        job.context.control.stop()?;
        let bytes = source.encode(attempt)?;
        smallest = smallest.min(ByteSize::of(&bytes));
        if ByteSize::of(&bytes) <= job.fit.limit {
            job.stages.video += began.elapsed();
            let kind = if attempt.jpeg.is_some() { OutputKind::Jpeg } else { OutputKind::Png };
            let mut report = job.report(Action::Transcode, kind);
            report.dimensions = Some(attempt.dimensions);
            report.frames = 1;
            return job.finish(bytes, report);
        }
    }
    Err(Error::CannotFit {
        limit: job.fit.limit,
        min_bytes: smallest,
        what: "even a small picture needs more".into(),
    })
}

/// The decoded picture, filtered once for each size and pixel layout.
struct Source {
    frame: Frame,
    orientation: Orientation,
    prepared: Option<(Dimensions, PixelTarget, Frame)>,
}

impl Source {
    fn encode(&mut self, attempt: Attempt) -> Result<Bytes, Error> {
        let pixels = if attempt.jpeg.is_some() { PixelTarget::Jpeg } else { PixelTarget::Rgba };
        let known = self
            .prepared
            .as_ref()
            .is_some_and(|(dimensions, target, _)| *dimensions == attempt.dimensions && *target == pixels);
        if !known {
            let path = PicturePath {
                target: attempt.dimensions,
                inside: attempt.dimensions,
                orientation: self.orientation,
                deinterlace: false,
                pixels,
            };
            let mut graph = Graph::pictures(&self.frame.picture_shape(), &path)?;
            let shared = self.frame.share().map_err(|fault| fault.internal("a picture cannot be shared"))?;
            let frame = one_through(&mut graph, shared)?;
            self.prepared = Some((attempt.dimensions, pixels, frame));
        }
        let Some((_, _, frame)) = &self.prepared else { return Err(Error::internal("no picture")) };
        let codec = attempt.jpeg.map_or(PictureCodec::Png, |quantiser| PictureCodec::Jpeg { quantiser });
        let mut encoder = Encoder::picture(codec, attempt.dimensions)?;
        let failed = "a picture cannot be encoded";
        encoder.send(Some(frame)).map_err(|fault| fault.internal(failed))?;
        encoder.send(None).map_err(|fault| fault.internal(failed))?;
        match encoder.receive().map_err(|fault| fault.internal(failed))? {
            Answer::Item(packet) => {
                // The encoder writes its name into a comment.
                let container = if attempt.jpeg.is_some() { Container::Jpeg } else { Container::Png };
                picture::strip(container, &packet.data)
            }
            Answer::FeedMe | Answer::Finished => Err(Error::internal("the picture encoder gave nothing")),
        }
    }
}

/// Sends one picture through a graph.
pub(crate) fn one_through(graph: &mut Graph, frame: Frame) -> Result<Frame, Error> {
    let failed = "a picture cannot be filtered";
    graph.send(Some(frame)).map_err(|fault| fault.internal(failed))?;
    graph.send(None).map_err(|fault| fault.internal(failed))?;
    match graph.receive().map_err(|fault| fault.internal(failed))? {
        Answer::Item(frame) => Ok(frame),
        Answer::FeedMe | Answer::Finished => Err(Error::internal("the filters gave no picture")),
    }
}

/// Decodes the first picture of a file; with it, how many damaged pieces there were.
fn decode(file: &PictureFile, job: &Job<'_>) -> Result<(Frame, u64), Error> {
    // A WebP built as an animation of one frame needs its frame taken out first.
    let wrapped = (file.container == Container::Webp && file.facts.frames.is_some())
        .then(|| webp::first_frame(&file.bytes))
        .transpose()?;
    let single = PictureFile {
        container: file.container,
        bytes: wrapped.unwrap_or_else(|| file.bytes.clone()),
        facts: file.facts,
    };
    decode_first(&single, job)
}

/// Decodes the first picture of a file that libav can open as it is.
pub(crate) fn decode_first(file: &PictureFile, job: &Job<'_>) -> Result<(Frame, u64), Error> {
    let limits = &job.fit.limits;
    let mut tracks = open_pictures(file, Pictures::One, limits, &job.context.control)?;
    let stream = tracks.video.clone().ok_or_else(|| Error::corrupt("the picture cannot be decoded"))?;
    let mut decoding = Decoding::new(&mut tracks.input, &stream, Care::Lenient, limits)?;
    let frame = decoding.next()?.ok_or_else(|| {
        Error::corrupt(format!("the {} picture is damaged: it cannot be decoded", file.container))
    })?;
    let damaged = decoding.damaged();
    Ok((frame, damaged))
}

const fn kind(container: Container) -> OutputKind {
    match container {
        Container::Png => OutputKind::Png,
        Container::Webp => OutputKind::Webp,
        Container::Gif => OutputKind::Gif,
        _ => OutputKind::Jpeg,
    }
}

/// The memory that a decoded picture takes, about.
fn decoded_bytes(facts: &PictureFacts) -> u64 {
    let component = if facts.bit_depth > 8 { 2 } else { 1 };
    let components = if facts.alpha { 4 } else { 3 };
    facts.dimensions.pixels().saturating_mul(component * components)
}

/// Pictures that take more than libav may allocate at once are kept unseen.
const VERIFIED_BYTES: u64 = 1 << 30;
