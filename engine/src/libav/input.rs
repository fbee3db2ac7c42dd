//! An opened container: streams, index, packets.

use std::ffi::{c_char, c_int, c_void};
use std::io::{Read, Seek};
use std::ptr;
use std::sync::Arc;

use bytes::Bytes;
use ffmpeg_next::error::EACCES;
use ffmpeg_next::ffi as sys;

use super::io::{Io, Medium, interrupted};
use super::options::Options;
use super::stream::{IndexEntry, StreamFacts};
use super::{Answer, Fault, Packet, Pictures, allow, c_string, init};
use crate::error::Error;
use crate::limits::{LimitKind, Limits};
use crate::media::Container;
use crate::progress::Control;
use crate::units::{ByteSize, Timestamp};

/// An open demuxer. Dropping it closes everything.
#[derive(Debug)]
pub(crate) struct Input {
    context: *mut sys::AVFormatContext,
    /// Freed after the context that reads through it.
    io: Io,
    container: Container,
    pictures: Pictures,
    control: Arc<Control>,
    /// Read errors in a row, to end a demuxer that never recovers.
    faults: u32,
    looked_ahead: bool,
    gif_clock: GifClock,
}

// SAFETY: the context has no thread-local state and this value is its only owner; its callbacks reach only
// the `Io` that moves along, whose reader is Send.
unsafe impl Send for Input {}

impl Input {
    /// Opens `reader` as `container` and as nothing else.
    ///
    /// # Errors
    /// `Unsupported` when this build lacks the demuxer, `Corrupt` when the demuxer refuses the bytes,
    /// `TooLarge` for too many streams, `Io` when the reader fails, and the stop reasons.
    pub(crate) fn open(
        reader: Box<dyn Medium>,
        container: Container,
        pictures: Pictures,
        limits: &Limits,
        control: &Arc<Control>,
    ) -> Result<Self, Error> {
        init();
        let name = c_string(allow::demuxer(container, pictures));
        // SAFETY: the name lives through the call; the answer is a static object or null.
        let demuxer = unsafe { sys::av_find_input_format(name.as_ptr()) };
        if demuxer.is_null() {
            return Err(Error::unsupported(format!("this build of libav cannot open {container} files")));
        }
        let mut io =
            Io::new(reader, control.clone()).map_err(|fault| fault.internal("cannot set up input"))?;
        // SAFETY: a plain allocation; checked for null.
        let mut context = unsafe { sys::avformat_alloc_context() };
        if context.is_null() {
            return Err(Error::internal("out of memory"));
        }
        // SAFETY: the context is fresh and ours. The I/O context and the control outlive it: both are held by
        // the `Io` that is dropped after it.
        unsafe {
            (*context).pb = io.as_ptr();
            (*context).flags |= sys::AVFMT_FLAG_CUSTOM_IO;
            (*context).interrupt_callback.callback = Some(interrupted);
            (*context).interrupt_callback.opaque = io.control_ptr().cast_mut().cast::<c_void>();
            (*context).io_open = Some(refuse_to_open);
        }
        let mut options = match open_options(container, limits) {
            Ok(options) => options,
            Err(error) => {
                // SAFETY: the context was never opened; this frees it and leaves the custom I/O alone.
                unsafe { sys::avformat_free_context(context) };
                return Err(error);
            }
        };
        // SAFETY: all pointers are valid; on failure libav frees the context and nulls our pointer.
        let code =
            unsafe { sys::avformat_open_input(&raw mut context, c"".as_ptr(), demuxer, options.as_mut()) };
        if let Err(fault) = Fault::check(code) {
            return Err(open_error(fault, &mut io, container, control));
        }
        let input = Self {
            context,
            io,
            container,
            pictures,
            control: control.clone(),
            faults: 0,
            looked_ahead: false,
            gif_clock: GifClock::default(),
        };
        options.all_taken(container.name())?;
        let streams = u64::try_from(input.stream_count()).unwrap_or(u64::MAX);
        if streams > u64::from(limits.streams) {
            let allowed = u64::from(limits.streams);
            return Err(Error::TooLarge { limit: LimitKind::Streams, found: streams, allowed });
        }
        Ok(input)
    }

