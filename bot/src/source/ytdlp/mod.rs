//! The program yt-dlp, run once for each look-up.
//!
//! It shows videos only, without saying which of them belong to a quoted post, so what it gives is always a part.

mod facts;
mod message;
mod output;
mod process;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::domain::{Post, PostId};
use crate::source::failure::SourceFailure;
use crate::source::{Source, SourceName, YtDlpSettings};

pub use facts::YtDlpFacts;

use process::{Bounds, ProcessError};

/// Asks yt-dlp.
#[derive(Debug)]
pub(super) struct YtDlp {
    settings: YtDlpSettings,
    places: Semaphore,
}

impl YtDlp {
    pub(super) fn new(settings: YtDlpSettings) -> Self {
        let places = Semaphore::new(settings.processes.clamp(1, MOST_PROCESSES));
        Self { settings, places }
    }

    async fn ask(&self, id: PostId) -> Result<Post, SourceFailure> {
        // The wait for a place counts: whoever waits here waits for an answer.
        match tokio::time::timeout(self.settings.timeout, self.run(id)).await {
            Ok(result) => result,
            Err(_) => Err(SourceFailure::transient(format!(
                "it took longer than {} s and was ended",
                self.settings.timeout.as_secs_f32()
            ))),
        }
    }

    async fn run(&self, id: PostId) -> Result<Post, SourceFailure> {
        let _place = self.places.acquire().await.map_err(|_| SourceFailure::transient("it is closed"))?;
        let ended = process::run(&self.settings.program, &arguments(&self.settings, id), BOUNDS).await?;
        if ended.status.success() {
            return output::read(&ended.stdout, id);
        }
        Err(message::classify(ended.status.code(), &ended.stderr))
    }
}

impl Source for YtDlp {
    fn name(&self) -> SourceName {
        SourceName::YtDlp
    }

    fn fetch(&self, post: PostId) -> BoxFuture<'_, Result<Post, SourceFailure>> {
        Box::pin(self.ask(post))
    }
}

/// What it is told: nothing of the user's own configuration, one document, no files left behind.
fn arguments(settings: &YtDlpSettings, id: PostId) -> Vec<String> {
    let socket_timeout = settings.socket_timeout.as_secs().max(1).to_string();
    let address = settings.address.replace("{id}", &id.number().to_string());
    let fixed = ["--ignore-config", "--no-warnings", "--no-cache-dir", "-J", "--socket-timeout"];
    let mut arguments: Vec<String> = fixed.into_iter().map(str::to_owned).collect();
    arguments.push(socket_timeout);
    if !settings.extractors.is_empty() {
        arguments.extend(["--use-extractors".to_owned(), settings.extractors.clone()]);
    }
    // Behind the two dashes nothing is taken for an option, whatever it begins with.
    arguments.extend(["--".to_owned(), address]);
    arguments
}

impl From<ProcessError> for SourceFailure {
    fn from(error: ProcessError) -> Self {
        match error {
            ProcessError::Missing { .. } | ProcessError::NotStarted { .. } | ProcessError::TooMuch { .. } => {
                Self::ours(error.to_string())
            }
            ProcessError::Lost { .. } => Self::transient(error.to_string()),
        }
    }
}

/// A post with four videos in ten variants each prints some 300 KiB.
const BOUNDS: Bounds = Bounds { stdout: 16 * 1_024 * 1_024, stderr: 256 * 1_024 };
const MOST_PROCESSES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_stands_behind_two_dashes() {
        let settings = YtDlpSettings { address: "--exec={id}".to_owned(), ..YtDlpSettings::default() };
        let arguments = arguments(&settings, PostId::x("20").unwrap());
        assert_eq!(
            arguments,
            [
                "--ignore-config",
                "--no-warnings",
                "--no-cache-dir",
                "-J",
                "--socket-timeout",
                "10",
                "--use-extractors",
                "twitter",
                "--",
                "--exec=20"
            ]
        );
    }
}
