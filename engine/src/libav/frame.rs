//! Decoded pictures and sound.

use std::ffi::CStr;
use std::ptr;

use ffmpeg_next::ffi as sys;

use super::packet::known;
use super::stream::{TimeBase, dynamic_range, pixel_layout};
use super::{Fault, c_string};
use crate::media::{DynamicRange, PixelLayout};
use crate::units::{ByteSize, Dimensions, Timestamp};

/// An owned `AVFrame`; its times are in microseconds once it left a decoder.
#[derive(Debug)]
pub(crate) struct Frame(*mut sys::AVFrame);

// SAFETY: a frame's buffers are reference-counted with atomics and it holds no thread-local state; this value
// is the only owner of the shell, so moving it to another thread moves everything.
unsafe impl Send for Frame {}

/// What a filter graph for pictures depends on; when it changes in mid-stream the graph is built anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PictureShape {
    pub(crate) dimensions: Dimensions,
    /// Width to height of one pixel as the decoder tells it, 1 to 1 when it does not.
    pub(crate) pixel_aspect: (u32, u32),
    pub(super) format: i32,
    pub(super) range: i32,
    pub(super) space: i32,
    pub(super) primaries: i32,
    pub(super) transfer: i32,
}

/// What a filter graph for sound depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SoundShape {
    pub(crate) sample_rate: u32,
    pub(crate) channels: u32,
    pub(super) format: i32,
    /// libav's text for the channel layout.
    pub(super) layout: String,
}

impl PictureShape {
    /// Width to height of the whole picture.
    pub(crate) fn aspect(&self) -> f64 {
        let (width, height) = self.pixel_aspect;
        f64::from(self.dimensions.width.max(1)) * f64::from(width)
            / (f64::from(self.dimensions.height.max(1)) * f64::from(height))
    }

    /// How the pixels are stored.
    pub(crate) fn pixels(&self) -> Option<PixelLayout> {
        pixel_layout(self.format, self.range)
    }

    /// Whether the picture must be tone-mapped.
    pub(crate) const fn dynamic_range(&self) -> DynamicRange {
        dynamic_range(self.transfer)
    }
}

impl Frame {
    pub(super) fn new() -> Result<Self, Fault> {
        // SAFETY: a plain allocation; checked for null.
        let frame = unsafe { sys::av_frame_alloc() };
        if frame.is_null() { Err(Fault::out_of_memory()) } else { Ok(Self(frame)) }
    }

    pub(super) const fn as_ptr(&self) -> *mut sys::AVFrame {
        self.0
    }

    /// Another reference to the same pixels.
    pub(crate) fn share(&self) -> Result<Self, Fault> {
        // SAFETY: the frame is valid; a clone adds references to its buffers.
        let frame = unsafe { sys::av_frame_clone(self.0) };
        if frame.is_null() { Err(Fault::out_of_memory()) } else { Ok(Self(frame)) }
    }

    /// An even grey picture for an encoder of video.
    pub(crate) fn grey(dimensions: Dimensions) -> Result<Self, Fault> {
        const GREY: u8 = 0x80;
        let frame = Self::new()?;
        let side = |length: u32| i32::try_from(length).map_err(|_| Fault::out_of_memory());
        let (width, height) = (side(dimensions.width)?, side(dimensions.height)?);
        // SAFETY: the frame is fresh and ours. libav allocates `height` rows for the first plane and half as
        // many, rounded up, for the two others of 4:2:0, each `linesize` bytes long and positive for a fresh
        // frame, so what is filled stays inside.
        unsafe {
            (*frame.0).width = width;
            (*frame.0).height = height;
            (*frame.0).format = sys::AVPixelFormat::AV_PIX_FMT_YUV420P as i32;
            Fault::check(sys::av_frame_get_buffer(frame.0, 0))?;
            let luma = dimensions.height as usize;
            for (plane, rows) in [luma, luma.div_ceil(2), luma.div_ceil(2)].into_iter().enumerate() {
                let row = usize::try_from((*frame.0).linesize[plane]).map_err(|_| Fault::out_of_memory())?;
                ptr::write_bytes((*frame.0).data[plane], GREY, row.saturating_mul(rows));
            }
        }
        Ok(frame)
    }

