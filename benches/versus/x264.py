"""The engine's x264 settings, for `ffmpeg` to use the same. The one place to change when the engine's change."""

# What `engine/src/libav/encoder.rs` gives libx264 for each preset, in ffmpeg's words.
PRESETS: dict[str, tuple[str, str]] = {
    "fast": ("medium", "ref=1:mixed-refs=0:weightp=1:rc-lookahead=30:partitions=i8x8,i4x4"),
    "balanced": ("medium", "bframes=5:subme=8:trellis=2:ref=2:mixed-refs=0:weightp=1:partitions=i8x8,i4x4"),
    "best": ("slow", "bframes=5"),
}
# The same for every preset.
COMMON_PARAMETERS = "psy-rd=0.4,0:aq-mode=2:aq-strength=0.8"
COMMON = ("-profile:v", "high", "-pix_fmt", "yuv420p")
# Most seconds and most frames from one key frame to the next.
KEY_SECONDS = 8.0
MOST_KEY_FRAMES = 600
# A constant rate factor at or below which the engine spends no more bits, with room for rounding.
CEILING_CRF = 18.1


def options(preset: str, rate: float) -> list[str]:
    """The settings of a preset for a video of `rate` frames a second."""
    interval = max(1, min(MOST_KEY_FRAMES, round(rate * KEY_SECONDS)))
    name, parameters = PRESETS[preset]
    x264 = ["-preset", name, "-x264-params", f"{COMMON_PARAMETERS}:{parameters}"]
    return ["-c:v", "libx264", *x264, *COMMON, "-g", str(interval)]
