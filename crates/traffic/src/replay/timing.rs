//! When the packets of a file are due.

use std::str::FromStr;

use wirestamp_clock::{Span, Time, Utc};

/// How much faster than it was recorded a capture is replayed: 2 halves the time between packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

impl Speed {
    /// As it was recorded.
    pub const RECORDED: Self = Self(1.0);

    /// `factor` times as fast, if that is a number from a millionth to a million.
    #[must_use]
    pub fn new(factor: f64) -> Option<Self> {
        (1e-6..=1e6).contains(&factor).then_some(Self(factor))
    }

    /// The time that `span` of the recording takes: to the nanosecond for up to 104 days, which is
    /// what a double holds whole.
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

/// When a packet is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// From the start of the replay on.
    pub(super) offset: Span,
    /// Whether its time is before that of a packet ahead of it.
    pub(super) went_back: bool,
}

/// Lays the times of a file, read several times over, out from 0 on.
#[derive(Debug)]
pub(super) struct Timing {
    speed: Speed,
    round: u64,
    /// When this round began: by the replay's time, and by the file's.
    begun: Span,
    first: Option<Time<Utc>>,
    /// When the latest packet so far is due.
    latest: Span,
    /// Packets of this round so far.
    packets: i64,
}

impl Timing {
    pub(super) const fn new(speed: Speed) -> Self {
        Self { speed, round: 0, begun: Span::ZERO, first: None, latest: Span::ZERO, packets: 0 }
    }

    /// When the packet with this time in the file is due.
    pub(super) fn place(&mut self, round: u64, time: Time<Utc>) -> Due {
        if round != self.round {
            self.begin(round);
        }
        let first = *self.first.get_or_insert(time);
        self.packets += 1;
        let offset = self.begun + self.speed.scale(time - first);
        let went_back = offset < self.latest;
        self.latest = self.latest.max(offset);
        Due { offset: self.latest, went_back }
    }

    /// Another round begins a mean gap behind the last packet of the one before.
    fn begin(&mut self, round: u64) {
        let gaps = (self.packets - 1).max(1);
        let gap = Span::from_nanos((self.latest - self.begun).as_nanos() / gaps);
        self.latest += gap;
        self.begun = self.latest;
        (self.round, self.first, self.packets) = (round, None, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn placed(timing: &mut Timing, round: u64, times: &[i64]) -> Vec<(i64, bool)> {
        let place = |&time: &i64| {
            let due = timing.place(round, Time::from_nanos(1_000_000_000 + time));
            (due.offset.as_nanos(), due.went_back)
        };
        times.iter().map(place).collect()
    }

    #[test]
    fn the_first_packet_is_due_at_once_and_another_round_a_mean_gap_later() {
        let mut timing = Timing::new(Speed::new(2.0).unwrap());
        let times = [0, 10, 40];
        assert_eq!(placed(&mut timing, 0, &times), [(0, false), (5, false), (20, false)]);
        assert_eq!(placed(&mut timing, 1, &times), [(30, false), (35, false), (50, false)]);
    }

    #[test]
    fn time_that_goes_back_is_counted_and_the_packet_sent_behind_the_one_before() {
        let mut timing = Timing::new(Speed::RECORDED);
        let expected = [(0, false), (50, false), (50, true), (50, true), (60, false)];
        assert_eq!(placed(&mut timing, 0, &[0, 50, 20, -9, 60]), expected);
    }

    #[test]
    fn a_speed_is_a_factor_above_zero() {
        for text in ["0", "-1", "nan", "inf", "fast", "1e-9", ""] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
        assert_eq!("2.5".parse(), Ok(Speed(2.5)));
    }

    proptest! {
        #[test]
        fn deadlines_never_go_back_whatever_the_file_says(
            times in prop::collection::vec(any::<i64>(), 1..50), factor in 1e-6..1e6, rounds in 1_u64..4,
        ) {
            let mut timing = Timing::new(Speed::new(factor).unwrap());
            let mut last = Span::ZERO;
            for round in 0..rounds {
                for &time in &times {
                    let due = timing.place(round, Time::from_nanos(time));
                    prop_assert!(due.offset >= last);
                    last = due.offset;
                }
            }
        }
    }
}
