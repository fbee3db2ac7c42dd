//! Encoders: H.264 by x264, AAC, and pictures.

use std::ptr;

use bytes::Bytes;
use ffmpeg_next::ffi as sys;

use super::options::Options;
use super::{Answer, Fault, Frame, Packet, c_string};
use crate::error::Error;
use crate::fit::Preset;
use crate::units::{BitRate, Dimensions, FrameRate};

/// How a video track is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct VideoSpec {
    pub(crate) dimensions: Dimensions,
    /// Ticks per second of the frames' times.
    pub(crate) clock: FrameRate,
    /// Typical frames per second, for rate control and level.
    pub(crate) frame_rate: FrameRate,
    /// Constant rate factor, 0 to 51.
    pub(crate) crf: f64,
    pub(crate) preset: Preset,
    /// Codec threads.
    pub(crate) threads: usize,
    /// Most frames from one key frame to the next.
    pub(crate) key_interval: u32,
}

/// How a sound track is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SoundSpec {
    pub(crate) sample_rate: u32,
    pub(crate) channels: u32,
    pub(crate) bit_rate: BitRate,
}

/// The codec of a single picture, or of the pictures of a GIF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureCodec {
    /// JPEG with libav's quantiser scale, 2 (best) to 31.
    Jpeg { quantiser: u8 },
    /// PNG.
    Png,
}

/// One encoded packet; times in the encoder's ticks.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub(crate) data: Bytes,
    pub(crate) pts: i64,
    pub(crate) key: bool,
}

/// An open encoder.
#[derive(Debug)]
pub(crate) struct Encoder {
    context: *mut sys::AVCodecContext,
    packet: Packet,
}

// SAFETY: the context has no thread-local state (the codec's own threads belong to it) and this value is its
// only owner.
unsafe impl Send for Encoder {}

/// Whether this build has an encoder of this name.
pub(super) fn exists(name: &str) -> bool {
    let name = c_string(name);
    // SAFETY: the name lives through the call.
    !unsafe { sys::avcodec_find_encoder_by_name(name.as_ptr()) }.is_null()
}

impl Encoder {
    /// Opens x264 for limited-range BT.709 pictures in 8-bit 4:2:0.
    ///
    /// # Errors
    /// `Unsupported` without x264 in this build, `Internal` when it refuses the parameters.
    pub(crate) fn video(spec: &VideoSpec) -> Result<Self, Error> {
        let (preset, parameters) = x264_settings(spec.preset);
        let mut options = Options::new(&[
            ("preset", preset),
            ("profile", "high"),
            ("crf", &format!("{:.3}", spec.crf)),
            // Closed captions would be copied into the stream.
            ("a53cc", "0"),
            ("x264-params", &format!("{COMMON}:{parameters}")),
            // A key frame that is ordered is one from which decoding can begin.
            ("forced-idr", "1"),
        ])?;
        let (time_base, frame_rate) = (rational(spec.clock), rational(spec.frame_rate));
        Self::open("libx264", &mut options, |context| {
            // SAFETY: `open` passes a fresh context that nobody else uses.
            unsafe {
                set_size(context, spec.dimensions);
                (*context).pix_fmt = sys::AVPixelFormat::AV_PIX_FMT_YUV420P;
                (*context).time_base = sys::AVRational { num: time_base.den, den: time_base.num };
                (*context).framerate = frame_rate;
                (*context).sample_aspect_ratio = sys::AVRational { num: 1, den: 1 };
                (*context).color_range = sys::AVColorRange::AVCOL_RANGE_MPEG;
                (*context).colorspace = sys::AVColorSpace::AVCOL_SPC_BT709;
                (*context).color_primaries = sys::AVColorPrimaries::AVCOL_PRI_BT709;
                (*context).color_trc = sys::AVColorTransferCharacteristic::AVCOL_TRC_BT709;
                (*context).gop_size = i32::try_from(spec.key_interval).unwrap_or(i32::MAX).max(1);
                (*context).thread_count = i32::try_from(spec.threads).unwrap_or(1).max(1);
                (*context).flags |= sys::AV_CODEC_FLAG_GLOBAL_HEADER.cast_signed();
            }
        })
    }

