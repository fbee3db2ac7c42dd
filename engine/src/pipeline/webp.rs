//! Animated WebP: its frames are taken apart here and decoded one by one, since libav before 9.0 reads only
//! still ones.

use bytes::Bytes;

use crate::error::Error;
use crate::fit::Wanted;
use crate::libav::{Frame, Graph, PicturePath, PixelTarget};
use crate::limits::LimitKind;
use crate::media::{Container, Orientation};
use crate::picture::{WebpAnimation, WebpFrame, webp_frames};
use crate::pipeline::finish::Job;
use crate::pipeline::inspect::PictureFile;
use crate::pipeline::material::{Frames, Material, Span};
use crate::pipeline::still::{decode_first, one_through};
use crate::pipeline::transcode::{Beside, Pictured, make_video, plan_video};
use crate::pipeline::{gif, video};
use crate::planner::budget;
use crate::planner::cut::Shown;
use crate::planner::ladder::PictureSource;
use crate::report::{Fitted, Warning};
use crate::units::{Dimensions, FrameRate, Timestamp};

/// Makes an animated WebP fit: as a silent video, or as a GIF.
pub(crate) fn run(file: &PictureFile, mut job: Job<'_>) -> Result<Fitted, Error> {
    let animation = webp_frames(&file.bytes)?;
    let limits = job.fit.limits;
    let count = u64::try_from(animation.frames.len()).unwrap_or(u64::MAX);
    if count > limits.frames {
        return Err(Error::TooLarge { limit: LimitKind::Frames, found: count, allowed: limits.frames });
    }
    if !animation.complete {
        job.warn(Warning::CutShort);
    }
    let length: Timestamp =
        animation.frames.iter().fold(Timestamp::ZERO, |sum, frame| sum.plus(frame.duration.into()));
    if length > Timestamp::from(limits.duration) {
        let found = length.seconds_up();
        return Err(Error::TooLarge {
            limit: LimitKind::Duration,
            found,
            allowed: limits.duration.as_secs(),
        });
    }
    let source = pictured(&animation, length, file, &job)?;
    let mut material = WebpMaterial { animation, job: &job };
    if job.fit.wanted == Wanted::Gif {
        let made = gif::encode(&mut material, &source, &job)?;
        return gif::finish(made, job);
    }
    let (plan, _) = plan_video(&source, None, source.span.duration().since_zero(), &job, &mut |plan| {
        video::least_bytes(&mut material, plan, job.context)
    })?;
    let made = make_video(&mut material, &plan, &source, Beside::default(), &job)?;
    made.finish(job)
}

fn pictured(
    animation: &WebpAnimation,
    length: Timestamp,
    file: &PictureFile,
    job: &Job<'_>,
) -> Result<Pictured, Error> {
    let start = job.fit.start.map_or(Timestamp::ZERO, Timestamp::from);
    let end = job.fit.end.map_or(length, |end| Timestamp::from(end).min(length));
    let span = Span { start, end, starts_late: start > Timestamp::ZERO, ends_early: end < length };
    if span.duration() <= Timestamp::ZERO {
        let seconds = length.seconds();
        return Err(Error::unsupported(format!(
            "the part that is asked for is empty: the input lasts {seconds:.1} s"
        )));
    }
    let count = u32::try_from(animation.frames.len()).unwrap_or(u32::MAX).max(1);
    let millis = u32::try_from(length.micros() / 1000).unwrap_or(u32::MAX).max(1);
    let frame_rate = FrameRate::new(count.saturating_mul(1000), millis)
        .ok_or_else(|| Error::corrupt("the animation has no frames"))?;
    let mut time = Timestamp::ZERO;
    let shown: Vec<Shown> = animation
        .frames
        .iter()
        .map(|frame| {
            let bytes = u32::try_from(frame.image.len()).unwrap_or(u32::MAX);
            let shown = Shown { time, bytes, key: false };
            time = time.plus(frame.duration.into());
            shown
        })
        .collect();
    let part = span.duration().seconds() / length.seconds().max(1e-6);
    Ok(Pictured {
        early: None,
        picture: PictureSource {
            display: animation.canvas,
            frame_rate,
            bits_per_pixel: None,
            max_height: job.fit.max_height,
        },
        orientation: Orientation::Upright,
        interlaced: false,
        even: false,
        unbroken: false,
        span,
        frames: f64::from(count) * part,
        shown: shown.into(),
        trustworthy: true,
        ceiling: budget::ceiling_of_source(crate::units::ByteSize::of(&file.bytes), 2.0),
    })
}

/// The first frame of an animation as a file of its own.
pub(crate) fn first_frame(bytes: &Bytes) -> Result<Bytes, Error> {
    let animation = webp_frames(bytes)?;
    animation
        .frames
        .into_iter()
        .next()
        .map(|frame| frame.image)
        .ok_or_else(|| Error::corrupt("the animation has no frames"))
}

struct WebpMaterial<'a> {
    animation: WebpAnimation,
    job: &'a Job<'a>,
}

impl Material for WebpMaterial<'_> {
    fn start(&mut self) -> Result<Box<dyn Frames + '_>, Error> {
        let canvas = Canvas::new(self.animation.canvas)?;
        Ok(Box::new(Composing {
            frames: self.animation.frames.iter(),
            job: self.job,
            canvas,
            time: Timestamp::ZERO,
            clear: None,
            damaged: 0,
        }))
    }
}

