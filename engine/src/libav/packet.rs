//! Compressed data of one stream.

use std::ptr;

use bytes::Bytes;
use ffmpeg_next::ffi as sys;

use super::Fault;
use super::stream::TimeBase;
use crate::units::Timestamp;

/// An owned `AVPacket`, with the time base of its stream.
#[derive(Debug)]
pub(crate) struct Packet {
    packet: *mut sys::AVPacket,
    pub(super) time_base: TimeBase,
}

// SAFETY: a packet's buffer is reference-counted with atomics and holds no thread-local state; this value is
// its only owner, so moving it to another thread moves everything.
unsafe impl Send for Packet {}

impl Packet {
    pub(crate) fn new() -> Result<Self, Fault> {
        // SAFETY: a plain allocation; checked for null.
        let packet = unsafe { sys::av_packet_alloc() };
        if packet.is_null() {
            return Err(Fault::out_of_memory());
        }
        Ok(Self { packet, time_base: TimeBase::MICROSECONDS })
    }

    pub(super) const fn as_ptr(&self) -> *mut sys::AVPacket {
        self.packet
    }

    /// Drops the data, keeps the shell.
    pub(super) fn clear(&mut self) {
        // SAFETY: the packet is valid and ours.
        unsafe { sys::av_packet_unref(self.packet) };
    }

    /// The stream that it belongs to.
    pub(crate) fn stream(&self) -> usize {
        // SAFETY: the packet is valid and ours.
        usize::try_from(unsafe { (*self.packet).stream_index }).unwrap_or(usize::MAX)
    }

    /// The compressed bytes.
    pub(crate) fn data(&self) -> &[u8] {
        // SAFETY: the packet is valid and ours; data points to size readable bytes or is null with size 0.
        unsafe {
            let size = usize::try_from((*self.packet).size).unwrap_or(0);
            if (*self.packet).data.is_null() || size == 0 {
                return &[];
            }
            std::slice::from_raw_parts((*self.packet).data, size)
        }
    }

    /// The compressed bytes, to live on by themselves; shared, not copied.
    pub(crate) fn to_bytes(&self) -> Bytes {
        // SAFETY: the packet is valid; a clone adds a reference to its buffer, or copies what has none.
        let packet = unsafe { sys::av_packet_clone(self.packet) };
        if packet.is_null() {
            return Bytes::copy_from_slice(self.data());
        }
        Bytes::from_owner(Self { packet, time_base: self.time_base })
    }

    /// Presentation time in the stream's time base.
    pub(crate) fn raw_pts(&self) -> Option<i64> {
        // SAFETY: the packet is valid and ours.
        known(unsafe { (*self.packet).pts })
    }

    /// Decoding time in the stream's time base.
    pub(crate) fn raw_dts(&self) -> Option<i64> {
        // SAFETY: the packet is valid and ours.
        known(unsafe { (*self.packet).dts })
    }

    /// Length in the stream's time base; zero when unknown.
    pub(crate) fn raw_duration(&self) -> i64 {
        // SAFETY: the packet is valid and ours.
        unsafe { (*self.packet).duration }.max(0)
    }

    /// Presentation time.
    pub(crate) fn pts(&self) -> Option<Timestamp> {
        self.raw_pts().map(|ticks| self.time_base.timestamp(ticks))
    }

    /// Decoding time.
    pub(crate) fn dts(&self) -> Option<Timestamp> {
        self.raw_dts().map(|ticks| self.time_base.timestamp(ticks))
    }

    /// Length; zero when unknown.
    pub(crate) fn duration(&self) -> Timestamp {
        self.time_base.timestamp(self.raw_duration())
    }

    /// Moves both times by `offset`.
    pub(crate) fn shift(&mut self, offset: Timestamp) {
        self.shift_ticks(self.time_base.ticks(offset));
    }

    /// Moves both times by `offset` and sets the length, in the stream's time base.
    pub(super) fn retime(&mut self, offset: i64, duration: i64) {
        self.shift_ticks(offset);
        // SAFETY: the packet is valid and ours.
        unsafe { (*self.packet).duration = duration };
    }

    fn shift_ticks(&mut self, ticks: i64) {
        // SAFETY: the packet is valid and ours; unknown times stay unknown.
        unsafe {
            for time in [ptr::addr_of_mut!((*self.packet).pts), ptr::addr_of_mut!((*self.packet).dts)] {
                if *time != sys::AV_NOPTS_VALUE {
                    *time = (*time).saturating_add(ticks);
                }
            }
        }
    }

    /// Whether decoding can begin here.
    pub(crate) fn is_key(&self) -> bool {
        self.has_flag(sys::AV_PKT_FLAG_KEY)
    }

    /// Whether the demuxer knows that bytes are missing or wrong.
    pub(crate) fn is_damaged(&self) -> bool {
        self.has_flag(sys::AV_PKT_FLAG_CORRUPT)
    }

    /// Whether it must be decoded but not shown.
    pub(crate) fn is_hidden(&self) -> bool {
        self.has_flag(sys::AV_PKT_FLAG_DISCARD)
    }

    fn has_flag(&self, flag: i32) -> bool {
        // SAFETY: the packet is valid and ours.
        unsafe { (*self.packet).flags & flag != 0 }
    }
}

impl AsRef<[u8]> for Packet {
    fn as_ref(&self) -> &[u8] {
        self.data()
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        // SAFETY: frees what this value owns, once.
        unsafe { sys::av_packet_free(&raw mut self.packet) };
    }
}

/// libav's "no value" as an option.
pub(super) const fn known(time: i64) -> Option<i64> {
    if time == sys::AV_NOPTS_VALUE { None } else { Some(time) }
}
