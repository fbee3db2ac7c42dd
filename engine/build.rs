//! Tells the sources which libav they are compiled against.
//!
//! `ffmpeg-sys-next` has looked at the installed headers; Cargo hands its findings to direct dependents as
//! `DEP_FFMPEG_*`. Only the releases where a field moved are turned into `cfg`s.

use std::env;

/// Releases at which something that the engine uses changed, as `ffmpeg-sys-next` names them.
const RELEASES: [&str; 4] = ["ffmpeg_6_0", "ffmpeg_6_1", "ffmpeg_7_0", "ffmpeg_7_1"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for release in RELEASES {
        println!("cargo:rustc-check-cfg=cfg({release})");
        let variable = format!("DEP_FFMPEG_{}", release.to_uppercase());
        println!("cargo:rerun-if-env-changed={variable}");
        if env::var(&variable).is_ok_and(|value| value == "true") {
            println!("cargo:rustc-cfg={release}");
        }
    }
}