/// Decodes frames and puts them on the canvas.
struct Composing<'a> {
    frames: std::slice::Iter<'a, WebpFrame>,
    job: &'a Job<'a>,
    canvas: Canvas,
    time: Timestamp,
    /// The area to clear before the next frame.
    clear: Option<(u32, u32, Dimensions)>,
    damaged: u64,
}

impl Frames for Composing<'_> {
    fn next(&mut self) -> Result<Option<Frame>, Error> {
        let Some(frame) = self.frames.next() else { return Ok(None) };
        self.job.context.control.stop()?;
        if let Some((x, y, area)) = self.clear.take() {
            self.canvas.clear(x, y, area);
        }
        match self.decode(frame) {
            Ok(pixels) => self.canvas.put(frame, &pixels),
            // The canvas keeps what it shows.
            Err(Error::Corrupt { .. }) => self.damaged += 1,
            Err(error) => return Err(error),
        }
        if frame.dispose {
            self.clear = Some((frame.offset_x, frame.offset_y, frame.dimensions));
        }
        let mut picture = Frame::from_rgba(self.canvas.size, &self.canvas.pixels)
            .map_err(|fault| fault.internal("a picture cannot be made"))?;
        picture.set_pts(self.time.micros());
        self.time = self.time.plus(frame.duration.into());
        Ok(Some(picture))
    }

    fn damaged(&self) -> u64 {
        self.damaged
    }
}

impl Composing<'_> {
    fn decode(&self, frame: &WebpFrame) -> Result<Vec<u8>, Error> {
        let facts = crate::picture::facts(Container::Webp, &frame.image)?;
        let file = PictureFile { container: Container::Webp, bytes: frame.image.clone(), facts };
        let (decoded, _) = decode_first(&file, self.job)?;
        let path = PicturePath {
            target: frame.dimensions,
            inside: frame.dimensions,
            orientation: Orientation::Upright,
            deinterlace: false,
            pixels: PixelTarget::Rgba,
        };
        let mut graph = Graph::pictures(&decoded.picture_shape(), &path)?;
        one_through(&mut graph, decoded)?.to_rgba().ok_or_else(|| Error::internal("a picture has no pixels"))
    }
}

/// The picture as it builds up; transparent at first, as browsers show it.
struct Canvas {
    size: Dimensions,
    pixels: Vec<u8>,
}

impl Canvas {
    fn new(size: Dimensions) -> Result<Self, Error> {
        let bytes = usize::try_from(size.pixels().saturating_mul(4))
            .map_err(|_| Error::corrupt("the canvas is too large"))?;
        Ok(Self { size, pixels: vec![0; bytes] })
    }

    fn row(&mut self, x: u32, y: u32, width: u32) -> Option<&mut [u8]> {
        let start = (u64::from(y) * u64::from(self.size.width) + u64::from(x)) * 4;
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(usize::try_from(u64::from(width) * 4).ok()?)?;
        self.pixels.get_mut(start..end)
    }

    fn clear(&mut self, x: u32, y: u32, area: Dimensions) {
        for line in 0..area.height {
            if let Some(row) = self.row(x, y.saturating_add(line), area.width) {
                row.fill(0);
            }
        }
    }

    fn put(&mut self, frame: &WebpFrame, pixels: &[u8]) {
        let width = usize::try_from(u64::from(frame.dimensions.width) * 4).unwrap_or(usize::MAX);
        for (line, source) in (0..frame.dimensions.height).zip(pixels.chunks_exact(width.max(1))) {
            let Some(row) =
                self.row(frame.offset_x, frame.offset_y.saturating_add(line), frame.dimensions.width)
            else {
                continue;
            };
            if frame.blend {
                for (below, above) in row.chunks_exact_mut(4).zip(source.chunks_exact(4)) {
                    if let (Ok(below), Ok(above)) =
                        (<&mut [u8; 4]>::try_from(below), <&[u8; 4]>::try_from(above))
                    {
                        *below = over(*below, *above);
                    }
                }
            } else {
                row.copy_from_slice(source);
            }
        }
    }
}

/// `above` over `below`, both with straight alpha: Porter and Duff's "over", rounded to the nearest.
fn over(below: [u8; 4], above: [u8; 4]) -> [u8; 4] {
    let [.., alpha_above] = above;
    let [.., alpha_below] = below;
    match alpha_above {
        255 => return above,
        0 => return below,
        _ => {}
    }
    let front = u32::from(alpha_above) * 255;
    let back = u32::from(alpha_below) * (255 - u32::from(alpha_above));
    let whole = (front + back).max(1);
    let mix = |a: u8, b: u8| {
        let sum = u32::from(a) * front + u32::from(b) * back;
        u8::try_from((sum + whole / 2) / whole).unwrap_or(255)
    };
    let [ar, ag, ab, _] = above;
    let [br, bg, bb, _] = below;
    [mix(ar, br), mix(ag, bg), mix(ab, bb), u8::try_from((whole + 127) / 255).unwrap_or(255)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_laid_over_each_other() {
        assert_eq!(over([0, 0, 0, 255], [255, 0, 0, 128]), [128, 0, 0, 255]);
        assert_eq!(over([10, 20, 30, 0], [255, 0, 0, 128]), [255, 0, 0, 128]);
        assert_eq!(over([1, 2, 3, 4], [9, 9, 9, 0]), [1, 2, 3, 4]);
    }
}
