#!/bin/sh
# Installs what this machine lacks to build and run Azalea. Run it as often as you like.
#
# It looks for what a build really uses (programs, pkg-config modules, libclang), not for package names, so that
# things which came by another way count. Only what is missing is installed.
set -eu

usage() {
    cat <<'TEXT'
usage: sh vendor/install-deps.sh [--check] [--dev] [--rustup]

Installs what this machine lacks to build and run Azalea: a C compiler, pkg-config, clang with libclang, FFmpeg's
libraries with their headers (FFmpeg 5.1 to 9.x), git, curl, CA certificates, and Rust.
Knows Debian and Ubuntu (apt), Fedora (dnf, with RPM Fusion), Arch (pacman), Alpine (apk), macOS (Homebrew).

  --check    install nothing; list what is missing and exit with 1, or exit with 0
  --dev      also what tests and checks use: the ffmpeg program, python3 with pip, rustfmt, clippy, and yt-dlp in a
             folder of its own, $HOME/.local/share/azalea/yt-dlp (the variable YTDLP names another one to use)
  --rustup   if Rust is missing and the system has no package for it, download and run rustup's installer
             (https://sh.rustup.rs); without this flag that is left to you
  --help     this text

It asks for root rights by sudo (or doas), only for the package manager, and only when something is missing.
TEXT
}

CHECK=no
DEV=no
RUSTUP=no
for argument in "$@"; do
    case $argument in
        --check) CHECK=yes ;;
        --dev) DEV=yes ;;
        --rustup) RUSTUP=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        *)
            echo "error: unknown argument \"$argument\"" >&2
            usage >&2
            exit 2
            ;;
    esac
done

ROOT=$(cd "$(dirname "$0")/.." && pwd)
RUST_MINIMUM=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$ROOT/Cargo.toml")
RUST_CHANNEL=$(sed -n 's/^channel = "\(.*\)"$/\1/p' "$ROOT/rust-toolchain.toml")
# libavcodec's versions of FFmpeg 5.1 and of the first release that is not supported (after 9.x).
AVCODEC_MINIMUM=59.37
AVCODEC_BELOW=64
LIBAV="libavcodec libavformat libavfilter libavutil libswscale libswresample"
# The tests look for it in the same place, bot/tests/sources/ytdlp.rs, and expect what this version prints.
YTDLP_VERSION=2026.10.26
YTDLP_FOLDER=${HOME:-}/.local/share/azalea/yt-dlp
YTDLP_PROGRAM=${YTDLP:-$YTDLP_FOLDER/bin/yt-dlp}
RUSTUP_COMMAND="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal"

