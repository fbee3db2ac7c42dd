//! The table that a demo shows while it runs: who asked where, and what they see now.
//!
//! All of it is text made from values, so a test sees what a person would. Whoever has a terminal that the table fits
//! on, as [`fitting`] tells, draws [`lines`] and then what [`repaint`] gives; on a smaller one, what [`answered`] gives
//! is printed, and at the end [`sums`]. Whoever has none prints what [`news`] gives, and at the end [`lines`] once.
//! Widths are counted in characters: all that the demo shows takes one column each.

mod changes;
mod totals;

use std::time::Duration;

pub use changes::{Repaint, answered, news, repaint};
pub use totals::Totals;

/// Everything that is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The askers, in the order shown. One that follows another of the same channel does not repeat its name.
    pub rows: Vec<Row>,
    /// What was done for all of them together.
    pub totals: Totals,
}

/// One who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The channel, with its `#`.
    pub channel: String,
    /// The person, with the `@`.
    pub user: String,
    /// How far it is.
    pub state: State,
    /// What the person sees now, in a few words.
    pub sees: String,
    /// What changes all the time, such as a percentage. Shown behind `sees`, and no news by itself.
    pub detail: Option<String>,
    /// How long ago the person asked, or how long it took when it is over.
    pub took: Duration,
}

/// How far a wish is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Asked and not yet answered.
    Waiting,
    /// Has the file.
    Delivered,
    /// Was shown an earlier post.
    Pointed,
    /// Gets nothing.
    Failed,
}

impl State {
    const fn mark(self) -> char {
        match self {
            Self::Waiting => '·',
            Self::Delivered => '✓',
            Self::Pointed => '→',
            Self::Failed => '✗',
        }
    }

    const fn is_over(self) -> bool {
        match self {
            Self::Waiting => false,
            Self::Delivered | Self::Pointed | Self::Failed => true,
        }
    }
}

/// The widest table, in columns. More would only move the times away from what they belong to.
pub const MAX_WIDTH: usize = 80;

/// The narrowest table, in columns: the sums fit in it. A terminal that is narrower breaks the lines.
pub const MIN_WIDTH: usize = 64;

/// The whole table for a terminal of `width` columns, clamped to [`MIN_WIDTH`] and [`MAX_WIDTH`]; without line ends.
///
/// As many lines come for as many rows, whatever is in them. No line is wider than the clamped width or ends in a
/// space. What does not fit is cut, which an ellipsis shows; control characters become spaces.
pub fn lines(table: &Table, width: usize) -> Vec<String> {
    let columns = Columns::new(&table.rows, width);
    let rule = "─".repeat(columns.width);
    let mut lines = vec![columns.line(["channel", "who", "", "sees", "after"]), rule.clone()];
    let mut before = None;
    for row in &table.rows {
        let channel = if before == Some(&row.channel) { "" } else { row.channel.as_str() };
        let mark = row.state.mark().to_string();
        let sees = match &row.detail {
            Some(detail) => format!("{} {detail}", row.sees),
            None => row.sees.clone(),
        };
        lines.push(columns.line([channel, &row.user, &mark, &sees, &seconds(row.took)]));
        before = Some(&row.channel);
    }
    lines.push(rule);
    lines.extend(totals::lines(table).iter().map(|line| fit(line, columns.width).trim_end().to_owned()));
    lines
}

/// How wide the table is drawn on a terminal of this size; `None` when it is narrower or lower than the table, whose
/// lines it would break or scroll away, so that nobody could paint over them.
pub fn fitting(table: &Table, columns: usize, rows: usize) -> Option<usize> {
    /// For the line that the cursor waits in below the table, and one that leaves the line before it in sight.
    const SPARE: usize = 2;
    let width = columns.min(MAX_WIDTH);
    (width >= MIN_WIDTH && rows >= lines(table, width).len().saturating_add(SPARE)).then_some(width)
}

/// What was done for all together, in lines that nothing is cut from.
pub fn sums(table: &Table) -> Vec<String> {
    totals::lines(table).into()
}

/// How wide each column is.
#[derive(Clone, Copy, Debug)]
struct Columns {
    width: usize,
    channel: usize,
    user: usize,
    sees: usize,
}

impl Columns {
    fn new(rows: &[Row], width: usize) -> Self {
        /// The widest column of names; longer names are cut.
        const WIDEST: usize = 14;
        let width = width.clamp(MIN_WIDTH, MAX_WIDTH);
        let widest = |names: &mut dyn Iterator<Item = &String>, least: usize| {
            names.map(|name| name.chars().count()).max().unwrap_or(0).clamp(least, WIDEST)
        };
        let channel = widest(&mut rows.iter().map(|row| &row.channel), "channel".len());
        let user = widest(&mut rows.iter().map(|row| &row.user), "who".len());
        let sees = width.saturating_sub(channel + user + MARK_WIDTH + TIME_WIDTH + 4 * GAP.len());
        Self { width, channel, user, sees }
    }

    /// Five cells side by side, the last one to the right.
    fn line(&self, [channel, user, mark, sees, time]: [&str; 5]) -> String {
        let cells = [
            fit(channel, self.channel),
            fit(user, self.user),
            fit(mark, MARK_WIDTH),
            fit(sees, self.sees),
            format!("{time:>TIME_WIDTH$}"),
        ];
        cells.join(GAP)
    }
}

const GAP: &str = "  ";
const MARK_WIDTH: usize = 1;
/// Room for `9999.9 s`, almost three hours.
const TIME_WIDTH: usize = 8;

/// The text in exactly `width` characters: filled up with spaces, or cut.
fn fit(text: &str, width: usize) -> String {
    let mut chars = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut fitted: Vec<char> = chars.by_ref().take(width).collect();
    if chars.next().is_some() {
        fitted.pop();
        fitted.push('…');
    }
    fitted.resize(width, ' ');
    fitted.into_iter().collect()
}

/// Tenths of seconds, rounded down; the most that its column holds for what takes longer.
fn seconds(took: Duration) -> String {
    const MOST_TENTHS: u128 = 99_999;
    let tenths = (took.as_millis() / 100).min(MOST_TENTHS);
    format!("{}.{} s", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests;
