#!/bin/sh
# Stands for yt-dlp in the tests. What it does is told by its last argument, where yt-dlp has an address:
#
#   exit:CODE:NAME   prints NAME.out and NAME.err of this folder, as far as they are there, and ends with CODE
#   flood            prints 50 MB
#   flood-errors     prints 1 MB of messages
#   hang:FIFO        says so into FIFO and never ends, nor does the program that it starts
#   variables        fails when it sees a variable that is none of its business
#   --version        its version
set -eu
folder=$(dirname "$0")
for word; do :; done
case $word in
    exit:*)
        rest=${word#exit:}
        name=${rest#*:}
        if [ -e "$folder/$name.out" ]; then cat "$folder/$name.out"; fi
        if [ -e "$folder/$name.err" ]; then cat "$folder/$name.err" >&2; fi
        exit "${rest%%:*}"
        ;;
    flood) exec head -c 50000000 /dev/zero ;;
    flood-errors) exec head -c 1000000 /dev/zero >&2 ;;
    hang:*)
        # Both hold the pipe open, so that its other end tells when both are gone.
        exec 3>"${word#hang:}"
        sleep 100000 &
        echo begun >&3
        wait
        ;;
    variables)
        # Cargo gives this to every test.
        if [ -n "${CARGO_MANIFEST_DIR:-}" ]; then exit 2; fi
        cat "$folder/video.out"
        ;;
    --version) echo 2026.10.26 ;;
    *)
        echo "fake.sh: what is \"$word\"?" >&2
        exit 2
        ;;
esac