say() { printf '%s\n' "$*"; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# at_least VERSION MINIMUM: compares the first two numbers of each.
at_least() {
    a_major=${1%%.*}
    a_rest=${1#*.}
    a_minor=${a_rest%%[!0-9]*}
    b_major=${2%%.*}
    b_rest=${2#*.}
    b_minor=${b_rest%%[!0-9]*}
    [ "$2" = "$b_major" ] && b_minor=0
    [ "${a_major:-0}" -gt "$b_major" ] || { [ "${a_major:-0}" -eq "$b_major" ] && [ "${a_minor:-0}" -ge "${b_minor:-0}" ]; }
}

# ---- what is missing --------------------------------------------------------------------------------------

MISSING=
REPORT=
# miss KEY TEXT: KEY is what the package tables below know, TEXT is for people.
miss() {
    MISSING="$MISSING $1"
    REPORT="$REPORT  $2
"
}
lacks() { case " $MISSING " in *" $1 "*) true ;; *) false ;; esac; }

find_libclang() {
    if [ -n "${LIBCLANG_PATH:-}" ]; then
        [ -e "$LIBCLANG_PATH" ]
        return
    fi
    for file in \
        /usr/lib*/libclang.so* /usr/lib*/libclang-[0-9]*.so* /usr/lib/*-linux-*/libclang.so* \
        /usr/lib/*-linux-*/libclang-[0-9]*.so* /usr/lib*/llvm*/lib*/libclang.so* /usr/local/lib*/libclang.so* \
        /opt/homebrew/opt/llvm/lib/libclang.dylib /usr/local/opt/llvm/lib/libclang.dylib \
        /Library/Developer/CommandLineTools/usr/lib/libclang.dylib \
        /Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib/libclang.dylib; do
        [ -e "$file" ] && return 0
    done
    return 1
}

look_for_libav() {
    for library in $LIBAV; do
        if ! pkg-config --exists "$library" 2>/dev/null; then
            miss libav "FFmpeg's libraries with headers ($library is not known to pkg-config)"
            return 0
        fi
    done
    version=$(pkg-config --modversion libavcodec)
    if ! at_least "$version" "$AVCODEC_MINIMUM"; then
        miss libav "FFmpeg 5.1 or later (this libavcodec is $version, older than $AVCODEC_MINIMUM)"
    elif at_least "$version" "$AVCODEC_BELOW"; then
        miss libav "FFmpeg 9.x or earlier (this libavcodec is $version, newer than what was tested)"
    fi
}

look_for_rust() {
    # rustup fetches the toolchain that rust-toolchain.toml names by itself.
    if have rustup && have cargo; then
        return 0
    elif have cargo; then
        version=$(cargo --version | sed 's/^cargo \([0-9.]*\).*/\1/')
        at_least "$version" "$RUST_MINIMUM" || miss rust "Rust $RUST_MINIMUM or later (this cargo is $version)"
    elif [ -x "${CARGO_HOME:-${HOME:-}/.cargo}/bin/cargo" ]; then
        miss rust "cargo on the PATH: Rust is installed, run  . \"${CARGO_HOME:-\$HOME/.cargo}/env\""
    else
        miss rust "Rust $RUST_MINIMUM or later (no cargo)"
    fi
}

look_for_checks() {
    # rustup brings them with the toolchain.
    if have rustup; then return 0; fi
    { have cargo && cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 ||
        miss checks "rustfmt and clippy (for the checks)"
}

# A version beside ours is as good when somebody chose it by YTDLP; in our own folder it is brought up to date.
look_for_ytdlp() {
    version=$("$YTDLP_PROGRAM" --ignore-config --version 2>/dev/null) || version=
    if [ -z "$version" ]; then
        miss yt-dlp "yt-dlp (for the tests), $YTDLP_PROGRAM"
    elif [ -z "${YTDLP:-}" ] && [ "$version" != "$YTDLP_VERSION" ]; then
        miss yt-dlp "yt-dlp $YTDLP_VERSION (for the tests; $YTDLP_PROGRAM is $version)"
    fi
}

look() {
    MISSING=
    REPORT=
    have cc || have gcc || have clang || miss cc "a C compiler (cc)"
    have pkg-config || miss pkg-config "pkg-config"
    have clang || miss clang "clang"
    find_libclang || lacks clang || miss clang "libclang, which writes the bindings to FFmpeg"
    if have pkg-config; then look_for_libav; else miss libav "FFmpeg's libraries with headers (not seen without pkg-config)"; fi
    have git || miss git "git"
    have curl || miss curl "curl"
    if [ "$(uname -s)" != Darwin ]; then
        [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || [ -e /etc/ssl/cert.pem ] ||
            miss certificates "CA certificates"
    fi
    look_for_rust
    if [ "$DEV" = yes ]; then
        { have ffmpeg && have ffprobe; } || miss ffmpeg "the ffmpeg and ffprobe programs (for the tests)"
        have python3 || miss python "python3 (for the tests)"
        { have python3 && python3 -m pip --version >/dev/null 2>&1; } || miss pip "pip for python3 (for the tests)"
        # What makes folders for Python programs; Debian packs it apart from python3.
        { have python3 && python3 -c 'import ensurepip, venv' 2>/dev/null; } || miss venv "venv for python3 (for yt-dlp)"
        look_for_checks
        look_for_ytdlp
    fi
}

# x264 is what makes the H.264 files; a build of FFmpeg without it links, and fails at the first transcode.
warn_without_x264() {
    have ldd && have pkg-config && pkg-config --exists libavcodec || return 0
    library=$(pkg-config --variable=libdir libavcodec)/libavcodec.so
    [ -e "$library" ] || return 0
    case $(ldd "$library" 2>/dev/null) in
        *libx264*) ;;
        *) say "note: $library does not name libx264; unless it is built in, Azalea cannot make H.264 files with it" ;;
    esac
}

# ---- how it is installed ----------------------------------------------------------------------------------

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    elif have doas; then
        doas "$@"
    else
        fail "this needs root rights, and there is neither sudo nor doas: $*"
    fi
}

