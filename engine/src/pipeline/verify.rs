//! Decodes a track that is to be kept, to see that it is whole.

use crate::error::Error;
use crate::libav::{Care, StreamFacts};
use crate::limits::Limits;
use crate::pipeline::decode::Decoding;
use crate::pipeline::inspect::Tracks;
use crate::progress::Control;
use crate::units::Timestamp;

/// How much of the job's progress the check is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) duration: Timestamp,
}

/// Whether `stream` of `tracks`, read from where it stands, decodes without any damage and in the order of its
/// times. Ends at the first fault.
pub(crate) fn is_whole(
    tracks: &mut Tracks,
    stream: &StreamFacts,
    share: Share,
    limits: &Limits,
    control: &Control,
) -> Result<bool, Error> {
    tracks.narrow(&[stream.index]);
    let mut decoding = match Decoding::new(&mut tracks.input, stream, Care::Strict, limits) {
        Ok(decoding) => decoding,
        Err(Error::Corrupt { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut frames = 0_u64;
    let mut last: Option<Timestamp> = None;
    while let Some(frame) = decoding.next()? {
        control.stop()?;
        frames += 1;
        if decoding.damaged() > 0 {
            return Ok(false);
        }
        if let Some(time) = frame.pts() {
            // A damaged index gives whole pictures wrong times.
            if last.replace(time).is_some_and(|last| time <= last) {
                return Ok(false);
            }
            let done = (time.seconds() / share.duration.seconds().max(0.001)).clamp(0.0, 1.0);
            control.advance(share.from + (share.to - share.from) * done);
        }
    }
    Ok(decoding.damaged() == 0 && frames > 0)
}
