//! An operator's look into the queue: while the service runs through a socket beside its queue, otherwise by opening
//! the queue itself. Both do the same, for one [`Clerk`] does it in both.
//!
//! This room never decides about a job: it asks the queue, and tells those whose job is dropped. Its invariants:
//!
//! - No trouble with the socket, and nobody who speaks into it, ends the service or holds it up: lines, answers,
//!   connections and waits are bounded.
//! - Only the user that the service runs as, and root, can speak into the socket.
//!
//! What is said stands in `docs/queue.md`, "Commands".

mod clerk;
mod client;
#[cfg(unix)]
mod elsewhere;
#[cfg(unix)]
mod line;
#[cfg(unix)]
mod server;
#[cfg(unix)]
#[cfg(test)]
mod tests;
mod wire;

use std::path::Path;

use tokio_util::sync::CancellationToken;

pub use clerk::{Clerk, Waiting};
pub use client::{Operator, OperatorError};
pub use wire::{Fate, Job, Outcome, Wanted};

/// Jobs in one answer at most. They make it some megabytes.
pub const MOST_JOBS: usize = 1000;
/// The socket's name in the folder of the store.
const SOCKET: &str = "queue.sock";

/// Answers operators at the socket in `folder`, the one of the store, until `cancel` is called. Where there is no socket
/// to be had, that is said once, and nobody is answered.
pub async fn serve(folder: &Path, clerk: Clerk, cancel: CancellationToken) {
    #[cfg(unix)]
    server::serve(&folder.join(SOCKET), clerk, cancel).await;
    #[cfg(not(unix))]
    {
        let _ = (folder, clerk, cancel, SOCKET);
    }
}
