//! The log on standard error, for people who look for a cause.

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Sends what the engine and libav tell to standard error, down to `level`; `OFF` costs nothing.
pub(crate) fn start(level: LevelFilter) {
    if level == LevelFilter::OFF {
        return;
    }
    // What the Discord library tells holds people's messages and the tokens of their commands. What matters of it is told
    // by who calls it.
    let told = Targets::new().with_default(level).with_target("serenity", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let started = tracing_subscriber::registry().with(lines.with_filter(told)).try_init();
    // Only a second call could fail, and the first one's log is as good.
    drop(started);
}