    /// Opens AAC-LC for planar floats, blocks of [`Encoder::block`] samples.
    ///
    /// # Errors
    /// `Internal` when it refuses the parameters.
    pub(crate) fn sound(spec: &SoundSpec) -> Result<Self, Error> {
        let mut options = Options::new(&[])?;
        let sample_rate = i32::try_from(spec.sample_rate).unwrap_or(48_000);
        Self::open("aac", &mut options, |context| {
            // SAFETY: `open` passes a fresh context that nobody else uses.
            unsafe {
                (*context).sample_fmt = sys::AVSampleFormat::AV_SAMPLE_FMT_FLTP;
                (*context).sample_rate = sample_rate;
                (*context).bit_rate = i64::try_from(spec.bit_rate.get()).unwrap_or(i64::MAX);
                (*context).time_base = sys::AVRational { num: 1, den: sample_rate };
                let channels = i32::try_from(spec.channels).unwrap_or(2);
                sys::av_channel_layout_default(ptr::addr_of_mut!((*context).ch_layout), channels);
                (*context).flags |= sys::AV_CODEC_FLAG_GLOBAL_HEADER.cast_signed();
            }
        })
    }

    /// Opens a picture codec for one picture.
    ///
    /// # Errors
    /// `Internal` when it refuses the parameters.
    pub(crate) fn picture(codec: PictureCodec, dimensions: Dimensions) -> Result<Self, Error> {
        let mut options = Options::new(&[])?;
        let name = match codec {
            PictureCodec::Jpeg { .. } => "mjpeg",
            PictureCodec::Png => "png",
        };
        Self::open(name, &mut options, |context| {
            // SAFETY: `open` passes a fresh context that nobody else uses.
            unsafe {
                set_size(context, dimensions);
                (*context).time_base = sys::AVRational { num: 1, den: 25 };
                match codec {
                    PictureCodec::Jpeg { quantiser } => {
                        (*context).pix_fmt = sys::AVPixelFormat::AV_PIX_FMT_YUVJ420P;
                        (*context).color_range = sys::AVColorRange::AVCOL_RANGE_JPEG;
                        (*context).flags |= sys::AV_CODEC_FLAG_QSCALE.cast_signed();
                        (*context).global_quality = i32::from(quantiser) * sys::FF_QP2LAMBDA;
                    }
                    PictureCodec::Png => (*context).pix_fmt = sys::AVPixelFormat::AV_PIX_FMT_RGBA,
                }
            }
        })
    }

    fn open(
        name: &str,
        options: &mut Options,
        set: impl FnOnce(*mut sys::AVCodecContext),
    ) -> Result<Self, Error> {
        super::init();
        let name_c = c_string(name);
        let packet = Packet::new().map_err(|fault| fault.internal("cannot set up the encoder"))?;
        // SAFETY: the name lives through the call; codecs are static objects.
        let codec = unsafe { sys::avcodec_find_encoder_by_name(name_c.as_ptr()) };
        if codec.is_null() {
            return Err(Error::unsupported(format!("this build of libav has no encoder {name}")));
        }
        // SAFETY: a plain allocation; checked for null.
        let context = unsafe { sys::avcodec_alloc_context3(codec) };
        if context.is_null() {
            return Err(Error::internal("out of memory"));
        }
        let this = Self { context, packet };
        set(context);
        // SAFETY: context, codec and options are valid.
        Fault::check(unsafe { sys::avcodec_open2(context, codec, options.as_mut()) })
            .map_err(|fault| fault.internal(&format!("the encoder {name} cannot be opened")))?;
        options.all_taken(name)?;
        Ok(this)
    }

    /// Samples of one block of sound.
    pub(crate) fn block(&self) -> usize {
        // SAFETY: the context is open and ours.
        usize::try_from(unsafe { (*self.context).frame_size }).unwrap_or(0).max(1)
    }

