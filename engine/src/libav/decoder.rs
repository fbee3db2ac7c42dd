//! Decodes the packets of one stream.

use std::ptr;

use ffmpeg_next::ffi as sys;

use super::options::Options;
use super::stream::TimeBase;
use super::{Answer, Fault, Frame, Input, Packet, StreamFacts, StreamKind, allow, c_string};
use crate::error::Error;
use crate::limits::Limits;

/// An open decoder.
#[derive(Debug)]
pub(crate) struct Decoder {
    context: *mut sys::AVCodecContext,
    time_base: TimeBase,
    picture: bool,
}

// SAFETY: the context has no thread-local state (libav's own threads belong to it) and this value is its only
// owner.
unsafe impl Send for Decoder {}

/// How carefully a decoder looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Conceal damage and go on: every picture that can be shown counts.
    Lenient,
    /// The same for pictures that are made much smaller: edges of blocks may stay where no other frame sees them.
    Coarse,
    /// Report damage; pixels are not looked at, so the deblocking filter is left out.
    Strict,
}

/// Whether this build has a decoder of this name.
pub(super) fn exists(name: &str) -> bool {
    !find(name).is_null()
}

fn find(name: &str) -> *const sys::AVCodec {
    let name = c_string(name);
    // SAFETY: the name lives through the call; the answer is a static object or null.
    unsafe { sys::avcodec_find_decoder_by_name(name.as_ptr()) }
}

impl Decoder {
    /// Opens the allowed decoder for a stream of `input` with `threads` codec threads.
    ///
    /// # Errors
    /// `Unsupported` when the codec is not allowed or not in this build, `Corrupt` when its headers are bad.
    pub(crate) fn open(
        input: &Input,
        stream: &StreamFacts,
        threads: usize,
        care: Care,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let decoder = allow::decoders(&stream.codec)
            .iter()
            .map(|name| find(name))
            .find(|decoder| !decoder.is_null())
            .ok_or_else(|| Error::unsupported(format!("the codec {} is not supported", stream.codec)))?;
        let (parameters, time_base) =
            input.parameters(stream.index).ok_or_else(|| Error::internal("no such stream"))?;
        // SAFETY: a plain allocation; checked for null.
        let context = unsafe { sys::avcodec_alloc_context3(decoder) };
        if context.is_null() {
            return Err(Error::internal("out of memory"));
        }
        let this =
            Self { context, time_base: TimeBase::of(time_base), picture: stream.kind == StreamKind::Video };
        let mut options = Options::new(&[("threads", &threads.max(1).to_string())])?;
        // SAFETY: the context is fresh and ours; the parameters live as long as the input, which is borrowed.
        let code = unsafe {
            Fault::check(sys::avcodec_parameters_to_context(context, parameters))
                .map_err(|fault| fault.internal("cannot set up the decoder"))?;
            (*context).pkt_timebase = time_base;
            // libav compares the size with its padding to whole blocks; the exact size is checked with each frame.
            let padded = limits.frame_pixels.saturating_add(limits.frame_pixels / 4).saturating_add(65_536);
            (*context).max_pixels = i64::try_from(padded).unwrap_or(i64::MAX);
            // Slice threads gain nothing on usual streams and multiply without bound.
            (*context).thread_type = sys::FF_THREAD_FRAME;
            if care == Care::Coarse {
                (*context).skip_loop_filter = sys::AVDiscard::AVDISCARD_NONREF;
            }
            if care == Care::Strict {
                (*context).err_recognition = sys::AV_EF_CRCCHECK | sys::AV_EF_BITSTREAM | sys::AV_EF_BUFFER;
                (*context).skip_loop_filter = sys::AVDiscard::AVDISCARD_ALL;
            }
            sys::avcodec_open2(context, decoder, options.as_mut())
        };
        if let Err(fault) = Fault::check(code) {
            return Err(Error::corrupt(format!(
                "the {} stream cannot be decoded: {}",
                stream.codec,
                fault.text()
            )));
        }
        options.all_taken(&stream.codec)?;
        Ok(this)
    }

    /// Gives a packet, or the end with `None`. A packet that the decoder refuses is its fault, not the job's.
    pub(crate) fn send(&mut self, packet: Option<&Packet>) -> Result<(), Fault> {
        let packet = packet.map_or(ptr::null_mut(), Packet::as_ptr);
        // SAFETY: the context is open and ours; libav makes its own reference to the packet's data.
        match Fault::check(unsafe { sys::avcodec_send_packet(self.context, packet) }) {
            Ok(_) => Ok(()),
            Err(fault) if fault.is_end() => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Takes the next decoded frame, its times in microseconds.
    pub(crate) fn receive(&mut self) -> Result<Answer<Frame>, Fault> {
        let mut frame = Frame::new()?;
        // SAFETY: context and frame are valid and ours.
        match Fault::check(unsafe { sys::avcodec_receive_frame(self.context, frame.as_ptr()) }) {
            Ok(_) => {
                frame.settle_times(self.time_base, self.picture);
                Ok(Answer::Item(frame))
            }
            Err(fault) if fault.is_again() => Ok(Answer::FeedMe),
            Err(fault) if fault.is_end() => Ok(Answer::Finished),
            Err(fault) => Err(fault),
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: frees what this value owns, once; libav joins the codec's threads.
        unsafe { sys::avcodec_free_context(&raw mut self.context) };
    }
}
