//! What the commands share that run the service: its runtime, and its end.

use std::num::NonZeroU64;
use std::time::Duration;

use anyhow::Context;
use azalea_bot::domain::MessageId;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::interrupt::Interrupt;

/// Threads of the runtime. It only waits: the work is done by the engine's own threads.
const THREADS: usize = 2;
/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long work has to clean up after a signal.
const GRACE: Duration = Duration::from_secs(2);

/// A runtime for the service.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("azalea-service")
        .enable_all()
        .build()
        .context("cannot start the service's threads")
}

/// Waits for a signal.
pub(crate) async fn asked(interrupt: &Interrupt) {
    let mut look = tokio::time::interval(LOOK);
    while !interrupt.is_asked() {
        look.tick().await;
    }
}

/// Waits for a signal, then cancels, and ends when whoever works has had time to clean up.
pub(crate) async fn until_asked(interrupt: &Interrupt, cancel: &CancellationToken) {
    asked(interrupt).await;
    cancel.cancel();
    tokio::time::sleep(GRACE).await;
}

/// The message of this number.
pub(crate) fn message(number: u64) -> MessageId {
    MessageId::new(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
}