    /// Reads ahead, decoding a little, until the streams' parameters are known. Slow beside `open`.
    ///
    /// # Errors
    /// The stop reasons and the reader's failure; anything else is left for decoding to find.
    pub(crate) fn look_ahead(&mut self) -> Result<(), Error> {
        self.looked_ahead = true;
        // SAFETY: the context is open and ours.
        let code = unsafe { sys::avformat_find_stream_info(self.context, ptr::null_mut()) };
        self.control.stop()?;
        if let Some(cause) = self.io.take_failure() {
            return Err(Error::Io { what: "cannot read the input".into(), cause });
        }
        if let Err(fault) = Fault::check(code) {
            tracing::debug!(reason = fault.text(), "looking ahead ended early");
        }
        Ok(())
    }

    /// Closes the demuxer and opens it again at the beginning: what every container can do, unlike seeking.
    ///
    /// # Errors
    /// As [`Input::open`].
    pub(crate) fn reopen(&mut self, limits: &Limits) -> Result<(), Error> {
        let mut reader = self.io.take_reader().ok_or_else(|| Error::internal("the input is gone"))?;
        reader
            .rewind()
            .map_err(|cause| Error::Io { what: "cannot go to the input's beginning".into(), cause })?;
        let mut input = Self::open(reader, self.container, self.pictures, limits, &self.control)?;
        if self.looked_ahead {
            input.look_ahead()?;
        }
        *self = input;
        Ok(())
    }

    /// Opens the same input once more, for another thread; `None` where its bytes can be read by one alone.
    ///
    /// # Errors
    /// As [`Input::open`].
    pub(crate) fn another(&self, limits: &Limits) -> Result<Option<Self>, Error> {
        let Some(reader) = self.io.another_reader() else { return Ok(None) };
        let mut input = Self::open(reader, self.container, self.pictures, limits, &self.control)?;
        if self.looked_ahead {
            input.look_ahead()?;
        }
        Ok(Some(input))
    }

    /// Closes the demuxer and reads the whole input, of at most `most` bytes.
    ///
    /// # Errors
    /// What the reader answers.
    pub(crate) fn read_all(&mut self, most: ByteSize) -> std::io::Result<Bytes> {
        let Some(mut reader) = self.io.take_reader() else { return Ok(Bytes::new()) };
        reader.rewind()?;
        let mut bytes = Vec::with_capacity(usize::try_from(most.get().min(1 << 30)).unwrap_or(0));
        reader.take(most.get()).read_to_end(&mut bytes)?;
        Ok(Bytes::from(bytes))
    }

    /// What was opened.
    pub(crate) const fn container(&self) -> Container {
        self.container
    }

    /// The number of streams.
    pub(crate) fn stream_count(&self) -> usize {
        // SAFETY: the context is open and ours.
        usize::try_from(unsafe { (*self.context).nb_streams }).unwrap_or(0)
    }

    /// Facts about every stream, in the container's order.
    pub(crate) fn streams(&self) -> Vec<StreamFacts> {
        (0..self.stream_count())
            .filter_map(|index| self.stream_ptr(index))
            // SAFETY: the pointer is a stream of this open input, which nobody else uses.
            .map(|stream| unsafe { StreamFacts::read(stream) })
            .collect()
    }

    /// Length of the presentation as the container states it.
    pub(crate) fn duration(&self) -> Option<Timestamp> {
        // SAFETY: the context is open and ours.
        let duration = unsafe { (*self.context).duration };
        (duration > 0).then(|| Timestamp::from_micros(duration))
    }

