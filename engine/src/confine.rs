//! Takes from a thread what no job needs: files by their names, and connections.
//!
//! It cannot be given back, and threads that such a thread starts, as codecs do, lack it as well. Handles that are open
//! already go on working, so a job reads what it was given and nothing else. This is Landlock, which Linux has since 5.13
//! for files and since 6.7 for TCP; elsewhere nothing is taken, and nothing fails.

use std::thread;

/// What threads of an engine can be denied on this system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// To open, make, rename or remove files by name.
    pub files: bool,
    /// To open or accept TCP connections.
    pub connections: bool,
}

impl Confinement {
    /// Nothing can be denied.
    const NONE: Self = Self { files: false, connections: false };
}

/// What this system can deny, found out on a thread of its own.
pub fn confinement() -> Confinement {
    let thread = thread::Builder::new().name("azalea-look".to_owned()).spawn(this_thread);
    thread.ok().and_then(|thread| thread.join().ok()).unwrap_or(Confinement::NONE)
}

/// Denies the calling thread files and connections, as far as the system can.
#[cfg(target_os = "linux")]
pub(crate) fn this_thread() -> Confinement {
    use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus};

    // Each in a rule set of its own, so that the system says of each whether it is kept.
    let denied = |rules: Result<Ruleset, RulesetError>| match rules
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
    {
        Ok(status) => status.ruleset != RulesetStatus::NotEnforced,
        Err(error) => {
            tracing::debug!(%error, "a thread cannot be confined");
            false
        }
    };
    Confinement {
        files: denied(Ruleset::default().handle_access(AccessFs::from_all(ABI::V5))),
        connections: denied(Ruleset::default().handle_access(AccessNet::from_all(ABI::V5))),
    }
}

/// Denies nothing: this system has no such thing.
#[cfg(not(target_os = "linux"))]
pub(crate) fn this_thread() -> Confinement {
    Confinement::NONE
}