PACKAGES=
# want KEY PACKAGE...: the packages are wanted if KEY is missing.
want() {
    key=$1
    shift
    if lacks "$key"; then PACKAGES="$PACKAGES $*"; fi
}

install_apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    want cc gcc libc6-dev
    want pkg-config pkg-config
    want clang clang libclang-dev
    want libav libavcodec-dev libavformat-dev libavfilter-dev libavutil-dev libswscale-dev libswresample-dev
    want git git
    want curl curl
    want certificates ca-certificates
    want ffmpeg ffmpeg
    want python python3
    want pip python3-pip
    want venv python3-venv
    if lacks rust && ! have rustup; then want rust "$(rust_package_of_apt)"; fi
    want checks "$(check_packages_of_apt)"
    # shellcheck disable=SC2086 # a list of words
    [ -z "${PACKAGES# }" ] || as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $PACKAGES
}

# The best package that brings a new enough cargo, or nothing. Debian 12's own cargo is far too old; its security
# updates carry a current one for building browsers (cargo-web), which builds everything else as well.
rust_package_of_apt() {
    candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p'; }
    case $(candidate rustup) in
        '' | '(none)') ;;
        *)
            echo rustup
            return
            ;;
    esac
    for package in cargo cargo-web; do
        version=$(candidate "$package")
        case $version in
            [0-9]*.*)
                if at_least "$version" "$RUST_MINIMUM"; then
                    if [ "$package" = cargo ]; then echo cargo rustc; else echo cargo-web rustc-web; fi
                    return
                fi
                ;;
        esac
    done
}

# rustfmt and clippy of the same kind as the cargo that is here or comes; rustup brings its own.
check_packages_of_apt() {
    kind=$(if lacks rust; then rust_package_of_apt; elif [ -e /var/lib/dpkg/info/cargo-web.list ]; then echo cargo-web; else echo cargo; fi)
    case $kind in
        cargo-web*) echo rustfmt-web rust-web-clippy ;;
        cargo*) echo rustfmt rust-clippy ;;
    esac
}

install_dnf() {
    if { lacks libav || lacks ffmpeg; } && ! dnf -q repolist 2>/dev/null | grep -q '^rpmfusion-free'; then
        if have rpm && [ "$(rpm -E '%{?fedora}')" != "" ]; then release="fedora/rpmfusion-free-release-$(rpm -E %fedora)"; else
            release="el/rpmfusion-free-release-$(rpm -E '%{?rhel}')"
        fi
        fail "Fedora's own FFmpeg (ffmpeg-free) has no libx264, which Azalea makes H.264 files with.
       RPM Fusion's has. Adding another's package source is your decision; this adds it, then run this script again:
         sudo dnf install https://mirrors.rpmfusion.org/free/$release.noarch.rpm
       (RHEL and its kin need EPEL before that.)"
    fi
    want cc gcc glibc-devel
    want pkg-config pkgconf-pkg-config
    want clang clang clang-devel
    want libav ffmpeg-devel
    want git git-core
    want curl curl
    want certificates ca-certificates
    want ffmpeg ffmpeg
    want python python3
    want pip python3-pip
    have rustup || want rust cargo rust
    want checks clippy rustfmt
    # RPM Fusion's FFmpeg replaces ffmpeg-free, and dnf must be told that it may.
    # shellcheck disable=SC2086 # a list of words
    [ -z "${PACKAGES# }" ] || as_root dnf install -y --setopt=install_weak_deps=False --allowerasing $PACKAGES
}

install_pacman() {
    want cc gcc
    want pkg-config pkgconf
    want clang clang
    want libav ffmpeg
    want git git
    want curl curl
    want certificates ca-certificates
    want ffmpeg ffmpeg
    want python python
    want pip python-pip
    have rustup || want rust rust
    [ -n "${PACKAGES# }" ] || return 0
    # No -y here: refreshing the list without upgrading the system is how an Arch system breaks.
    # shellcheck disable=SC2086 # a list of words
    as_root pacman -S --needed --noconfirm $PACKAGES ||
        fail "pacman could not install them; bring the system up to date first (pacman -Syu), then run this again"
}

