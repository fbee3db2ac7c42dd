#!/bin/sh
# Peak memory of `azalea fit` from 1080p to 720p, for ten seconds and for ten minutes of the same video.
#
# Needs GNU time (package `time`) and the ffmpeg program. Prints the peak in KiB of each run; the result of a run is held
# in memory too, so its size is printed beside.
set -eu
cd "$(dirname "$0")/.."
cargo build --release --locked
program="${CARGO_TARGET_DIR:-target}/release/azalea"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ffmpeg -nostdin -v error -y -f lavfi -i "testsrc2=s=1920x1080:r=30:d=10,noise=alls=4:allf=t:all_seed=7" \
    -f lavfi -i sine=f=300:r=48000:d=10 -c:v libx264 -preset veryfast -crf 26 -pix_fmt yuv420p -c:a aac "$folder/short.mp4"
ffmpeg -nostdin -v error -y -stream_loop 59 -i "$folder/short.mp4" -c copy "$folder/long.mp4"
measure() { # name height limit
    command time -f '%M' -o "$folder/peak" "$program" fit "$folder/$1.mp4" --height "$2" --limit "$3" --preset fast \
        -o "$folder/out.mp4" >/dev/null
    printf '%s to %sp: peak %s KiB, result %s bytes\n' "$1" "$2" "$(tail -n 1 "$folder/peak")" "$(wc -c <"$folder/out.mp4")"
}
measure short 720 4MiB
# The same picture size and limit, so that only the length of the input differs.
measure short 240 10MiB
measure long 240 10MiB
