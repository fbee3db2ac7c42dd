//! Texts that are never shown.

use std::fmt;

use serde::{Serialize, Serializer};

/// A text that is shown as `(set)`, whoever prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The secret with this text.
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for the one who has to send or compare it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SHOWN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(SHOWN)
    }
}

/// What stands for every secret.
pub(super) const SHOWN: &str = "(set)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)), "(set) Some(\n    (set),\n)");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"(set)\"");
        assert_eq!(secret.expose(), "hunter2");
    }
}
