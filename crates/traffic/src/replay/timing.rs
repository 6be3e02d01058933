//! Due times of the packets of a file.

use std::str::FromStr;

use wirestamp_clock::{Span, Time, Utc};

/// Replay speed relative to the recording: 2 halves the intervals between packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

impl Speed {
    /// The speed of the recording.
    pub const RECORDED: Self = Self(1.0);

    /// `factor` times the recorded speed; `None` unless the factor is 1e-6 to 1e6.
    #[must_use]
    pub fn new(factor: f64) -> Option<Self> {
        (1e-6..=1e6).contains(&factor).then_some(Self(factor))
    }

    /// The replay time of `span`. Exact to the nanosecond up to 104 days, the whole-number range of a
    /// double.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "as above; it saturates"
    )]
    fn scale(self, span: Span) -> Span {
        Span::from_nanos((span.as_nanos() as f64 / self.0).round() as i64)
    }
}

impl FromStr for Speed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().ok().and_then(Self::new).ok_or("expected a factor from 0.000001 to 1000000")
    }
}

/// Due time of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueTime {
    /// Time since the start of the replay.
    pub(super) offset: Span,
    /// Whether its time in the file is before that of an earlier packet.
    pub(super) went_back: bool,
}

/// Converts the times of a file, read in several rounds, to due times from 0.
#[derive(Debug)]
pub(super) struct ReplayTiming {
    speed: Speed,
    round: u64,
    /// Start of this round: by the replay's time, and by the file's.
    round_start: Span,
    first: Option<Time<Utc>>,
    /// Due time of the latest packet so far.
    latest: Span,
    /// Packets of this round so far.
    packets: i64,
}

impl ReplayTiming {
    pub(super) const fn new(speed: Speed) -> Self {
        Self {
            speed,
            round: 0,
            round_start: Span::ZERO,
            first: None,
            latest: Span::ZERO,
            packets: 0,
        }
    }

    /// Due time of the packet with this time in the file.
    pub(super) fn due_time(&mut self, round: u64, time: Time<Utc>) -> DueTime {
        if round != self.round {
            self.start_round(round);
        }
        let first = *self.first.get_or_insert(time);
        self.packets += 1;
        let offset = self.round_start + self.speed.scale(time - first);
        let went_back = offset < self.latest;
        self.latest = self.latest.max(offset);
        DueTime { offset: self.latest, went_back }
    }

    /// Starts the next round a mean interval after the last packet of the previous round.
    fn start_round(&mut self, round: u64) {
        let gaps = (self.packets - 1).max(1);
        let gap = Span::from_nanos((self.latest - self.round_start).as_nanos() / gaps);
        self.latest += gap;
        self.round_start = self.latest;
        (self.round, self.first, self.packets) = (round, None, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn placed(timing: &mut ReplayTiming, round: u64, times: &[i64]) -> Vec<(i64, bool)> {
        let due_time = |&time: &i64| {
            let due = timing.due_time(round, Time::from_nanos(1_000_000_000 + time));
            (due.offset.as_nanos(), due.went_back)
        };
        times.iter().map(due_time).collect()
    }

    #[test]
    fn next_round_starts_a_mean_interval_later() {
        let mut timing = ReplayTiming::new(Speed::new(2.0).unwrap());
        let times = [0, 10, 40];
        assert_eq!(placed(&mut timing, 0, &times), [(0, false), (5, false), (20, false)]);
        assert_eq!(placed(&mut timing, 1, &times), [(30, false), (35, false), (50, false)]);
    }

    #[test]
    fn packet_with_earlier_time_is_counted_and_not_delayed() {
        let mut timing = ReplayTiming::new(Speed::RECORDED);
        let expected = [(0, false), (50, false), (50, true), (50, true), (60, false)];
        assert_eq!(placed(&mut timing, 0, &[0, 50, 20, -9, 60]), expected);
    }

    #[test]
    fn speed_is_a_positive_factor() {
        for text in ["0", "-1", "nan", "inf", "fast", "1e-9", ""] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
        assert_eq!("2.5".parse(), Ok(Speed(2.5)));
    }

    proptest! {
        #[test]
        fn deadlines_never_decrease(
            times in prop::collection::vec(any::<i64>(), 1..50), factor in 1e-6..1e6, rounds in 1_u64..4,
        ) {
            let mut timing = ReplayTiming::new(Speed::new(factor).unwrap());
            let mut last = Span::ZERO;
            for round in 0..rounds {
                for &time in &times {
                    let due = timing.due_time(round, Time::from_nanos(time));
                    prop_assert!(due.offset >= last);
                    last = due.offset;
                }
            }
        }
    }
}
