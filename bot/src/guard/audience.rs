//! Who may see what: sensitive media and spoilers.
//!
//! **No sensitive medium goes unspoilered into a place that is not known to be age-restricted.**

use crate::config::SensitivePolicy;

/// What the policy needs to know about a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// The post's source marks it as not for everybody.
    pub sensitive: bool,
    /// The person asked for a spoiler, or hid the link behind one.
    pub spoiler_wished: bool,
}

/// Where a result goes, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A channel that is marked as age-restricted, or a thread in one.
    AgeRestricted,
    /// A channel that is not.
    Ordinary,
    /// A direct message. Nobody has vouched for the age of the one who reads it.
    Direct,
    /// Nobody could say. It counts as ordinary.
    Unknown,
}

/// What may be done with a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Deliver it.
    Deliver {
        /// Hide it behind a spoiler.
        spoiler: bool,
    },
    /// Do not deliver it there.
    Refuse(RefuseReason),
}

/// Why a result is not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// It is sensitive, and such media go to age-restricted channels only.
    Sensitive,
}

/// The stricter of two policies: nobody lifts what somebody else set.
pub const fn stricter(one: SensitivePolicy, other: SensitivePolicy) -> SensitivePolicy {
    match (one, other) {
        (SensitivePolicy::Spoiler, SensitivePolicy::Spoiler) => SensitivePolicy::Spoiler,
        (SensitivePolicy::Refuse, _) | (_, SensitivePolicy::Refuse) => SensitivePolicy::Refuse,
    }
}

/// Decides what may be done with `content` in `place`.
pub const fn judge(policy: SensitivePolicy, content: Content, place: Place) -> Audience {
    let wished = Audience::Deliver { spoiler: content.spoiler_wished };
    if !content.sensitive {
        return wished;
    }
    match (place, policy) {
        (Place::AgeRestricted, _) => wished,
        (Place::Ordinary | Place::Direct | Place::Unknown, SensitivePolicy::Spoiler) => {
            Audience::Deliver { spoiler: true }
        }
        (Place::Ordinary | Place::Direct | Place::Unknown, SensitivePolicy::Refuse) => {
            Audience::Refuse(RefuseReason::Sensitive)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [Place; 4] = [Place::AgeRestricted, Place::Ordinary, Place::Direct, Place::Unknown];
    const POLICIES: [SensitivePolicy; 2] = [SensitivePolicy::Spoiler, SensitivePolicy::Refuse];
    const SHOWN: Audience = Audience::Deliver { spoiler: false };
    const HIDDEN: Audience = Audience::Deliver { spoiler: true };
    const REFUSED: Audience = Audience::Refuse(RefuseReason::Sensitive);

    fn content(sensitive: bool, spoiler_wished: bool) -> Content {
        Content { sensitive, spoiler_wished }
    }

    #[test]
    fn sensitive_media_are_never_shown_outside_of_age_restricted_channels() {
        for place in [Place::Ordinary, Place::Direct, Place::Unknown] {
            for wished in [false, true] {
                assert_eq!(judge(SensitivePolicy::Spoiler, content(true, wished), place), HIDDEN);
                assert_eq!(judge(SensitivePolicy::Refuse, content(true, wished), place), REFUSED);
            }
        }
    }

    #[test]
    fn age_restricted_channels_get_them_as_wished() {
        for policy in POLICIES {
            assert_eq!(judge(policy, content(true, false), Place::AgeRestricted), SHOWN);
            assert_eq!(judge(policy, content(true, true), Place::AgeRestricted), HIDDEN);
        }
    }

    #[test]
    fn nobody_lifts_what_somebody_else_set() {
        let places = PLACES.into_iter().flat_map(|place| [false, true].map(|wished| (place, wished)));
        for (place, wished) in places {
            for (one, other) in POLICIES.into_iter().flat_map(|one| POLICIES.map(|other| (one, other))) {
                let both = judge(stricter(one, other), content(true, wished), place);
                let each = [one, other].map(|policy| judge(policy, content(true, wished), place));
                assert_eq!(both == REFUSED, each.contains(&REFUSED), "{place:?} {one:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_wished_spoiler_is_never_lost() {
        for (policy, place) in POLICIES.into_iter().flat_map(|policy| PLACES.map(|place| (policy, place))) {
            assert_eq!(judge(policy, content(false, true), place), HIDDEN);
            assert_ne!(judge(policy, content(true, true), place), SHOWN);
            assert_eq!(judge(policy, content(false, false), place), SHOWN);
        }
    }
}
