//! Makes one clock out of a stream whose time stamps jump, as in joined or interrupted transport streams.

use crate::units::Timestamp;

/// Follows the raw time stamps of several streams and tells how far each packet must be shifted.
///
/// When a stream's clock jumps, a new stretch begins right after everything that came before. Packets of the
/// other streams that still belong to the old stretch keep its shift until their own clock jumps too, since a
/// container may deliver them late.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    shifts: Vec<Timestamp>,
    streams: Vec<StreamClock>,
    /// The end of everything seen, on the shifted clock.
    end: Timestamp,
    jumps: u32,
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
/// Forwards by more than this is a jump: longer pauses are not what people want to watch either.
const AHEAD: Timestamp = Timestamp::from_micros(10_000_000);

impl Timeline {
    /// The shift for a packet of `stream` with decoding time `dts` and length `duration`.
    pub(crate) fn shift(&mut self, stream: usize, dts: Timestamp, duration: Timestamp) -> Timestamp {
        if self.shifts.is_empty() {
            self.shifts.push(Timestamp::ZERO);
        }
        let newest = self.shifts.len() - 1;
        let Some(clock) = self.streams.iter_mut().find(|clock| clock.stream == stream) else {
            self.streams.push(StreamClock { stream, stretch: newest, last: dts, step: duration });
            let shift = self.shifts.get(newest).copied().unwrap_or_default();
            self.end = self.end.max(dts.plus(shift).plus(duration));
            return shift;
        };
        let moved = dts.minus(clock.last);
        if moved < BACK || moved > AHEAD {
            if clock.stretch == newest {
                // This stream is the first to jump: the new stretch begins where everything ended.
                self.shifts.push(self.end.minus(dts));
                self.jumps = self.jumps.saturating_add(1);
            }
            clock.stretch = self.shifts.len() - 1;
        } else if moved > Timestamp::ZERO {
            clock.step = moved;
        }
        clock.last = dts;
        let shift = self.shifts.get(clock.stretch).copied().unwrap_or_default();
        let length = if duration > Timestamp::ZERO { duration } else { clock.step };
        self.end = self.end.max(dts.plus(shift).plus(length));
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

    #[test]
    fn a_steady_clock_is_left_alone() {
        let mut timeline = Timeline::default();
        for number in 0..100 {
            assert_eq!(timeline.shift(0, ms(37_000 + number * 40), ms(40)), Timestamp::ZERO);
            assert_eq!(timeline.shift(1, ms(37_000 + number * 40 + 7), ms(21)), Timestamp::ZERO);
        }
        assert_eq!(timeline.jumps(), 0);
    }

    #[test]
    fn a_restart_continues_behind_what_came_before() {
        let mut timeline = Timeline::default();
        for number in 0..75 {
            timeline.shift(0, ms(number * 40), ms(40));
            timeline.shift(1, ms(number * 40), ms(40));
        }
        assert_eq!(timeline.shift(0, ms(0), ms(40)), ms(3000));
        // A late packet of the first part stays there, then the second stream follows.
        assert_eq!(timeline.shift(1, ms(3000), ms(40)), ms(0));
        assert_eq!(timeline.shift(1, ms(5), ms(40)), ms(3000));
        assert_eq!(timeline.shift(0, ms(40), ms(40)), ms(3000));
        assert_eq!(timeline.jumps(), 1);
    }

    #[test]
    fn a_long_gap_is_closed() {
        let mut timeline = Timeline::default();
        timeline.shift(0, ms(0), ms(40));
        assert_eq!(timeline.shift(0, ms(3_600_000), ms(40)), ms(40 - 3_600_000));
    }
}