    /// The container's index of a stream, in decoding order; empty where it has none.
    pub(crate) fn index(&self, stream: usize) -> Vec<IndexEntry> {
        let Some(stream) = self.stream_ptr(stream) else { return Vec::new() };
        // SAFETY: the stream is of this open input; entries are read before anything can change the index.
        unsafe {
            let base = super::stream::TimeBase::of((*stream).time_base);
            let count = sys::avformat_index_get_entries_count(stream);
            (0..count)
                .filter_map(|number| sys::avformat_index_get_entry(stream, number).as_ref())
                .map(|entry| IndexEntry {
                    dts: base.timestamp(entry.timestamp),
                    position: u64::try_from(entry.pos).unwrap_or(0),
                    bytes: u32::try_from(entry.size()).unwrap_or(0),
                    key: entry.flags() & sys::AVINDEX_KEYFRAME != 0,
                    hidden: entry.flags() & sys::AVINDEX_DISCARD_FRAME != 0,
                })
                .collect()
        }
    }

    /// Lets the demuxer skip every stream but these.
    pub(crate) fn keep_only(&mut self, streams: &[usize]) {
        for index in 0..self.stream_count() {
            let Some(stream) = self.stream_ptr(index) else { continue };
            let discard = if streams.contains(&index) {
                sys::AVDiscard::AVDISCARD_DEFAULT
            } else {
                sys::AVDiscard::AVDISCARD_ALL
            };
            // SAFETY: the stream is of this open input, which nobody else uses.
            unsafe { (*stream).discard = discard };
        }
    }

    /// Reads the next packet into `packet`.
    ///
    /// A demuxer that stumbles is asked again a few times, since most find the next good place by themselves.
    ///
    /// # Errors
    /// The stop reasons, and `Io` when the reader fails.
    pub(crate) fn read(&mut self, packet: &mut Packet) -> Result<Answer<()>, Error> {
        loop {
            self.control.stop()?;
            packet.clear();
            // SAFETY: context and packet are valid and ours.
            let code = unsafe { sys::av_read_frame(self.context, packet.as_ptr()) };
            match Fault::check(code) {
                Ok(_) => {
                    self.faults = 0;
                    if let Some(stream) = self.stream_ptr(packet.stream()) {
                        // SAFETY: the stream is of this open input.
                        packet.time_base = super::stream::TimeBase::of(unsafe { (*stream).time_base });
                    }
                    if self.container == Container::Gif {
                        let (later, duration) = self.gif_clock.place(packet.raw_duration());
                        packet.retime(later, duration);
                    }
                    return Ok(Answer::Item(()));
                }
                Err(fault) if fault.is_end() => return Ok(Answer::Finished),
                Err(fault) => {
                    self.control.stop()?;
                    if let Some(cause) = self.io.take_failure() {
                        return Err(Error::Io { what: "cannot read the input".into(), cause });
                    }
                    self.faults = self.faults.saturating_add(1);
                    tracing::debug!(reason = fault.text(), "the demuxer stumbled");
                    if self.faults > MAX_FAULTS {
                        return Ok(Answer::Finished);
                    }
                }
            }
        }
    }

    /// Goes to the last key frame of `stream` at or before `time`; the next packet read is from there.
    pub(crate) fn seek(&mut self, stream: usize, time: Timestamp) {
        let Some(pointer) = self.stream_ptr(stream) else { return };
        // SAFETY: the stream is of this open input, which is ours.
        let code = unsafe {
            let ticks = super::stream::TimeBase::of((*pointer).time_base).ticks(time);
            let index = c_int::try_from(stream).unwrap_or(-1);
            sys::av_seek_frame(self.context, index, ticks, sys::AVSEEK_FLAG_BACKWARD)
        };
        if let Err(fault) = Fault::check(code) {
            // Reading goes on from where it is; what comes too early is left out later.
            tracing::debug!(reason = fault.text(), "the container cannot seek");
        }
    }

    /// The codec parameters that a decoder is opened with; valid as long as this input.
    pub(super) fn parameters(
        &self,
        stream: usize,
    ) -> Option<(*const sys::AVCodecParameters, sys::AVRational)> {
        let stream = self.stream_ptr(stream)?;
        // SAFETY: the stream is of this open input.
        Some(unsafe { ((*stream).codecpar.cast_const(), (*stream).time_base) })
    }

