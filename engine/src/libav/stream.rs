//! Facts about one stream of an input.

use std::ffi::{CStr, c_char};
use std::ptr;

use bytes::Bytes;
use ffmpeg_next::ffi as sys;

use super::allow;
use super::packet::known;
use crate::media::{DynamicRange, Orientation, PixelLayout};
use crate::units::{BitRate, Dimensions, FrameRate, Timestamp};

/// The length of one tick of a stream's clock, in seconds as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeBase {
    pub(crate) numerator: i32,
    pub(crate) denominator: i32,
}

impl TimeBase {
    pub(crate) const MICROSECONDS: Self = Self { numerator: 1, denominator: 1_000_000 };

    pub(super) const fn of(value: sys::AVRational) -> Self {
        if value.num > 0 && value.den > 0 {
            Self { numerator: value.num, denominator: value.den }
        } else {
            Self::MICROSECONDS
        }
    }

    pub(super) const fn rational(self) -> sys::AVRational {
        sys::AVRational { num: self.numerator, den: self.denominator }
    }

    /// Rounded to the nearest microsecond.
    pub(crate) fn timestamp(self, ticks: i64) -> Timestamp {
        let scaled = i128::from(ticks) * i128::from(self.numerator) * 1_000_000;
        let denominator = i128::from(self.denominator);
        let rounded = (scaled + denominator / 2).div_euclid(denominator);
        Timestamp::from_micros(i64::try_from(rounded).unwrap_or(if rounded < 0 {
            i64::MIN
        } else {
            i64::MAX
        }))
    }

    /// Rounded to the nearest tick.
    pub(crate) fn ticks(self, time: Timestamp) -> i64 {
        let scaled = i128::from(time.micros()) * i128::from(self.denominator);
        let divisor = i128::from(self.numerator) * 1_000_000;
        let rounded = (scaled + divisor / 2).div_euclid(divisor);
        i64::try_from(rounded).unwrap_or(if rounded < 0 { i64::MIN } else { i64::MAX })
    }
}

/// What a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    Video,
    Audio,
    Other,
}

/// What the demuxer says about a stream. All of it may be a lie.
#[derive(Clone, Debug)]
pub(crate) struct StreamFacts {
    pub(crate) index: usize,
    pub(crate) kind: StreamKind,
    /// libav's short name of the codec.
    pub(crate) codec: String,
    /// Whether an allowed decoder is in this build.
    pub(crate) decodable: bool,
    pub(crate) time_base: TimeBase,
    pub(crate) start: Option<Timestamp>,
    pub(crate) duration: Option<Timestamp>,
    pub(crate) frames: Option<u64>,
    pub(crate) coded: Option<Dimensions>,
    /// Width to height of one stored pixel.
    pub(crate) pixel_aspect: (u32, u32),
    pub(crate) orientation: Orientation,
    pub(crate) pixels: Option<PixelLayout>,
    pub(crate) dynamic_range: DynamicRange,
    pub(crate) interlaced: bool,
    pub(crate) average_rate: Option<FrameRate>,
    pub(crate) bit_rate: Option<BitRate>,
    pub(crate) channels: u32,
    pub(crate) sample_rate: u32,
    pub(crate) language: Option<String>,
    pub(crate) is_default: bool,
    /// A cover picture, not a track.
    pub(crate) is_attached_picture: bool,
    pub(crate) extradata: Bytes,
}

/// One packet as the container's index lists it, in decoding order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) dts: Timestamp,
    pub(crate) position: u64,
    pub(crate) bytes: u32,
    pub(crate) key: bool,
    /// Decoded but not shown.
    pub(crate) hidden: bool,
}

