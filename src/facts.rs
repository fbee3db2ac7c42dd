//! What this program was built from and is linked to.

use std::fmt::Write as _;

use azalea_engine::BuildFacts;

/// The program's version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The revision of the sources, or `unknown` when they were built without git.
pub(crate) const REVISION: &str = env!("AZALEA_GIT_REVISION");

/// The compiler, as it names itself.
pub(crate) const RUSTC: &str = env!("AZALEA_RUSTC");

/// The target triple.
pub(crate) const TARGET: &str = env!("AZALEA_TARGET");

/// What `--version` says after the program's name.
pub(crate) fn long_version() -> String {
    let facts = azalea_engine::build_facts();
    let mut text = format!("{VERSION}\nrevision {REVISION}\nbuilt by {RUSTC} for {TARGET}\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "libav from FFmpeg {}, {}", facts.ffmpeg, facts.license);
    for (name, version) in &facts.libraries {
        let _ = writeln!(text, "  {name} {version}");
    }
    let _ = write!(text, "x264 {}", if has_x264(&facts) { "present" } else { "missing" });
    text
}

/// Whether H.264 can be written.
pub(crate) fn has_x264(facts: &BuildFacts) -> bool {
    facts.encoders.contains(&"libx264")
}