    fn stream_ptr(&self, index: usize) -> Option<*mut sys::AVStream> {
        if index >= self.stream_count() {
            return None;
        }
        // SAFETY: the index is below nb_streams of the open context, whose stream pointers are never null.
        Some(unsafe { *(*self.context).streams.add(index) })
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // SAFETY: closes what this value owns, once; custom I/O is left for `Io` to free.
        unsafe { sys::avformat_close_input(&raw mut self.context) };
    }
}

/// Every door that libav might open by itself: nested playlists, external references, segment lists.
///
/// # Safety
/// Touches none of its arguments.
unsafe extern "C" fn refuse_to_open(
    _context: *mut sys::AVFormatContext,
    _io: *mut *mut sys::AVIOContext,
    _url: *const c_char,
    _flags: c_int,
    _options: *mut *mut sys::AVDictionary,
) -> c_int {
    sys::AVERROR(EACCES)
}

fn open_options(container: Container, limits: &Limits) -> Result<Options, Error> {
    let mut options = Options::new(&[
        // An empty list would be read as "no list"; no protocol has this name.
        ("protocol_whitelist", "none"),
        ("format_whitelist", &allow::DEMUXERS.join(",")),
        ("codec_whitelist", &allow::all_decoders().collect::<Vec<_>>().join(",")),
        ("max_streams", &limits.streams.saturating_add(1).to_string()),
    ])?;
    if container == Container::Gif {
        // Browsers show delays of 0 and 1 hundredths as 10; libav's names for that rule. Its newer releases
        // still take the options but have the parser set the lengths; `GifClock` does what is then left out.
        options.set("min_delay", &GIF_SHORTEST.to_string())?;
        options.set("default_delay", &GIF_USUAL.to_string())?;
    }
    Ok(options)
}

/// Browsers' rule for the delays of a GIF that is read from the beginning, in its hundredths of a second.
///
/// A libav that applied the rule by itself leaves nothing to do here.
#[derive(Debug, Default)]
struct GifClock {
    /// By how much the pictures so far were lengthened.
    lag: i64,
}

impl GifClock {
    /// How much later the next picture comes, and how long it is shown, when libav says `duration`.
    fn place(&mut self, duration: i64) -> (i64, i64) {
        let later = self.lag;
        // Zero is libav's "unknown", not a delay: it replaces a delay of zero itself.
        if !(1..GIF_SHORTEST).contains(&duration) {
            return (later, duration);
        }
        self.lag = self.lag.saturating_add(GIF_USUAL - duration);
        (later, GIF_USUAL)
    }
}

fn open_error(fault: Fault, io: &mut Io, container: Container, control: &Control) -> Error {
    if let Err(reason) = control.stop() {
        return reason.into();
    }
    if let Some(cause) = io.take_failure() {
        return Error::Io { what: "cannot read the input".into(), cause };
    }
    if fault.is_bad_data() || fault.is_end() {
        Error::corrupt(format!("the {container} file is damaged or cut short: it cannot be opened"))
    } else {
        Error::corrupt(format!("the {container} file cannot be opened: {}", fault.text()))
    }
}

/// Stumbles in a row before a demuxer counts as finished.
const MAX_FAULTS: u32 = 32;

/// Delays below this are not meant, say browsers.
const GIF_SHORTEST: i64 = 2;

/// What browsers show such pictures for.
const GIF_USUAL: i64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_gif_delays_are_lengthened_and_move_what_follows() {
        let mut clock = GifClock::default();
        let placed = [50, 10, 2, 1, 10, 1, 0, 50].map(|duration| clock.place(duration));
        assert_eq!(placed, [(0, 50), (0, 10), (0, 2), (0, 10), (9, 10), (9, 10), (18, 0), (18, 50)]);
    }
}