    /// A picture in packed RGBA from `pixels`, rows without padding.
    pub(crate) fn from_rgba(dimensions: Dimensions, pixels: &[u8]) -> Result<Self, Fault> {
        let frame = Self::new()?;
        let side = |length: u32| i32::try_from(length).map_err(|_| Fault::out_of_memory());
        let (width, height) = (side(dimensions.width)?, side(dimensions.height)?);
        let row = usize::try_from(dimensions.width).unwrap_or(0).saturating_mul(4);
        if row == 0 || pixels.len() < row.saturating_mul(usize::try_from(dimensions.height).unwrap_or(0)) {
            return Err(Fault::out_of_memory());
        }
        // SAFETY: the frame is fresh and ours; the buffer that libav allocates has `height` rows of at least
        // `row` bytes, `linesize` apart and positive for a fresh frame, so each copy stays inside.
        unsafe {
            (*frame.0).width = width;
            (*frame.0).height = height;
            (*frame.0).format = sys::AVPixelFormat::AV_PIX_FMT_RGBA as i32;
            Fault::check(sys::av_frame_get_buffer(frame.0, 0))?;
            let stride = usize::try_from((*frame.0).linesize[0]).map_err(|_| Fault::out_of_memory())?;
            for (number, line) in pixels.chunks_exact(row).enumerate().take(dimensions.height as usize) {
                ptr::copy_nonoverlapping(line.as_ptr(), (*frame.0).data[0].add(number * stride), row);
            }
        }
        Ok(frame)
    }

