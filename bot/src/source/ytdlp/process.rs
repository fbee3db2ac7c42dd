//! Runs a program as a stranger: no shell, few variables, its own process group, bounded output, and no way to
//! outlive the wait for it, unless this process is killed by SIGKILL.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// The most bytes a program may print; strict. With one more it is ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) stdout: u64,
    pub(super) stderr: u64,
}

/// A program that ended by itself.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Why a program gave no outcome.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    #[error("the program {} is not there", program.display())]
    Missing { program: PathBuf },
    #[error("the program {} cannot be started ({source})", program.display())]
    NotStarted { program: PathBuf, source: io::Error },
    #[error("it printed more than {most} bytes to {stream} and was ended")]
    TooMuch { stream: &'static str, most: u64 },
    #[error("what it printed cannot be read ({source})")]
    Lost { source: io::Error },
}

/// Runs `program` until it ends. Dropping the future kills it with all that it started.
///
/// # Errors
/// When it cannot be started, or when it prints too much.
pub(super) async fn run(program: &Path, arguments: &[String], bounds: Bounds) -> Result<Ended, ProcessError> {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(KEPT_VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        // Without a locale Python would write its messages in ASCII.
        .env("PYTHONUTF8", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|source| not_started(program, source))?;
    let group = Group::of(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let ended = async {
        let status = child.wait().await;
        // What it started and left behind must not hold its pipes open.
        drop(group);
        status.map_err(|source| ProcessError::Lost { source })
    };
    // The first error ends the wait, and the guard ends the group.
    let (status, stdout, stderr) = tokio::try_join!(
        ended,
        read(stdout, "standard output", bounds.stdout),
        read(stderr, "standard error", bounds.stderr)
    )?;
    Ok(Ended { status, stdout, stderr })
}

fn not_started(program: &Path, source: io::Error) -> ProcessError {
    let program = program.to_path_buf();
    match source.kind() {
        io::ErrorKind::NotFound => ProcessError::Missing { program },
        _ => ProcessError::NotStarted { program, source },
    }
}

async fn read(
    from: Option<impl AsyncRead + Unpin>,
    stream: &'static str,
    most: u64,
) -> Result<Vec<u8>, ProcessError> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        let mut from = from.take(most.saturating_add(1));
        from.read_to_end(&mut bytes).await.map_err(|source| ProcessError::Lost { source })?;
    }
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        return Err(ProcessError::TooMuch { stream, most });
    }
    Ok(bytes)
}

/// The process group of a child. Dropping it kills all of its members.
#[must_use]
struct Group(Option<Pid>);

impl Group {
    /// The group that `child` leads. It was just started, so its number is its own.
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It fails when nobody is left, which is what is wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// What a Python program needs to find itself, to speak the operator's language and to reach the web.
const KEPT_VARIABLES: [&str; 14] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "LD_LIBRARY_PATH",
];
