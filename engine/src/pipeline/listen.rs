//! Chooses among several sound tracks by listening: what can be heard goes before silence.

use crate::error::Error;
use crate::libav::{Answer, Care, Graph, SoundPath, StreamFacts};
use crate::limits::Limits;
use crate::pipeline::decode::Decoding;
use crate::pipeline::inspect::Tracks;
use crate::progress::Control;

/// Puts the first track that can be heard in front; the order stays when none or the first can.
pub(crate) fn prefer_audible(tracks: &mut Tracks, limits: &Limits, control: &Control) -> Result<(), Error> {
    if tracks.sounds.len() < 2 {
        return Ok(());
    }
    let candidates = tracks.sounds.clone();
    for (place, stream) in candidates.iter().enumerate().take(MOST_CANDIDATES) {
        tracks.rewind(limits)?;
        if is_audible(tracks, stream, limits, control)? {
            if place > 0 {
                let chosen = tracks.sounds.remove(place);
                tracks.sounds.insert(0, chosen);
            }
            return Ok(());
        }
    }
    Ok(())
}

fn is_audible(
    tracks: &mut Tracks,
    stream: &StreamFacts,
    limits: &Limits,
    control: &Control,
) -> Result<bool, Error> {
    tracks.narrow(&[stream.index]);
    let mut decoding = match Decoding::new(&mut tracks.input, stream, Care::Lenient, limits) {
        Ok(decoding) => decoding,
        Err(Error::Corrupt { .. } | Error::Unsupported { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut graph: Option<(crate::libav::SoundShape, Graph)> = None;
    let mut heard = 0_u32;
    while let Some(frame) = decoding.next()? {
        control.stop()?;
        let shape = frame.sound_shape();
        heard = heard.saturating_add(frame.samples());
        if shape.sample_rate == 0 || heard / shape.sample_rate > SECONDS {
            return Ok(false);
        }
        if graph.as_ref().is_none_or(|(known, _)| *known != shape) {
            let path = SoundPath { sample_rate: shape.sample_rate, channels: 1 };
            graph = Some((shape.clone(), Graph::sound(&shape, &path)?));
        }
        let Some((_, graph)) = &mut graph else { continue };
        if graph.send(Some(frame)).is_err() {
            return Ok(false);
        }
        while let Ok(Answer::Item(frame)) = graph.receive() {
            let loud =
                frame.channel(0).is_some_and(|samples| samples.iter().any(|sample| sample.abs() > AUDIBLE));
            if loud {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// -60 dB below full scale: dither and codec noise of a silent track stay under it.
const AUDIBLE: f32 = 0.001;
/// A recording whose track is silent for this long is taken for silent.
const SECONDS: u32 = 60;
/// Editors write up to eight tracks; a hostile file may hold more.
const MOST_CANDIDATES: usize = 8;
