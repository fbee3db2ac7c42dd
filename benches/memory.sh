#!/bin/sh
# Peak memory of `azalea fit`: from 1080p to 720p with each preset, and for ten seconds and ten minutes of the same video.
#
# Needs GNU time (package `time`) and the ffmpeg program. Prints the peak in KiB of each run; the result of a run is held
# in memory too, so its size is printed beside.
set -eu
cd "$(dirname "$0")/.."
command time -f '%M' true >/dev/null 2>&1 || {
    echo 'memory.sh: GNU time is missing: install the package "time"' >&2
    exit 1
}
command -v ffmpeg >/dev/null || {
    echo 'memory.sh: the ffmpeg program is missing' >&2
    exit 1
}
cargo build --release --locked
program="${CARGO_TARGET_DIR:-target}/release/azalea"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ffmpeg -nostdin -v error -y -f lavfi -i "testsrc2=s=1920x1080:r=30:d=10,noise=alls=4:allf=t:all_seed=7" \
    -f lavfi -i sine=f=300:r=48000:d=10 -c:v libx264 -preset veryfast -crf 26 -pix_fmt yuv420p -c:a aac "$folder/short.mp4"
ffmpeg -nostdin -v error -y -stream_loop 59 -i "$folder/short.mp4" -c copy "$folder/long.mp4"
measure() { # name height limit preset
    command time -f '%M' -o "$folder/peak" "$program" fit "$folder/$1.mp4" --height "$2" --limit "$3" --preset "$4" \
        -o "$folder/out.mp4" >/dev/null
    printf '%s to %sp, %s: peak %s KiB, result %s bytes\n' "$1" "$2" "$4" "$(tail -n 1 "$folder/peak")" \
        "$(wc -c <"$folder/out.mp4")"
}
# The encoder looks further ahead with more effort, so each preset has its own peak.
measure short 720 10MiB fast
measure short 720 10MiB balanced
measure short 720 10MiB best
# At one limit; the ladder takes a smaller picture for the long one where 240p would not do it justice.
measure short 240 10MiB fast
measure long 240 10MiB fast