install_apk() {
    # clang-dev has libclang; musl-dev has the C library's headers.
    want cc gcc musl-dev
    want pkg-config pkgconf
    want clang clang clang-dev
    want libav ffmpeg-dev
    want git git
    want curl curl
    want certificates ca-certificates
    want ffmpeg ffmpeg
    want python python3
    want pip py3-pip
    # Alpine's own Rust links dynamically; rustup's does not by default, and then bindgen cannot load libclang.
    have rustup || want rust cargo rust
    want checks rust-clippy rustfmt
    # shellcheck disable=SC2086 # a list of words
    [ -z "${PACKAGES# }" ] || as_root apk add $PACKAGES
    if have rustup; then say "note: with rustup on Alpine, build with RUSTFLAGS=\"-C target-feature=-crt-static\""; fi
}

install_brew() {
    if lacks cc || ! xcode-select -p >/dev/null 2>&1; then
        fail "Apple's command line tools (compiler, libclang) are missing; run  xcode-select --install  and then this again"
    fi
    want pkg-config pkgconf
    want clang llvm
    want libav ffmpeg
    want git git
    want curl curl
    want ffmpeg ffmpeg
    want python python
    want pip python
    have rustup || want rust rust
    # Homebrew refuses to run as root.
    # shellcheck disable=SC2086 # a list of words
    [ -z "${PACKAGES# }" ] || brew install $PACKAGES
}

# Into a folder of its own: distributions refuse pip's packages beside their own (PEP 668).
install_ytdlp() {
    if [ -n "${YTDLP:-}" ]; then
        say "YTDLP names $YTDLP, which does not run; unset it, and yt-dlp is installed into $YTDLP_FOLDER."
        return 0
    fi
    if [ -z "${HOME:-}" ] || lacks python || lacks venv; then return 0; fi
    python3 -m venv --clear "$YTDLP_FOLDER"
    "$YTDLP_FOLDER/bin/python" -m pip install --quiet --disable-pip-version-check "yt-dlp==$YTDLP_VERSION"
}

install_rust_without_package() {
    if [ "$RUSTUP" = yes ]; then
        installer=$(mktemp)
        # Whole first, then run: a download that breaks off must not run by half.
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs -o "$installer"
        sh "$installer" -y --profile minimal --default-toolchain "$RUST_CHANNEL"
        rm -f "$installer"
        PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
        say "Rust is installed for this user; for this shell run  . \"${CARGO_HOME:-\$HOME/.cargo}/env\""
    else
        say "No package of this system brings Rust $RUST_MINIMUM or later. Give --rustup to this script, or run:"
        say "  $RUSTUP_COMMAND && . \"\$HOME/.cargo/env\""
    fi
}

# ---- the run ----------------------------------------------------------------------------------------------

look
if [ -z "$MISSING" ]; then
    say "All there."
    warn_without_x264
    exit 0
fi
say "Missing:"
printf '%s' "$REPORT"
if [ "$CHECK" = yes ]; then exit 1; fi
RUST_WAS_MISSING=no
if lacks rust; then RUST_WAS_MISSING=yes; fi

if [ "$MISSING" = " yt-dlp" ]; then
    : # no package of the system brings it
elif have apt-get; then
    install_apt
elif have dnf; then
    install_dnf
elif have pacman; then
    install_pacman
elif have apk; then
    install_apk
elif have brew; then
    install_brew
else
    fail "this system is unknown ($(uname -s)); install the things above by its own means, with headers where there are
       libraries, and see with  sh vendor/install-deps.sh --check"
fi

look
# Once there is a rustup, the toolchain is fetched now and not in the middle of the first build.
if [ "$RUST_WAS_MISSING" = yes ] && have rustup; then
    rustup toolchain install "$RUST_CHANNEL" --profile minimal --component rustfmt --component clippy
fi
if lacks rust; then
    install_rust_without_package
    look
fi
if lacks yt-dlp; then
    install_ytdlp
    look
fi
if [ -n "$MISSING" ]; then
    say "Still missing:"
    printf '%s' "$REPORT"
    exit 1
fi
say "Done, all there."
warn_without_x264
