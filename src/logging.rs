//! The log on standard error, for people who look for a cause.

use tracing_subscriber::filter::LevelFilter;

/// Sends what the engine and libav tell to standard error, down to `level`; `OFF` costs nothing.
pub(crate) fn start(level: LevelFilter) {
    if level == LevelFilter::OFF {
        return;
    }
    let started = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
    // Only a second call could fail, and the first one's log is as good.
    drop(started);
}
