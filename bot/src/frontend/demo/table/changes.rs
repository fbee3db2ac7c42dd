//! What is different since the table was last shown.

use super::{Row, Table, fit, seconds};

/// How to bring drawn lines up to date.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaint {
    /// How many lines to go up from the line below the last one drawn; everything from there on is to be cleared.
    pub up: usize,
    /// What to write there, each with a line end. Empty when nothing changed.
    pub lines: Vec<String>,
}

/// How lines that stand on a terminal become others: all from the first difference on is written again.
///
/// When nothing differs, nothing is to be done. What comes from [`lines`](super::lines) of the same rows has the same
/// number of lines, so the table stays where it is.
pub fn repaint(before: &[String], after: &[String]) -> Repaint {
    let same = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    Repaint { up: before.len().saturating_sub(same), lines: after.get(same..).unwrap_or_default().to_vec() }
}

/// A line for each row that tells something new, for an output that cannot be painted over.
///
/// Rows are compared by their place. Time and details alone are no news.
pub fn news(before: &Table, after: &Table) -> Vec<String> {
    let old = before.rows.iter().map(Some).chain(std::iter::repeat(None));
    let changed = after.rows.iter().zip(old).filter(|(row, old)| old.is_none_or(|old| is_news(old, row)));
    changed.map(|(row, _)| line(row)).collect()
}

/// A line for each row that has its answer since, for a terminal that the table does not fit on.
///
/// Rows are compared by their place.
pub fn answered(before: &Table, after: &Table) -> Vec<String> {
    let old = before.rows.iter().map(Some).chain(std::iter::repeat(None));
    let is_new =
        |row: &Row, old: Option<&Row>| row.state.is_over() && !old.is_some_and(|old| old.state.is_over());
    after.rows.iter().zip(old).filter(|(row, old)| is_new(row, *old)).map(|(row, _)| line(row)).collect()
}

fn is_news(old: &Row, new: &Row) -> bool {
    (&old.channel, &old.user, old.state, &old.sees) != (&new.channel, &new.user, new.state, &new.sees)
}

fn line(row: &Row) -> String {
    let who = format!("{} {}", row.channel, row.user);
    let line = format!("{:>8}  {}  {} {}", seconds(row.took), fit(&who, 24), row.state.mark(), row.sees);
    let width = line.chars().count();
    // Replaces what would break the line, and cuts nothing.
    fit(&line, width).trim_end().to_owned()
}