impl StreamFacts {
    /// # Safety
    /// `stream` is a stream of an open input that nobody else uses.
    pub(super) unsafe fn read(stream: *mut sys::AVStream) -> Self {
        // SAFETY: the caller's promise; codecpar of an open input's stream is never null.
        unsafe {
            let parameters = (*stream).codecpar;
            let time_base = TimeBase::of((*stream).time_base);
            // Compared as a number: a library newer than the headers may hold a value the enum does not have.
            let media_type = ptr::addr_of!((*parameters).codec_type).cast::<i32>().read();
            let kind = if media_type == sys::AVMediaType::AVMEDIA_TYPE_VIDEO as i32 {
                StreamKind::Video
            } else if media_type == sys::AVMediaType::AVMEDIA_TYPE_AUDIO as i32 {
                StreamKind::Audio
            } else {
                StreamKind::Other
            };
            let codec = codec_name(ptr::addr_of!((*parameters).codec_id).cast::<i32>().read());
            let disposition = (*stream).disposition;
            let transfer = ptr::addr_of!((*parameters).color_trc).cast::<i32>().read();
            let field_order = ptr::addr_of!((*parameters).field_order).cast::<i32>().read();
            let positive = |value: i32| u32::try_from(value).ok().filter(|v| *v > 0);
            Self {
                index: usize::try_from((*stream).index).unwrap_or(usize::MAX),
                kind,
                decodable: allow::decoders(&codec).iter().any(|name| super::decoder::exists(name)),
                codec,
                time_base,
                start: known((*stream).start_time).map(|t| time_base.timestamp(t)),
                duration: known((*stream).duration).filter(|d| *d > 0).map(|d| time_base.timestamp(d)),
                frames: u64::try_from((*stream).nb_frames).ok().filter(|n| *n > 0),
                coded: positive((*parameters).width)
                    .zip(positive((*parameters).height))
                    .map(|(width, height)| Dimensions::new(width, height)),
                pixel_aspect: pixel_aspect((*stream).sample_aspect_ratio, (*parameters).sample_aspect_ratio),
                orientation: orientation(stream),
                pixels: if kind == StreamKind::Video {
                    pixel_layout(
                        (*parameters).format,
                        ptr::addr_of!((*parameters).color_range).cast::<i32>().read(),
                    )
                } else {
                    None
                },
                dynamic_range: dynamic_range(transfer),
                // Progressive is 1, unknown 0, the four interlaced orders 2 to 5.
                interlaced: (2..=5).contains(&field_order),
                average_rate: rate((*stream).avg_frame_rate),
                bit_rate: u64::try_from((*parameters).bit_rate).ok().filter(|r| *r > 0).map(BitRate::new),
                channels: u32::try_from((*parameters).ch_layout.nb_channels).unwrap_or(0),
                sample_rate: u32::try_from((*parameters).sample_rate).unwrap_or(0),
                language: tag((*stream).metadata, c"language"),
                is_default: disposition & sys::AV_DISPOSITION_DEFAULT != 0,
                is_attached_picture: disposition & sys::AV_DISPOSITION_ATTACHED_PIC != 0,
                extradata: extradata(parameters),
            }
        }
    }
}

/// libav's short name of a codec number.
fn codec_name(id: i32) -> String {
    type ByNumber = unsafe extern "C" fn(i32) -> *const c_char;
    // SAFETY: a C enum parameter is passed like an int; going through the number avoids making a Rust enum of
    // a value that the headers may not know.
    let name_of: ByNumber = unsafe {
        std::mem::transmute::<unsafe extern "C" fn(sys::AVCodecID) -> *const c_char, ByNumber>(
            sys::avcodec_get_name,
        )
    };
    // SAFETY: libav returns a static NUL-terminated string for every number.
    unsafe { CStr::from_ptr(name_of(id)) }.to_string_lossy().into_owned()
}

fn rate(value: sys::AVRational) -> Option<FrameRate> {
    FrameRate::new(u32::try_from(value.num).ok()?, u32::try_from(value.den).ok()?)
}

fn pixel_aspect(container: sys::AVRational, codec: sys::AVRational) -> (u32, u32) {
    [container, codec]
        .into_iter()
        .filter_map(|value| FrameRate::new(u32::try_from(value.num).ok()?, u32::try_from(value.den).ok()?))
        .map(|fraction| (fraction.numerator(), fraction.denominator()))
        .next()
        .unwrap_or((1, 1))
}

/// How a picture of libav's pixel format `format` is stored.
pub(super) fn pixel_layout(format: i32, range: i32) -> Option<PixelLayout> {
    if format < 0 || format >= sys::AVPixelFormat::AV_PIX_FMT_NB as i32 {
        return None;
    }
    type ByNumber = unsafe extern "C" fn(i32) -> *const sys::AVPixFmtDescriptor;
    // SAFETY: as in `codec_name`.
    let describe: ByNumber = unsafe {
        std::mem::transmute::<
            unsafe extern "C" fn(sys::AVPixelFormat) -> *const sys::AVPixFmtDescriptor,
            ByNumber,
        >(sys::av_pix_fmt_desc_get)
    };
    // SAFETY: the number was checked to be in range; libav answers null for a gap.
    let description = unsafe { describe(format).as_ref() }?;
    // SAFETY: the name of a descriptor is a static string or null.
    let name = unsafe { description.name.as_ref().map(|name| CStr::from_ptr(name)) };
    let flag = |wanted: u64| description.flags & wanted != 0;
    let jpeg = name.is_some_and(|name| name.to_bytes().starts_with(b"yuvj"));
    Some(PixelLayout {
        bit_depth: u8::try_from(description.comp[0].depth).unwrap_or(0),
        chroma_420: description.log2_chroma_w == 1
            && description.log2_chroma_h == 1
            && description.nb_components >= 3
            && !flag(u64::from(sys::AV_PIX_FMT_FLAG_RGB.unsigned_abs())),
        alpha: flag(u64::from(sys::AV_PIX_FMT_FLAG_ALPHA.unsigned_abs()))
            || flag(u64::from(sys::AV_PIX_FMT_FLAG_PAL.unsigned_abs())),
        full_range: jpeg || range == sys::AVColorRange::AVCOL_RANGE_JPEG as i32,
    })
}

