//! What can go wrong with the file, by what helps against it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why the file could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DiskError {
    /// There is no room. What is freed helps.
    #[error("the disk is full: {0}")]
    Full(String),
    /// The file is not what was written. A new one helps.
    #[error("the file is damaged: {0}")]
    Damaged(String),
    /// Another process has it. Its end helps.
    #[error("another process has the queue open; stop it, or give this one another folder")]
    InUse,
    /// The disk or the system says no. Perhaps time helps.
    #[error("{0}")]
    Failed(String),
    /// It failed before and was not opened again yet.
    #[error("the file is closed after a failure")]
    Closed,
}

impl DiskError {
    /// What a failure of the system means. `what` says what was tried.
    pub(super) fn from_io(what: &str, error: &io::Error) -> Self {
        use io::ErrorKind as K;
        let text = if what.is_empty() { error.to_string() } else { format!("{what}: {error}") };
        match error.kind() {
            // A file that may not grow any more is as full as a disk, and a ballast beside it does no harm.
            K::StorageFull | K::QuotaExceeded | K::FileTooLarge => Self::Full(text),
            K::InvalidData | K::UnexpectedEof => Self::Damaged(text),
            _ => Self::Failed(text),
        }
    }
}

/// Runs a deed of redb. A file that was damaged cleverly enough can make it panic; that ends here.
pub(super) fn guarded<T>(deed: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, DiskError> {
    match catch_unwind(AssertUnwindSafe(deed)) {
        Ok(result) => result.map_err(|error| classify(&error)),
        Err(_) => Err(DiskError::Damaged("it made the database code panic".into())),
    }
}

fn classify(error: &redb::Error) -> DiskError {
    use redb::Error as E;
    match error {
        E::Io(cause) => DiskError::from_io("", cause),
        E::DatabaseAlreadyOpen | E::LockProtocolMismatch => DiskError::InUse,
        E::Corrupted(_)
        | E::UpgradeRequired(_)
        | E::RepairAborted
        | E::TableTypeMismatch { .. }
        | E::TypeDefinitionChanged { .. }
        | E::TableIsMultimap(_)
        | E::TableIsNotMultimap(_) => DiskError::Damaged(error.to_string()),
        // The rest is a matter of the moment or of this program; a new file would not help.
        _ => DiskError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: &redb::Error, wanted: impl Fn(&DiskError) -> bool) {
        let found = classify(error);
        assert!(wanted(&found), "{error:?} is {found:?}");
    }

    #[test]
    fn each_failure_is_sorted_by_what_helps() {
        let full = |found: &DiskError| matches!(found, DiskError::Full(_));
        let damaged = |found: &DiskError| matches!(found, DiskError::Damaged(_));
        let failed = |found: &DiskError| matches!(found, DiskError::Failed(_));
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge] {
            check(&redb::Error::Io(kind.into()), full);
        }
        check(&redb::Error::Io(io::ErrorKind::UnexpectedEof.into()), damaged);
        check(&redb::Error::Corrupted("a page".into()), damaged);
        check(&redb::Error::Io(io::ErrorKind::PermissionDenied.into()), failed);
        check(&redb::Error::PreviousIo, failed);
        check(&redb::Error::DatabaseAlreadyOpen, |found| *found == DiskError::InUse);
    }

    #[test]
    fn a_panic_is_damage() {
        let found = guarded::<()>(|| panic!("a page that is none"));
        assert!(matches!(found, Err(DiskError::Damaged(_))));
    }
}
