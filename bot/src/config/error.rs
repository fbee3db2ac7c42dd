//! What is wrong with a configuration, and what was probably meant.

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct ConfigError {
    problems: Vec<String>,
}

impl ConfigError {
    pub(super) fn one(problem: String) -> Self {
        Self { problems: vec![problem] }
    }

    /// `Ok` when there are no problems.
    pub(super) fn of(problems: Vec<String>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// Each mistake as a line for people; at least one.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    fn text(&self) -> String {
        match self.problems.as_slice() {
            [one] => format!("configuration: {one}"),
            several => format!("configuration: {} mistakes: {}", several.len(), several.join("; ")),
        }
    }
}

/// What follows a name that is not known: the known one it resembles, if any. Both are parts joined by `joint`.
pub(super) fn suggestion<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
    joint: &str,
) -> String {
    // Nobody misspells a word as long as that, and the distance takes quadratic time.
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    let near = known
        .clone()
        .map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= 2.max(candidate.chars().count() / 4));
    if let Some((_, candidate)) = near {
        return format!("; did you mean {candidate}?");
    }
    // The right word in the wrong section.
    let last = |name: &str| name.rsplit(joint).next().map(str::to_lowercase);
    let same: Vec<&str> = known.filter(|candidate| last(candidate) == last(&name)).take(3).collect();
    if same.is_empty() {
        return "; `azalea config example` prints all keys".to_owned();
    }
    format!("; did you mean {}?", same.join(" or "))
}

/// How many characters must be put in, taken out or exchanged to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, a) in one.chars().enumerate() {
        let mut before = at.saturating_add(1);
        let mut next = vec![before];
        for (b, pair) in other.iter().zip(row.windows(2)) {
            let [diagonal, above] = pair else { continue };
            let exchanged = diagonal.saturating_add(usize::from(a != *b));
            before = exchanged.min(above.saturating_add(1)).min(before.saturating_add(1));
            next.push(before);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

const MAX_NAME_CHARS: usize = 80;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distances_are_counted_in_letters() {
        for (one, other, wanted) in
            [("", "", 0), ("", "ab", 2), ("timeout", "timeot", 1), ("kitten", "sitting", 3), ("é", "e", 1)]
        {
            assert_eq!(distance(one, other), wanted, "{one} {other}");
        }
    }

    #[test]
    fn what_was_meant_is_found_by_its_letters_or_by_its_last_word() {
        let known = ["download.timeout", "upload.timeout", "store.path"];
        let told = |name| suggestion(name, known.into_iter(), ".");
        assert_eq!(told("downlod.timeout"), "; did you mean download.timeout?");
        assert_eq!(told("Store.Path"), "; did you mean store.path?");
        assert_eq!(told("network.timeout"), "; did you mean download.timeout or upload.timeout?");
        assert_eq!(told("colour"), "; `azalea config example` prints all keys");
    }

    proptest! {
        #[test]
        fn a_distance_is_one(one in ".{0,12}", other in ".{0,12}") {
            prop_assert_eq!(distance(&one, &one), 0);
            prop_assert_eq!(distance(&one, &other), distance(&other, &one));
            let longer = one.chars().count().max(other.chars().count());
            prop_assert!(distance(&one, &other) <= longer);
        }
    }
}