    /// The codec's global header.
    pub(crate) fn header(&self) -> Bytes {
        // SAFETY: the context is open; extradata points to extradata_size readable bytes or is null.
        unsafe {
            match usize::try_from((*self.context).extradata_size) {
                Ok(size) if size > 0 && !(*self.context).extradata.is_null() => {
                    Bytes::copy_from_slice(std::slice::from_raw_parts((*self.context).extradata, size))
                }
                _ => Bytes::new(),
            }
        }
    }

    /// Changes the constant rate factor of a running x264; it takes effect at the next frame that is encoded.
    pub(crate) fn set_crf(&mut self, crf: f64) -> Result<(), Fault> {
        // SAFETY: the context is open; libx264 reads its private options again before every frame.
        Fault::check(unsafe {
            sys::av_opt_set_double((*self.context).priv_data, c"crf".as_ptr(), crf.clamp(0.0, 51.0), 0)
        })
        .map(|_| ())
    }

    /// Gives a frame whose time is in the encoder's ticks, or the end with `None`.
    pub(crate) fn send(&mut self, frame: Option<&Frame>) -> Result<(), Fault> {
        let frame = frame.map_or(ptr::null_mut(), Frame::as_ptr);
        // SAFETY: the context is open and ours; libav makes its own reference to the frame.
        Fault::check(unsafe { sys::avcodec_send_frame(self.context, frame) }).map(|_| ())
    }

    /// Takes the next packet.
    pub(crate) fn receive(&mut self) -> Result<Answer<Encoded>, Fault> {
        // SAFETY: context and packet are valid and ours.
        match Fault::check(unsafe { sys::avcodec_receive_packet(self.context, self.packet.as_ptr()) }) {
            Ok(_) => {
                let pts = self.packet.raw_pts().unwrap_or(0);
                let encoded = Encoded { data: self.packet.to_bytes(), pts, key: self.packet.is_key() };
                self.packet.clear();
                Ok(Answer::Item(encoded))
            }
            Err(fault) if fault.is_again() => Ok(Answer::FeedMe),
            Err(fault) if fault.is_end() => Ok(Answer::Finished),
            Err(fault) => Err(fault),
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: frees what this value owns, once; libav joins the codec's threads.
        unsafe { sys::avcodec_free_context(&raw mut self.context) };
    }
}

/// The x264 preset and what is set beside it. Chosen by figures at equal size: docs/planner.md.
const fn x264_settings(preset: Preset) -> (&'static str, &'static str) {
    match preset {
        Preset::Fast => ("medium", "ref=1:mixed-refs=0:weightp=1:rc-lookahead=30:partitions=i8x8,i4x4"),
        Preset::Balanced => {
            ("medium", "bframes=5:subme=8:trellis=2:ref=2:mixed-refs=0:weightp=1:partitions=i8x8,i4x4")
        }
        Preset::Best => ("slow", "bframes=5"),
    }
}

/// Parameter sets that do not depend on the CRF, so that segments can be joined; and few bits are better spent on
/// what is there than on looking as grainy as the source, and more evenly over a picture than x264 does unless told.
const COMMON: &str = "stitchable=1:psy-rd=0.4,0:aq-mode=2:aq-strength=0.8";

fn rational(rate: FrameRate) -> sys::AVRational {
    sys::AVRational {
        num: i32::try_from(rate.numerator()).unwrap_or(i32::MAX),
        den: i32::try_from(rate.denominator()).unwrap_or(i32::MAX),
    }
}

/// # Safety
/// `context` is a fresh context that nobody else uses.
unsafe fn set_size(context: *mut sys::AVCodecContext, dimensions: Dimensions) {
    // SAFETY: the caller's promise.
    unsafe {
        (*context).width = i32::try_from(dimensions.width).unwrap_or(0);
        (*context).height = i32::try_from(dimensions.height).unwrap_or(0);
    }
}
