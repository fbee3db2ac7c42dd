//! What may be opened: every demuxer and decoder that hostile bytes can reach, by name.

use crate::media::Container;

/// How many pictures a picture file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pictures {
    /// The first alone.
    One,
    /// All of an animation; what is no picture file is always opened so.
    All,
}

/// libav's demuxer for a container that was recognised by its first bytes. Nothing else is ever tried.
pub(super) const fn demuxer(container: Container, pictures: Pictures) -> &'static str {
    match container {
        Container::Mp4 => "mov",
        Container::Matroska => "matroska",
        Container::Avi => "avi",
        Container::Flv => "flv",
        Container::MpegTs => "mpegts",
        Container::MpegPs => "mpeg",
        Container::Ogg => "ogg",
        Container::Mp3 => "mp3",
        Container::Adts => "aac",
        Container::Wav => "wav",
        Container::Flac => "flac",
        Container::Gif => "gif",
        Container::Png if matches!(pictures, Pictures::One) => "png_pipe",
        Container::Png => "apng",
        Container::Jpeg => "jpeg_pipe",
        Container::Webp => "webp_pipe",
    }
}

/// All demuxers, in the spelling that libav's own allow-list wants (the first alias of each).
pub(super) const DEMUXERS: [&str; 16] = [
    "mov",
    "matroska",
    "avi",
    "flv",
    "mpegts",
    "mpeg",
    "ogg",
    "mp3",
    "aac",
    "wav",
    "flac",
    "gif",
    "apng",
    "png_pipe",
    "jpeg_pipe",
    "webp_pipe",
];

/// A codec by libav's short name, and the decoders for it in order of preference.
struct Allowed {
    codec: &'static str,
    decoders: &'static [&'static str],
}

const fn same(codec: &'static str, decoders: &'static [&'static str]) -> Allowed {
    Allowed { codec, decoders }
}

/// What people upload. Subtitles, data, screen-capture oddities and intermediate codecs of editing suites are
/// left out: each is code that strangers' bytes would run.
const DECODERS: &[Allowed] = &[
    same("h264", &["h264"]),
    same("hevc", &["hevc"]),
    same("vp8", &["vp8"]),
    same("vp9", &["vp9"]),
    // libav's own av1 decoder needs hardware.
    same("av1", &["libdav1d", "libaom-av1"]),
    same("mpeg4", &["mpeg4"]),
    same("msmpeg4v3", &["msmpeg4"]),
    same("mpeg2video", &["mpeg2video"]),
    same("mpeg1video", &["mpeg1video"]),
    same("h263", &["h263"]),
    same("flv1", &["flv"]),
    same("theora", &["theora"]),
    same("mjpeg", &["mjpeg"]),
    same("prores", &["prores"]),
    same("rawvideo", &["rawvideo"]),
    same("gif", &["gif"]),
    same("png", &["png"]),
    same("apng", &["apng"]),
    same("webp", &["webp"]),
    same("aac", &["aac"]),
    same("mp3", &["mp3float", "mp3"]),
    same("mp2", &["mp2float", "mp2"]),
    same("opus", &["opus", "libopus"]),
    same("vorbis", &["vorbis", "libvorbis"]),
    same("flac", &["flac"]),
    same("alac", &["alac"]),
    same("ac3", &["ac3"]),
    same("eac3", &["eac3"]),
    same("amr_nb", &["amrnb"]),
    same("amr_wb", &["amrwb"]),
    same("pcm_u8", &["pcm_u8"]),
    same("pcm_s8", &["pcm_s8"]),
    same("pcm_s16le", &["pcm_s16le"]),
    same("pcm_s16be", &["pcm_s16be"]),
    same("pcm_s24le", &["pcm_s24le"]),
    same("pcm_s24be", &["pcm_s24be"]),
    same("pcm_s32le", &["pcm_s32le"]),
    same("pcm_s32be", &["pcm_s32be"]),
    same("pcm_f32le", &["pcm_f32le"]),
    same("pcm_f32be", &["pcm_f32be"]),
    same("pcm_f64le", &["pcm_f64le"]),
    same("pcm_mulaw", &["pcm_mulaw"]),
    same("pcm_alaw", &["pcm_alaw"]),
];

/// The decoders for a codec, best first; empty when the codec is not allowed.
pub(super) fn decoders(codec: &str) -> &'static [&'static str] {
    DECODERS.iter().find(|allowed| allowed.codec == codec).map_or(&[], |allowed| allowed.decoders)
}

/// All allowed decoder names.
pub(super) fn all_decoders() -> impl Iterator<Item = &'static str> {
    DECODERS.iter().flat_map(|allowed| allowed.decoders.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demuxer_that_is_forced_is_also_allowed() {
        for container in [
            Container::Mp4,
            Container::Matroska,
            Container::Avi,
            Container::Flv,
            Container::MpegTs,
            Container::MpegPs,
            Container::Ogg,
            Container::Mp3,
            Container::Adts,
            Container::Wav,
            Container::Flac,
            Container::Gif,
            Container::Png,
            Container::Jpeg,
            Container::Webp,
        ] {
            for pictures in [Pictures::One, Pictures::All] {
                assert!(DEMUXERS.contains(&demuxer(container, pictures)), "{container}");
            }
        }
    }

    #[test]
    fn what_opens_other_files_is_not_allowed() {
        for name in ["hls", "dash", "concat", "image2", "sdp", "rtsp", "imf", "webm_dash_manifest"] {
            assert!(!DEMUXERS.contains(&name), "{name}");
        }
        for codec in ["magicyuv", "cfhd", "vvc", "xbin", "ansi", "subrip", "ass"] {
            assert!(decoders(codec).is_empty(), "{codec}");
        }
    }
}
