//! What a person is told about a failure, in one sentence without full stop.

use crate::domain::{Failure, GoneReason};

/// Says to a person why there are no media, and what can be done.
pub fn words(failure: &Failure) -> String {
    match failure {
        Failure::Gone(GoneReason::Deleted) => "the post was deleted".to_owned(),
        Failure::Gone(GoneReason::Suspended) => "the account of the post is suspended".to_owned(),
        Failure::Gone(GoneReason::NotFound) => "there is no such post".to_owned(),
        Failure::NeedsLogin => "the post can only be seen by those who are logged in".to_owned(),
        Failure::Sensitive => "the post is marked as sensitive and is not shown here".to_owned(),
        Failure::NoMedia => "the post has no photo, video or GIF".to_owned(),
        Failure::Unsupported { what } => format!("the medium cannot be used: {what}"),
        Failure::Missing { .. } => {
            "the post is there, but the server of its media does not have them any more".to_owned()
        }
        Failure::Transient { .. } => {
            "X or its mirrors do not answer as they should; try again later".to_owned()
        }
        Failure::Undelivered { .. } => "it could not be posted here; try again later".to_owned(),
        Failure::CannotFit { what } => format!("it cannot be made small enough: {what}"),
        Failure::TooLarge { what } => format!("it is larger than what is taken here: {what}"),
        Failure::Forbidden { .. } => "the post points at a place that is not asked from here".to_owned(),
        Failure::TimedOut { .. } => "it took too long; try again later".to_owned(),
        Failure::Cancelled => "it was cancelled".to_owned(),
        Failure::Ours { .. } => "something is wrong with this bot; its operator can see what".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_told_with_its_reason() {
        let failure = Failure::Unsupported { what: "not a media file that Azalea knows".to_owned() };
        assert_eq!(words(&failure), "the medium cannot be used: not a media file that Azalea knows");
    }

    #[test]
    fn nothing_of_the_inside_is_told() {
        let secret = "connect to 10.0.0.7: refused";
        for failure in [
            Failure::transient(secret),
            Failure::ours(secret),
            Failure::Forbidden { what: secret.to_owned() },
        ] {
            assert!(!words(&failure).contains("10.0.0.7"), "{failure:?}");
        }
    }
}