    /// The sum of the squared differences of two 8-bit pictures' brightness, and the number of pixels; `None` for
    /// other formats and unequal sizes.
    pub(crate) fn difference(&self, other: &Self) -> Option<(f64, f64)> {
        let dimensions = self.dimensions();
        if dimensions != other.dimensions() {
            return None;
        }
        let width = usize::try_from(dimensions.width).ok()?;
        let mut sum = 0_u64;
        // SAFETY: both frames are valid; pictures in planar 8-bit 4:2:0 have `height` rows of `width` readable
        // bytes in their first plane, `linesize` apart (possibly downwards).
        unsafe {
            for frame in [self, other] {
                if (*frame.0).format != sys::AVPixelFormat::AV_PIX_FMT_YUV420P as i32 {
                    return None;
                }
            }
            let row = |frame: &Self, number: isize| {
                let stride = isize::try_from((*frame.0).linesize[0]).ok()?;
                let line = (*frame.0).data[0].offset(number.checked_mul(stride)?);
                Some(std::slice::from_raw_parts(line, width))
            };
            for number in 0..isize::try_from(dimensions.height).ok()? {
                let squares = row(self, number)?.iter().zip(row(other, number)?);
                let squares = squares.map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2));
                sum += squares.map(u64::from).sum::<u64>();
            }
        }
        Some((ByteSize::new(sum).as_f64(), ByteSize::new(dimensions.pixels()).as_f64()))
    }

    /// The pixels of a packed RGBA picture, rows without padding; `None` for any other format.
    pub(crate) fn to_rgba(&self) -> Option<Vec<u8>> {
        let dimensions = self.dimensions();
        let row = usize::try_from(dimensions.width).ok()?.checked_mul(4)?;
        // SAFETY: the frame is valid; an RGBA frame has `height` rows of `row` readable bytes, `linesize`
        // apart (possibly downwards).
        unsafe {
            if (*self.0).format != sys::AVPixelFormat::AV_PIX_FMT_RGBA as i32 {
                return None;
            }
            let stride = isize::try_from((*self.0).linesize[0]).ok()?;
            let mut pixels = Vec::with_capacity(row.checked_mul(usize::try_from(dimensions.height).ok()?)?);
            for number in 0..isize::try_from(dimensions.height).ok()? {
                let line = (*self.0).data[0].offset(number.checked_mul(stride)?);
                pixels.extend_from_slice(std::slice::from_raw_parts(line, row));
            }
            Some(pixels)
        }
    }

    /// A block of planar 32-bit float sound; `channels` hold the same number of samples each.
    pub(crate) fn from_samples(sample_rate: u32, channels: &[&[f32]]) -> Result<Self, Fault> {
        let frame = Self::new()?;
        let samples = channels.first().map_or(0, |channel| channel.len());
        let short = |_| Fault::out_of_memory();
        // SAFETY: the frame is fresh and ours; libav allocates one plane of `nb_samples` floats for each
        // channel, and at most eight channels are ever asked for, so `extended_data` equals `data`.
        unsafe {
            (*frame.0).nb_samples = i32::try_from(samples).map_err(short)?;
            (*frame.0).sample_rate = i32::try_from(sample_rate).map_err(short)?;
            (*frame.0).format = sys::AVSampleFormat::AV_SAMPLE_FMT_FLTP as i32;
            let count = i32::try_from(channels.len()).map_err(short)?;
            sys::av_channel_layout_default(ptr::addr_of_mut!((*frame.0).ch_layout), count);
            Fault::check(sys::av_frame_get_buffer(frame.0, 0))?;
            for (number, channel) in channels.iter().enumerate().take(8) {
                let plane = (*frame.0).data[number].cast::<f32>();
                ptr::copy_nonoverlapping(channel.as_ptr(), plane, samples.min(channel.len()));
            }
        }
        Ok(frame)
    }

    /// The samples of one channel of planar 32-bit float sound; `None` for any other format.
    pub(crate) fn channel(&self, number: usize) -> Option<&[f32]> {
        // SAFETY: the frame is valid; planar float sound has one plane of nb_samples floats for each channel.
        unsafe {
            let count = usize::try_from((*self.0).ch_layout.nb_channels).ok()?;
            if (*self.0).format != sys::AVSampleFormat::AV_SAMPLE_FMT_FLTP as i32 || number >= count {
                return None;
            }
            let plane = *(*self.0).extended_data.add(number);
            let samples = usize::try_from((*self.0).nb_samples).ok()?;
            (!plane.is_null()).then(|| std::slice::from_raw_parts(plane.cast::<f32>(), samples))
        }
    }

    /// Samples of one channel.
    pub(crate) fn samples(&self) -> u32 {
        // SAFETY: the frame is valid.
        u32::try_from(unsafe { (*self.0).nb_samples }).unwrap_or(0)
    }

    /// Presentation time, where it is known.
    pub(crate) fn pts(&self) -> Option<Timestamp> {
        // SAFETY: the frame is valid.
        known(unsafe { (*self.0).pts }).map(Timestamp::from_micros)
    }

    /// The presentation time in whatever ticks it was set.
    pub(crate) fn ticks(&self) -> Option<i64> {
        // SAFETY: the frame is valid.
        known(unsafe { (*self.0).pts })
    }

    /// Sets the presentation time, in microseconds for a filter graph or in the encoder's ticks for an encoder.
    pub(crate) fn set_pts(&mut self, ticks: i64) {
        // SAFETY: the frame is valid and ours.
        unsafe { (*self.0).pts = ticks };
    }

    /// How long the picture is shown, where the container says so.
    pub(crate) fn duration(&self) -> Option<Timestamp> {
        let duration = self.raw_duration();
        (duration > 0).then(|| Timestamp::from_micros(duration))
    }

    /// Turns times from `base` to microseconds and takes the best guess where the stream gives none.
    pub(super) fn settle_times(&mut self, base: TimeBase, picture: bool) {
        // SAFETY: the frame is valid and ours.
        unsafe {
            let best = known((*self.0).best_effort_timestamp);
            let own = known((*self.0).pts);
            let time = if picture { best.or(own) } else { own.or(best) };
            (*self.0).pts = time.map_or(sys::AV_NOPTS_VALUE, |ticks| base.timestamp(ticks).micros());
            (*self.0).time_base = TimeBase::MICROSECONDS.rational();
        }
        let micros = base.timestamp(self.raw_duration()).micros();
        self.set_raw_duration(micros);
        self.forget_picture_type();
    }

    /// Orders a key frame from which decoding can begin.
    pub(crate) fn make_key(&mut self) {
        // SAFETY: the frame is valid and ours.
        unsafe { (*self.0).pict_type = sys::AVPictureType::AV_PICTURE_TYPE_I };
    }

    /// Orders a frame that refers to one before it.
    pub(crate) fn make_predicted(&mut self) {
        // SAFETY: the frame is valid and ours.
        unsafe { (*self.0).pict_type = sys::AVPictureType::AV_PICTURE_TYPE_P };
    }

    /// Decoders mark frames as I, P or B; an encoder would take that for an order.
    pub(crate) fn forget_picture_type(&mut self) {
        // SAFETY: the frame is valid and ours.
        unsafe { (*self.0).pict_type = sys::AVPictureType::AV_PICTURE_TYPE_NONE };
    }

    #[cfg(ffmpeg_6_0)]
    fn raw_duration(&self) -> i64 {
        // SAFETY: the frame is valid.
        unsafe { (*self.0).duration }
    }

    #[cfg(not(ffmpeg_6_0))]
    fn raw_duration(&self) -> i64 {
        // SAFETY: the frame is valid.
        unsafe { (*self.0).pkt_duration }
    }

    #[cfg(ffmpeg_6_0)]
    fn set_raw_duration(&mut self, ticks: i64) {
        // SAFETY: the frame is valid and ours.
        unsafe { (*self.0).duration = ticks };
    }

    #[cfg(not(ffmpeg_6_0))]
    fn set_raw_duration(&mut self, ticks: i64) {
        // SAFETY: the frame is valid and ours.
        unsafe { (*self.0).pkt_duration = ticks };
    }

    /// Whether the frame holds two fields.
    #[cfg(ffmpeg_6_1)]
    pub(crate) fn is_interlaced(&self) -> bool {
        // SAFETY: the frame is valid.
        unsafe { (*self.0).flags & sys::AV_FRAME_FLAG_INTERLACED != 0 }
    }

    /// Whether the frame holds two fields.
    #[cfg(not(ffmpeg_6_1))]
    pub(crate) fn is_interlaced(&self) -> bool {
        // SAFETY: the frame is valid.
        unsafe { (*self.0).interlaced_frame != 0 }
    }

    /// Whether the decoder knows that parts are missing or concealed.
    pub(crate) fn is_damaged(&self) -> bool {
        // SAFETY: the frame is valid.
        unsafe { (*self.0).flags & sys::AV_FRAME_FLAG_CORRUPT != 0 || (*self.0).decode_error_flags != 0 }
    }

    /// Size in pixels; zero for sound.
    pub(crate) fn dimensions(&self) -> Dimensions {
        // SAFETY: the frame is valid.
        let (width, height) = unsafe { ((*self.0).width, (*self.0).height) };
        Dimensions::new(u32::try_from(width).unwrap_or(0), u32::try_from(height).unwrap_or(0))
    }

    /// What a picture graph depends on. C enums are read as numbers.
    pub(crate) fn picture_shape(&self) -> PictureShape {
        // SAFETY: the frame is valid; each enum field is as large as an int.
        unsafe {
            PictureShape {
                dimensions: self.dimensions(),
                pixel_aspect: {
                    let aspect = (*self.0).sample_aspect_ratio;
                    let sides = u32::try_from(aspect.num).ok().zip(u32::try_from(aspect.den).ok());
                    sides.filter(|(width, height)| *width > 0 && *height > 0).unwrap_or((1, 1))
                },
                format: (*self.0).format,
                range: ptr::addr_of!((*self.0).color_range).cast::<i32>().read(),
                space: ptr::addr_of!((*self.0).colorspace).cast::<i32>().read(),
                primaries: ptr::addr_of!((*self.0).color_primaries).cast::<i32>().read(),
                transfer: ptr::addr_of!((*self.0).color_trc).cast::<i32>().read(),
            }
        }
    }

    /// What a sound graph depends on.
    pub(crate) fn sound_shape(&self) -> SoundShape {
        // SAFETY: the frame is valid.
        unsafe {
            let layout = ptr::addr_of!((*self.0).ch_layout);
            SoundShape {
                sample_rate: u32::try_from((*self.0).sample_rate).unwrap_or(0),
                channels: u32::try_from((*layout).nb_channels).unwrap_or(0),
                format: (*self.0).format,
                layout: describe_layout(layout),
            }
        }
    }

    /// Tells an encoder or filter that these pixels are limited-range BT.709.
    pub(crate) fn tag_bt709(&mut self) {
        // SAFETY: the frame is valid and ours.
        unsafe {
            (*self.0).color_range = sys::AVColorRange::AVCOL_RANGE_MPEG;
            (*self.0).colorspace = sys::AVColorSpace::AVCOL_SPC_BT709;
            (*self.0).color_primaries = sys::AVColorPrimaries::AVCOL_PRI_BT709;
            (*self.0).color_trc = sys::AVColorTransferCharacteristic::AVCOL_TRC_BT709;
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: frees what this value owns, once.
        unsafe { sys::av_frame_free(&raw mut self.0) };
    }
}

