//! Makes one clock out of a stream whose time stamps jump, as in joined or interrupted transport streams.

use crate::units::Timestamp;

/// Follows the raw time stamps of several streams and tells how far each packet must be shifted.
///
/// When a stream's clock jumps, a new stretch begins right after everything that came before. Packets of the
/// other streams that still belong to the old stretch keep its shift until their own clock jumps too, since a
/// container may deliver them late. **Every reading of an input must see the same streams**, else each would
/// find other jumps.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    shifts: Vec<Timestamp>,
    streams: Vec<StreamClock>,
    /// The end of everything seen, as it is shown on the shifted clock.
    end: Timestamp,
    jumps: u32,
}

/// The times of one packet as the container tells them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) dts: Timestamp,
    /// The decoding time where it is not told.
    pub(crate) pts: Timestamp,
    /// Zero where it is not told.
    pub(crate) duration: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct StreamClock {
    stream: usize,
    /// Index into `shifts`.
    stretch: usize,
    last: Timestamp,
    step: Timestamp,
}

/// Backwards by more than this is a jump: B-frames never reorder DTS, only damaged files go back a little.
const BACK: Timestamp = Timestamp::from_micros(-100_000);
/// Forwards by more than this, in all streams at once, is a jump: longer pauses are not what people want to
/// watch either.
const AHEAD: Timestamp = Timestamp::from_micros(10_000_000);
/// A picture is not shown later than this after its decoding time; a packet that says so lies.
const REORDERED: Timestamp = Timestamp::from_micros(60_000_000);

impl Timeline {
    /// The shift for a packet of `stream`.
    pub(crate) fn shift(&mut self, stream: usize, moment: Moment) -> Timestamp {
        if self.shifts.is_empty() {
            self.shifts.push(Timestamp::ZERO);
        }
        let Moment { dts, pts, duration } = moment;
        let pts = if pts > dts && pts.minus(dts) < REORDERED { pts } else { dts };
        let newest = self.shifts.len() - 1;
        let Some(clock) = self.streams.iter_mut().find(|clock| clock.stream == stream) else {
            self.streams.push(StreamClock { stream, stretch: newest, last: dts, step: duration });
            let shift = self.shifts.get(newest).copied().unwrap_or_default();
            self.end = self.end.max(pts.plus(shift).plus(duration));
            return shift;
        };
        let moved = dts.minus(clock.last);
        let shift = self.shifts.get(clock.stretch).copied().unwrap_or_default();
        // One stream may pause while another runs on, or while a picture that was sent earlier is on the screen.
        let ahead = moved > AHEAD && (clock.stretch != newest || dts.plus(shift).minus(self.end) > AHEAD);
        if moved < BACK || ahead {
            if clock.stretch == newest {
                // This stream is the first to jump: the new stretch begins where everything ended.
                self.shifts.push(self.end.minus(pts));
                self.jumps = self.jumps.saturating_add(1);
            }
            clock.stretch = self.shifts.len() - 1;
        } else if moved > Timestamp::ZERO && moved < AHEAD {
            clock.step = moved;
        }
        clock.last = dts;
        let shift = self.shifts.get(clock.stretch).copied().unwrap_or_default();
        let length = if duration > Timestamp::ZERO { duration } else { clock.step };
        self.end = self.end.max(pts.plus(shift).plus(length));
        shift
    }

    /// How often the clock jumped.
    pub(crate) const fn jumps(&self) -> u32 {
        self.jumps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: i64) -> Timestamp {
        Timestamp::from_micros(milliseconds * 1000)
    }

    /// A packet without reordering.
    fn at(dts: i64) -> Moment {
        Moment { dts: ms(dts), pts: ms(dts), duration: ms(40) }
    }

    fn reordered(dts: i64, pts: i64) -> Moment {
        Moment { pts: ms(pts), ..at(dts) }
    }

    #[test]
    fn a_steady_clock_is_left_alone() {
        let mut timeline = Timeline::default();
        for number in 0..100 {
            assert_eq!(timeline.shift(0, at(37_000 + number * 40)), Timestamp::ZERO);
            assert_eq!(timeline.shift(1, at(37_000 + number * 40 + 7)), Timestamp::ZERO);
        }
        assert_eq!(timeline.jumps(), 0);
    }

    #[test]
    fn a_restart_continues_behind_what_came_before() {
        let mut timeline = Timeline::default();
        for number in 0..75 {
            timeline.shift(0, at(number * 40));
            timeline.shift(1, at(number * 40));
        }
        assert_eq!(timeline.shift(0, at(0)), ms(3000));
        // A late packet of the first part stays there, then the second stream follows.
        assert_eq!(timeline.shift(1, at(3000)), ms(0));
        assert_eq!(timeline.shift(1, at(5)), ms(3000));
        assert_eq!(timeline.shift(0, at(40)), ms(3000));
        assert_eq!(timeline.jumps(), 1);
    }

    #[test]
    fn the_shorter_stream_of_a_part_waits_for_the_longer_one() {
        let mut timeline = Timeline::default();
        for number in 0..100 {
            timeline.shift(1, at(number * 40));
            if number < 75 {
                timeline.shift(0, at(number * 40));
            }
        }
        assert_eq!(timeline.shift(0, at(0)), ms(4000));
        assert_eq!(timeline.shift(1, at(0)), ms(4000));
    }

    #[test]
    fn a_new_part_shows_its_first_picture_behind_the_last_one_shown() {
        let mut timeline = Timeline::default();
        timeline.shift(0, reordered(0, 80));
        timeline.shift(0, reordered(40, 200));
        timeline.shift(0, reordered(80, 120));
        timeline.shift(0, reordered(120, 160));
        assert_eq!(timeline.shift(0, reordered(-500, -420)), ms(240 + 420));
    }

    #[test]
    fn a_pause_of_one_stream_is_no_jump_while_another_runs_on() {
        let mut timeline = Timeline::default();
        for number in 0..500 {
            timeline.shift(1, at(number * 40));
            if !(50..400).contains(&number) {
                assert_eq!(timeline.shift(0, at(number * 40)), Timestamp::ZERO);
            }
        }
        assert_eq!(timeline.jumps(), 0);
    }

    #[test]
    fn a_pause_under_a_picture_that_was_sent_before_it_is_no_jump() {
        let mut timeline = Timeline::default();
        timeline.shift(0, reordered(0, 80));
        timeline.shift(0, reordered(40, 14_080));
        assert_eq!(timeline.shift(0, reordered(14_000, 14_000)), Timestamp::ZERO);
    }

    #[test]
    fn all_streams_follow_a_jump_ahead_however_late() {
        let mut timeline = Timeline::default();
        timeline.shift(0, at(0));
        timeline.shift(1, at(0));
        for number in 0..200 {
            assert_eq!(timeline.shift(0, at(12_000 + number * 40)), ms(40 - 12_000));
        }
        assert_eq!(timeline.shift(1, at(12_000)), ms(40 - 12_000));
        assert_eq!(timeline.jumps(), 1);
    }

    #[test]
    fn a_long_gap_is_closed() {
        let mut timeline = Timeline::default();
        timeline.shift(0, at(0));
        assert_eq!(timeline.shift(0, at(3_600_000)), ms(40 - 3_600_000));
    }
}
