//! How the demo's table is shown: painted over, as rows that have their answer, or as news.

use std::io::{self, IsTerminal};

use azalea_bot::frontend::demo::table::{self, Table};

use crate::exit::OutputError;
use crate::terminal::Screen;

/// What was shown so far, and how.
#[derive(Debug)]
pub(super) struct View {
    manner: Manner,
    /// The table as it was shown last.
    before: Table,
}

#[derive(Debug)]
enum Manner {
    /// The table stands on a terminal in this width and is painted over.
    Painted { width: usize, lines: Vec<String> },
    /// The terminal is too small for the table: each row is told once, when it has its answer.
    Rows,
    /// Standard output is no terminal: all that is new is told, and the table at the end.
    News,
}

/// Columns and rows of a terminal.
type Size = (usize, usize);

impl View {
    /// A view for this process's standard output. `table` is what it will begin with.
    pub(super) fn new(table: Table) -> Self {
        if io::stdout().is_terminal() { Self::watched(&table, size()) } else { Self::told(table) }
    }

    fn watched(table: &Table, size: Option<Size>) -> Self {
        let width = size.and_then(|(columns, rows)| table::fitting(table, columns, rows));
        let manner = width.map_or(Manner::Rows, |width| Manner::Painted { width, lines: Vec::new() });
        Self { manner, before: Table::default() }
    }

    const fn told(table: Table) -> Self {
        Self { manner: Manner::News, before: table }
    }

    /// Shows the table as it is now; `over` says that it will not change any more.
    pub(super) fn show(&mut self, table: Table, over: bool, screen: &Screen) -> anyhow::Result<()> {
        let size = match self.manner {
            Manner::Painted { .. } => size(),
            Manner::Rows | Manner::News => None,
        };
        let text = self.draw(table, over, size);
        // A line at a time would show half a table.
        Ok(screen.print_text(&text).map_err(|cause| OutputError::stdout(&cause))?)
    }

    /// What is to be written. A terminal that has become too small for what stands on it is painted no more.
    fn draw(&mut self, table: Table, over: bool, size: Option<Size>) -> String {
        if let Manner::Painted { width, .. } = self.manner {
            let fits = size.and_then(|(columns, rows)| table::fitting(&table, columns, rows));
            if fits.is_none_or(|now| now < width) {
                self.manner = Manner::Rows;
            }
        }
        let text = match &mut self.manner {
            Manner::Painted { width, lines } => {
                let now = table::lines(&table, *width);
                let text = paint(lines, &now);
                *lines = now;
                text
            }
            Manner::Rows => {
                let sums = if over { table::sums(&table) } else { Vec::new() };
                whole(&[table::answered(&self.before, &table), sums].concat())
            }
            Manner::News => {
                let all = if over { table::lines(&table, table::MAX_WIDTH) } else { Vec::new() };
                whole(&[table::news(&self.before, &table), all].concat())
            }
        };
        self.before = table;
        text
    }
}

/// Replaces the lines that were shown.
fn paint(shown: &[String], lines: &[String]) -> String {
    let change = table::repaint(shown, lines);
    let mut text = String::new();
    if change.up > 0 {
        text.push_str(&format!("\x1b[{}A", change.up));
    }
    if !change.lines.is_empty() || change.up > 0 {
        text.push_str("\r\x1b[J");
    }
    text.push_str(&whole(&change.lines));
    text
}

fn whole(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// The size of the terminal; `None` when it does not tell.
fn size() -> Option<Size> {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
    Some((width.0.into(), height.0.into()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use azalea_bot::frontend::demo::table::{Row, State};

    use super::*;

    fn table(states: [State; 2]) -> Table {
        let row = |user: &str, state| Row {
            channel: "#cats".to_owned(),
            user: user.to_owned(),
            state,
            sees: "the video".to_owned(),
            detail: None,
            took: Duration::ZERO,
        };
        Table { rows: vec![row("@ann", states[0]), row("@bob", states[1])], ..Table::default() }
    }

    const ASKED: [State; 2] = [State::Waiting, State::Waiting];
    const HALF: [State; 2] = [State::Delivered, State::Waiting];
    const ALL: [State; 2] = [State::Delivered, State::Pointed];

    const ANN: &str = "   0.0 s  #cats @ann                ✓ the video\n";
    const BOB: &str = "   0.0 s  #cats @bob                → the video\n";

    /// Once, the table was painted over on every terminal: broken lines were counted as one each.
    #[test]
    fn a_terminal_that_is_too_small_gets_each_answer_once() {
        for size in [Some((63, 24)), Some((80, 9)), None] {
            let mut view = View::watched(&table(ASKED), size);
            assert_eq!(view.draw(table(ASKED), false, None), "", "{size:?}");
            assert_eq!(view.draw(table(HALF), false, None), ANN);
            assert_eq!(view.draw(table(HALF), false, None), "");
            let end = view.draw(table(ALL), true, None);
            let sums = end.strip_prefix(BOB).unwrap();
            assert_eq!(sums.lines().count(), 3, "{sums}");
            assert!(sums.ends_with("2 of 2 answered after 0.0 s\n") && !sums.contains('\x1b'), "{sums}");
        }
    }

    #[test]
    fn a_terminal_with_room_is_painted_over() {
        let size = Some((64, 10));
        let mut view = View::watched(&table(ASKED), size);
        let first = view.draw(table(ASKED), false, size);
        assert_eq!((first.lines().count(), first.matches('\x1b').count()), (8, 1), "{first:?}");
        assert!(first.lines().all(|line| line.chars().filter(|c| !c.is_control()).count() <= 66), "{first}");
        assert_eq!(view.draw(table(ASKED), false, size), "");
        assert!(view.draw(table(HALF), false, size).starts_with("\x1b[6A\r\x1b[J#cats"));
    }

    #[test]
    fn a_terminal_that_becomes_too_small_is_painted_no_more() {
        let mut view = View::watched(&table(ASKED), Some((80, 24)));
        view.draw(table(HALF), false, Some((80, 24)));
        // What is told already is not told again, also when there is room again.
        assert_eq!(view.draw(table(HALF), false, Some((70, 24))), "");
        assert!(view.draw(table(ALL), true, Some((80, 24))).starts_with(BOB));
    }

    #[test]
    fn what_is_no_terminal_gets_news_and_the_table() {
        let mut view = View::told(table(ASKED));
        assert_eq!(view.draw(table(HALF), false, None), ANN);
        let end = view.draw(table(ALL), true, None);
        assert_eq!(end.strip_prefix(BOB).unwrap().lines().count(), 8, "{end}");
    }
}
