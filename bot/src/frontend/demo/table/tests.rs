use proptest::prelude::*;

use super::*;

pub(super) fn row(channel: &str, user: &str, state: State, sees: &str) -> Row {
    Row {
        channel: channel.to_owned(),
        user: user.to_owned(),
        state,
        sees: sees.to_owned(),
        detail: None,
        took: Duration::ZERO,
    }
}

fn table() -> Table {
    let mut rows = vec![
        row("#general", "@ann", State::Delivered, "azalea.mp4, 9.9 MB"),
        row("#general", "@ben", State::Pointed, "already here: #general 1"),
        row("#garden", "@cho", State::Waiting, "downloading"),
        row("#films", "@dan", State::Failed, "the post is gone"),
    ];
    rows[0].took = Duration::from_millis(4_280);
    rows[1].took = Duration::from_millis(4_390);
    rows[2].took = Duration::from_millis(61_000);
    rows[2].detail = Some("42 %".to_owned());
    let totals = Totals {
        resolved: 1,
        downloaded: 1,
        downloaded_bytes: 69_120_000,
        transcoded: 1,
        file_bytes: 9_940_000,
        took: Duration::from_millis(61_000),
    };
    Table { rows, totals }
}

#[test]
fn a_table_has_straight_columns_and_sums_below() {
    let expected = "\
channel   who      sees                                    after
────────────────────────────────────────────────────────────────
#general  @ann  ✓  azalea.mp4, 9.9 MB                      4.2 s
          @ben  →  already here: #general 1                4.3 s
#garden   @cho  ·  downloading 42 %                       61.0 s
#films    @dan  ✗  the post is gone                        0.0 s
────────────────────────────────────────────────────────────────
resolved 1×   downloaded 1× (69.1 MB)   transcoded 1× (9.9 MB)
delivered 1×   links to earlier posts 1×   failed 1×
3 of 4 answered after 61.0 s";
    assert_eq!(lines(&table(), 64).join("\n"), expected);
}

#[test]
fn long_words_are_cut_and_times_stay_in_their_column() {
    let mut table = table();
    table.rows[3].channel = "#a-channel-with-a-long-name".to_owned();
    table.rows[3].sees = "word ".repeat(40);
    table.rows[3].took = Duration::MAX;
    let lines = lines(&table, 200);
    assert_eq!(lines[5], "#a-channel-wi…  @dan  ✗  word word word word word word word word word…  9999.9 s");
    assert_eq!(lines[5].chars().count(), MAX_WIDTH);
}

#[test]
fn a_table_without_rows_is_still_a_table() {
    let lines = lines(&Table::default(), 0);
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[5], "0 of 0 answered after 0.0 s");
}

#[test]
fn only_what_changed_is_painted_again() {
    let before = lines(&table(), 80);
    let mut table = table();
    assert_eq!(repaint(&before, &lines(&table, 80)), Repaint::default());
    table.rows[2].took = Duration::from_millis(61_100);
    let after = lines(&table, 80);
    let repaint = repaint(&before, &after);
    assert_eq!((repaint.up, repaint.lines.as_slice()), (6, &after[4..]));
}

#[test]
fn a_change_of_state_or_words_is_news_and_time_is_not() {
    let before = table();
    let mut after = table();
    after.rows[2].detail = Some("43 %".to_owned());
    after.rows[0].took = Duration::from_secs(70);
    assert_eq!(news(&before, &after), Vec::<String>::new());
    after.rows[2].sees = "trans\ncoding".to_owned();
    after.rows.push(row("#films", "@eve", State::Waiting, "asked"));
    assert_eq!(
        news(&before, &after),
        ["  61.0 s  #garden @cho              · trans coding", "   0.0 s  #films @eve               · asked"]
    );
    assert_eq!(news(&Table::default(), &before).len(), 4);
}

#[test]
fn a_table_fits_where_none_of_its_lines_breaks_or_leaves() {
    // Ten lines with those around its rows.
    let table = table();
    for (columns, rows, width) in [
        (80, 24, Some(80)),
        (200, 12, Some(80)),
        (72, 12, Some(72)),
        (64, 12, Some(64)),
        (63, 24, None),
        (80, 11, None),
        (0, 0, None),
    ] {
        assert_eq!(fitting(&table, columns, rows), width, "{columns}x{rows}");
    }
}

#[test]
fn a_row_is_told_once_when_it_has_its_answer() {
    let before = table();
    let told = answered(&Table::default(), &before);
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0], "   4.2 s  #general @ann             ✓ azalea.mp4, 9.9 MB");
    let mut after = before.clone();
    after.rows[0].took = Duration::from_secs(70);
    after.rows[2].sees = "delivering".to_owned();
    assert_eq!(answered(&before, &after), [""; 0]);
    after.rows[2].state = State::Delivered;
    assert_eq!(answered(&before, &after), ["  61.0 s  #garden @cho              ✓ delivering"]);
}

fn any_row() -> impl Strategy<Value = Row> {
    let state =
        prop_oneof![Just(State::Waiting), Just(State::Delivered), Just(State::Pointed), Just(State::Failed)];
    (any::<[String; 3]>(), state, any::<Option<String>>(), any::<Duration>()).prop_map(
        |([channel, user, sees], state, detail, took)| Row { channel, user, state, sees, detail, took },
    )
}

proptest! {
    #[test]
    fn no_words_break_the_table(rows in prop::collection::vec(any_row(), 0..12), width in 0_usize..120) {
        let table = Table { rows, ..Table::default() };
        let lines = lines(&table, width);
        prop_assert_eq!(lines.len(), table.rows.len() + 6);
        let clamped = width.clamp(MIN_WIDTH, MAX_WIDTH);
        for line in &lines {
            prop_assert!(line.chars().count() <= clamped && !line.chars().any(char::is_control), "{line:?}");
        }
    }

    #[test]
    fn painting_again_gives_the_new_lines(
        before in prop::collection::vec("[ab]", 0..8),
        after in prop::collection::vec("[ab]", 0..8),
    ) {
        let repaint = repaint(&before, &after);
        let mut screen = before;
        screen.truncate(screen.len() - repaint.up);
        screen.extend(repaint.lines);
        prop_assert_eq!(screen, after);
    }
}