/// libav's text for a layout; a default one of the same size where the file names none.
///
/// # Safety
/// `layout` is valid.
unsafe fn describe_layout(layout: *const sys::AVChannelLayout) -> String {
    let mut buffer = [0; 128];
    // SAFETY: the caller's promise; the buffer is writable for its whole length, the temporary layout lives
    // through the call and owns nothing.
    unsafe {
        let unspecified = ptr::addr_of!((*layout).order).cast::<i32>().read()
            == sys::AVChannelOrder::AV_CHANNEL_ORDER_UNSPEC as i32;
        let written = if unspecified {
            let mut standard: sys::AVChannelLayout = std::mem::zeroed();
            sys::av_channel_layout_default(&raw mut standard, (*layout).nb_channels);
            sys::av_channel_layout_describe(&raw const standard, buffer.as_mut_ptr(), buffer.len())
        } else {
            sys::av_channel_layout_describe(layout, buffer.as_mut_ptr(), buffer.len())
        };
        if written < 0 {
            return String::new();
        }
    }
    // SAFETY: libav ended the text inside the buffer with NUL.
    unsafe { CStr::from_ptr(buffer.as_ptr()) }.to_string_lossy().into_owned()
}

/// libav's name of a sample format.
pub(super) fn sample_format_name(format: i32) -> Option<String> {
    if format < 0 || format >= sys::AVSampleFormat::AV_SAMPLE_FMT_NB as i32 {
        return None;
    }
    let format = ["u8", "s16", "s32", "flt", "dbl", "u8p", "s16p", "s32p", "fltp", "dblp", "s64", "s64p"]
        .get(usize::try_from(format).ok()?)?;
    // Asked back, so that a library with another numbering is noticed.
    let name = c_string(format);
    // SAFETY: the name lives through the call.
    let known = unsafe { sys::av_get_sample_fmt(name.as_ptr()) } as i32;
    (known >= 0).then(|| (*format).to_owned())
}
