//! The sums below the table.

use std::time::Duration;

use super::{State, Table, seconds};

/// What was done for all askers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How often a source was asked for the post.
    pub resolved: u64,
    /// How often the clip was downloaded.
    pub downloaded: u64,
    /// How many bytes that were.
    pub downloaded_bytes: u64,
    /// How often the clip was made smaller.
    pub transcoded: u64,
    /// How many bytes each delivered file has; 0 while there is none.
    pub file_bytes: u64,
    /// Since the first asked, or until the last was answered when all are.
    pub took: Duration,
}

/// Three lines: the work, the answers, the time.
pub(super) fn lines(table: &Table) -> [String; 3] {
    let Totals { resolved, downloaded, downloaded_bytes, transcoded, file_bytes, took } = table.totals;
    let count = |state: State| table.rows.iter().filter(|row| row.state == state).count();
    let asked = table.rows.len();
    let answered = table.rows.iter().filter(|row| row.state.is_over()).count();

    let size = |bytes: u64| if bytes == 0 { String::new() } else { format!(" ({})", megabytes(bytes)) };
    let work = format!(
        "resolved {resolved}×   downloaded {downloaded}×{}   transcoded {transcoded}×{}",
        size(downloaded_bytes),
        size(file_bytes),
    );
    let mut answers =
        format!("delivered {}×   links to earlier posts {}×", count(State::Delivered), count(State::Pointed));
    if count(State::Failed) > 0 {
        answers.push_str(&format!("   failed {}×", count(State::Failed)));
    }
    let time = format!("{answered} of {asked} answered after {}", seconds(took));
    [work, answers, time]
}

/// Millions of bytes with one digit behind the point, rounded down.
fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_down() {
        assert_eq!([99_999, 1_000_000, 10_485_760].map(megabytes), ["0.0 MB", "1.0 MB", "10.4 MB"]);
        assert_eq!(megabytes(u64::MAX), "18446744073709.5 MB");
    }

    #[test]
    fn failures_are_told_only_when_there_are_any() {
        let row = super::super::tests::row("#a", "@b", State::Failed, "gone");
        let [work, answers, time] = lines(&Table { rows: vec![row], ..Table::default() });
        assert_eq!(work, "resolved 0×   downloaded 0×   transcoded 0×");
        assert_eq!(answers, "delivered 0×   links to earlier posts 0×   failed 1×");
        assert_eq!(time, "1 of 1 answered after 0.0 s");
    }
}