pub(super) const fn dynamic_range(transfer: i32) -> DynamicRange {
    if transfer == sys::AVColorTransferCharacteristic::AVCOL_TRC_SMPTE2084 as i32 {
        DynamicRange::Pq
    } else if transfer == sys::AVColorTransferCharacteristic::AVCOL_TRC_ARIB_STD_B67 as i32 {
        DynamicRange::Hlg
    } else {
        DynamicRange::Standard
    }
}

/// # Safety
/// `stream` is a stream of an open input.
unsafe fn orientation(stream: *mut sys::AVStream) -> Orientation {
    let kind = sys::AVPacketSideDataType::AV_PKT_DATA_DISPLAYMATRIX;
    // SAFETY: the caller's promise; libav answers a pointer to `size` bytes that live with the stream, or null.
    unsafe {
        #[cfg(not(ffmpeg_6_1))]
        let (data, size) = {
            let mut size = 0;
            let data = sys::av_stream_get_side_data(stream, kind, &raw mut size);
            (data.cast_const(), size)
        };
        #[cfg(ffmpeg_6_1)]
        let (data, size) = {
            let parameters = (*stream).codecpar;
            let found = sys::av_packet_side_data_get(
                (*parameters).coded_side_data,
                (*parameters).nb_coded_side_data,
                kind,
            );
            if found.is_null() { (ptr::null(), 0) } else { ((*found).data.cast_const(), (*found).size) }
        };
        if data.is_null() || size < MATRIX_BYTES {
            return Orientation::Upright;
        }
        let mut matrix = [0_i32; 9];
        ptr::copy_nonoverlapping(data, matrix.as_mut_ptr().cast::<u8>(), MATRIX_BYTES);
        matrix_orientation(matrix)
    }
}

/// The symmetry nearest to a display matrix, as ISO/IEC 14496-12 writes it: a stored point (p, q) is shown at
/// (a·p + c·q, b·p + d·q), with q growing downwards and the matrix stored as a b u, c d v, x y w.
fn matrix_orientation([a, b, _, c, d, ..]: [i32; 9]) -> Orientation {
    let straight = i64::from(a).abs() + i64::from(d).abs();
    let crossed = i64::from(b).abs() + i64::from(c).abs();
    if straight >= crossed {
        match (a < 0, d < 0) {
            (false, false) => Orientation::Upright,
            (true, false) => Orientation::Mirrored,
            (false, true) => Orientation::Flipped,
            (true, true) => Orientation::Turned180,
        }
    } else {
        match (b < 0, c < 0) {
            (false, true) => Orientation::Turned90,
            (true, false) => Orientation::Turned270,
            (false, false) => Orientation::Transposed,
            (true, true) => Orientation::Transversed,
        }
    }
}

/// # Safety
/// `dictionary` is null or a valid dictionary.
unsafe fn tag(dictionary: *const sys::AVDictionary, name: &CStr) -> Option<String> {
    // SAFETY: the caller's promise; an entry's value is a NUL-terminated string that lives with the dictionary.
    let value = unsafe {
        let entry = sys::av_dict_get(dictionary, name.as_ptr(), ptr::null(), 0);
        CStr::from_ptr(entry.as_ref()?.value.as_ref()?)
    };
    // Untrusted text: only what a language code can be.
    let text = value.to_str().ok()?;
    let plain = text.len() <= 16 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    (plain && text != "und").then(|| text.to_owned())
}

/// # Safety
/// `parameters` belongs to an open input.
unsafe fn extradata(parameters: *const sys::AVCodecParameters) -> Bytes {
    // SAFETY: the caller's promise; extradata points to extradata_size readable bytes or is null.
    unsafe {
        match usize::try_from((*parameters).extradata_size) {
            Ok(size) if size > 0 && !(*parameters).extradata.is_null() => {
                Bytes::copy_from_slice(std::slice::from_raw_parts((*parameters).extradata, size))
            }
            _ => Bytes::new(),
        }
    }
}

/// Nine 32-bit numbers.
const MATRIX_BYTES: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_eight_matrices_are_told_apart() {
        let one = 1 << 16;
        for (a, b, c, d, expected) in [
            (one, 0, 0, one, Orientation::Upright),
            (-one, 0, 0, one, Orientation::Mirrored),
            (-one, 0, 0, -one, Orientation::Turned180),
            (one, 0, 0, -one, Orientation::Flipped),
            (0, one, one, 0, Orientation::Transposed),
            (0, one, -one, 0, Orientation::Turned90),
            (0, -one, -one, 0, Orientation::Transversed),
            (0, -one, one, 0, Orientation::Turned270),
        ] {
            assert_eq!(matrix_orientation([a, b, 0, c, d, 0, 0, 0, 1 << 30]), expected);
        }
    }

    #[test]
    fn times_round_to_the_nearest() {
        let base = TimeBase { numerator: 1, denominator: 90_000 };
        assert_eq!(base.timestamp(1), Timestamp::from_micros(11));
        assert_eq!(base.timestamp(-1), Timestamp::from_micros(-11));
        assert_eq!(base.ticks(Timestamp::from_micros(11)), 1);
    }
}
