//! The socket that a running service listens at.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::fs;
use tokio::io::BufReader;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::frontend::operator::clerk::Clerk;
use crate::frontend::operator::elsewhere;
use crate::frontend::operator::line;
use crate::frontend::operator::wire::{Reply, Told};

/// Answers operators at the socket `path` until `cancel` is called.
pub(super) async fn serve(path: &Path, clerk: Clerk, cancel: CancellationToken) {
    let (listener, _place) = match listen(path).await {
        Ok((listener, place)) => (listener, Some(place)),
        // Unless somebody else answers there.
        Err(error) => match elsewhere::name(path)
            .filter(|_| error.kind() != io::ErrorKind::AddrInUse)
            .map(UnixListener::bind)
        {
            Some(Ok(listener)) => (listener, None),
            Some(Err(_)) | None => {
                tracing::warn!(%error, socket = %path.display(), "`azalea queue` cannot look into the queue of this process");
                return;
            }
        },
    };
    let turns = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut failing = false;
    loop {
        while connections.try_join_next().is_some() {}
        let next = async {
            // Those beyond the bound wait in the system's own list, and with a time of theirs.
            let turn = Arc::clone(&turns).acquire_owned().await;
            (turn, listener.accept().await)
        };
        let (turn, accepted) = tokio::select! {
            () = cancel.cancelled() => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, _)) if !elsewhere::is_ours(&stream) => drop(stream),
            Ok((stream, _)) => {
                failing = false;
                let clerk = clerk.clone();
                connections.spawn(async move {
                    attend(stream, &clerk).await;
                    drop(turn);
                });
            }
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "operators of the queue cannot be heard; it is tried again");
                }
                failing = true;
                tokio::select! {
                    () = cancel.cancelled() => break,
                    () = sleep(PATIENCE) => {}
                }
            }
        }
    }
    // Each change is whole by itself: who is cut off looks again.
    connections.shutdown().await;
}

/// Answers one operator, line by line.
async fn attend(mut stream: UnixStream, clerk: &Clerk) {
    let (input, mut output) = stream.split();
    let mut input = BufReader::new(input);
    // Whoever is silent, or does not read, makes room for others.
    while let Ok(read) = timeout(PATIENCE_WITH_OPERATORS, line::read(&mut input, LONGEST_ASK)).await {
        let (told, goes_on) = match read {
            Ok(None) => return,
            Ok(Some(line)) => (hear(&line, clerk).await, true),
            // What comes next would be the rest of that line.
            Err(error) => (Told::Error(error.to_string()), false),
        };
        let written = timeout(PATIENCE_WITH_OPERATORS, line::write(&mut output, &told)).await;
        if !goes_on || !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
}

async fn hear(line: &[u8], clerk: &Clerk) -> Told<Reply> {
    match serde_json::from_slice(line) {
        Ok(ask) => clerk.answer(ask).await,
        Err(error) => Told::Error(format!("not understood: {error}")),
    }
}

/// The socket's file, which is removed on drop if it is still this one.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    file: (u64, u64),
}

impl Drop for Place {
    fn drop(&mut self) {
        // A quick call that nothing can wait for here. What is left behind is replaced by the next process.
        if std::fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path`, in the place of a process that is dead.
async fn listen(path: &Path) -> io::Result<(UnixListener, Place)> {
    match UnixStream::connect(path).await {
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process answers there")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).await?;
            }
        }
        // Nobody is behind it.
        Err(_) => {}
    }
    // Made under another name and then moved, so that it is nobody else's before its rights are set, and so that it
    // replaces the old one at once.
    let fresh = path.with_extension("sock.new");
    match fs::remove_file(&fresh).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&fresh)?;
    let ours = async {
        fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600)).await?;
        let file = fs::symlink_metadata(&fresh).await?;
        fs::rename(&fresh, path).await?;
        Ok(Place { path: path.to_owned(), file: (file.dev(), file.ino()) })
    };
    match ours.await {
        Ok(place) => Ok((listener, place)),
        Err(error) => {
            let _ = fs::remove_file(&fresh).await;
            Err(error)
        }
    }
}

/// Operators that are listened to at once.
const MOST_CONNECTIONS: usize = 8;
/// Bytes of one line at most. A thousand numbers of jobs have 20 thousand.
pub(super) const LONGEST_ASK: usize = 64 * 1024;
/// How long an operator may be silent, or take to read an answer.
const PATIENCE_WITH_OPERATORS: Duration = Duration::from_secs(10);
/// How long a socket in trouble is left alone.
const PATIENCE: Duration = Duration::from_secs(1);
