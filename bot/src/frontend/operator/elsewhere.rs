//! Where a service listens that cannot have a file for its socket: on a disk that is read-only or full, or under a path
//! that is too long for one. Linux has names for sockets that are no files; they have no rights either, so each side looks
//! who the other one is.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use tokio::net::UnixStream;

/// The name that stands for a socket's file; `None` where there are no such names.
pub(super) fn name(socket: &Path) -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let folder = socket.parent()?;
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let hash = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    // A name that begins with a zero is none of a file.
    let mut name = b"\0azalea-queue-".to_vec();
    name.extend_from_slice(hash.as_bytes());
    Some(OsString::from_vec(name).into())
}

/// Whether the other side may be spoken with: this user or root.
pub(super) fn is_ours(stream: &UnixStream) -> bool {
    peer(stream).is_some_and(|user| user == 0 || user == geteuid().as_raw())
}

/// The same, or whoever the folder of the store belongs to, for a root who looks after the service of another user.
pub(super) fn is_theirs(stream: &UnixStream, socket: &Path) -> bool {
    let owner = socket.parent().and_then(|folder| folder.metadata().ok()).map(|folder| folder.uid());
    is_ours(stream) || owner.is_some_and(|owner| peer(stream) == Some(owner))
}

fn peer(stream: &UnixStream) -> Option<u32> {
    stream.peer_cred().ok().map(|peer| peer.uid())
}
