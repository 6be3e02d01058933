//! Extended sequence numbers, and the losses that they show.

/// Min distance of a packet too far ahead of the highest number: `MAX_DROPOUT` of RFC 3550 appendix A.1, one minute at
/// 50 packets a second. Excluded as in the code of the appendix, unlike in its prose. Outages are longer at high packet
/// rates; see [`Sequence::record_with_outages`].
const MAX_DROPOUT: u16 = 3000;
/// Min distance of a packet too far behind: `MAX_MISORDER` there, two seconds at 50 packets a second.
const MAX_MISORDER: u16 = 100;
/// Base of extended numbers: one cycle, so that packets from before the first one have a number.
const FIRST_CYCLE: u64 = 1 << 16;

/// Sequence numbers of one source (RFC 3550 appendix A.1, without its probation: the stream is already recognised).
///
/// After a restart of the sender, the appendix clears all counts and drops the first packet of the new run. Here, the
/// counts continue and include it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequence {
    run: Option<Run>,
    /// Number that would confirm a jump: one more than that of a stray packet.
    suspect: Option<u16>,
    /// Packets expected in previous runs.
    expected_before: u64,
    /// Packets received, including duplicates.
    pub received: u64,
    /// Stray packets without a restart; in none of the counts above.
    pub stray: u64,
    /// Number of restarts.
    pub restarts: u64,
}

/// Extended numbers without a restart.
#[derive(Clone, Copy, Debug)]
struct Run {
    base: u64,
    highest: u64,
}

/// Classification of a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Highest so far, or a repetition of it; the extended number.
    Ahead(u64),
    /// Less than 100 behind the highest: late or duplicate; the extended number.
    Behind(u64),
    /// Far from all others. Counts as received only if the next far packet has the following number.
    Stray,
    /// Follows a stray packet: the sender restarted. Extended numbers are unrelated to those before.
    Restarted(u64),
}

impl Sequence {
    /// Records the next sequence number, in the order of arrival.
    pub fn record(&mut self, number: u16) -> Step {
        self.record_with_outages(number, || false)
    }

    /// As [`Self::record`]. A number far from all others is [`Step::Ahead`] if there was an outage before it.
    pub(super) fn record_with_outages(
        &mut self,
        number: u16,
        has_outage_before: impl FnOnce() -> bool,
    ) -> Step {
        let step = self.step(number, has_outage_before);
        match step {
            Step::Ahead(extended) => {
                let run = self.run.get_or_insert(Run { base: extended, highest: extended });
                run.highest = extended;
            }
            Step::Restarted(extended) => self.restart(extended),
            Step::Behind(_) => {}
            Step::Stray => {
                self.suspect = Some(number.wrapping_add(1));
                self.stray += 1;
                return step;
            }
        }
        self.received += 1;
        step
    }

    fn step(&self, number: u16, has_outage_before: impl FnOnce() -> bool) -> Step {
        let Some(Run { highest, .. }) = self.run else {
            return Step::Ahead(FIRST_CYCLE + u64::from(number));
        };
        let ahead = number.wrapping_sub(low_half(highest));
        let behind = ahead.wrapping_neg();
        if ahead < MAX_DROPOUT {
            Step::Ahead(highest + u64::from(ahead))
        } else if behind < MAX_MISORDER {
            Step::Behind(highest - u64::from(behind))
        } else if has_outage_before() {
            Step::Ahead(highest + u64::from(ahead))
        } else if self.suspect == Some(number) {
            Step::Restarted(FIRST_CYCLE + u64::from(number))
        } else {
            Step::Stray
        }
    }

    /// Restarts with the previous packet, which was classified as stray.
    fn restart(&mut self, extended: u64) {
        self.expected_before = self.expected();
        self.run = Some(Run { base: extended - 1, highest: extended });
        self.suspect = None;
        self.received += 1;
        self.stray -= 1;
        self.restarts += 1;
    }

    /// Packets sent by the numbers, from the first to the highest (appendix A.3). Excludes packets sent around a
    /// restart, which are unknown.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.expected_before + self.run.map_or(0, |run| run.highest - run.base + 1)
    }

    /// Highest extended number since the last restart; none without packets.
    #[must_use]
    pub fn highest(&self) -> Option<u64> {
        self.run.map(|run| run.highest)
    }

    /// Packets expected minus packets received (appendix A.3): negative if there are more duplicates than losses. Not
    /// clamped to the 24 bits of RTCP.
    #[must_use]
    pub fn lost(&self) -> i64 {
        // Both are counts of packets and far from the limits.
        self.expected().wrapping_sub(self.received).cast_signed()
    }
}

/// Sequence number in the packet.
#[expect(clippy::cast_possible_truncation, reason = "takes the low 16 bits")]
const fn low_half(extended: u64) -> u16 {
    extended as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sequence(numbers: impl IntoIterator<Item = u16>) -> Sequence {
        let mut sequence = Sequence::default();
        numbers.into_iter().for_each(|number| {
            sequence.record(number);
        });
        sequence
    }

    fn counts(sequence: &Sequence) -> (u64, u64, i64) {
        (sequence.expected(), sequence.received, sequence.lost())
    }

    #[test]
    fn numbers_continue_after_a_wrap() {
        let mut sequence = sequence([65_534, 65_535]);
        assert_eq!(sequence.record(1), Step::Ahead(2 * 65_536 + 1));
        assert_eq!(sequence.record(0), Step::Behind(2 * 65_536));
        assert_eq!(counts(&sequence), (4, 4, 0));
    }

    #[test]
    fn gaps_are_losses_and_copies_hide_them() {
        assert_eq!(counts(&sequence([1, 2, 5])), (5, 3, 2));
        assert_eq!(counts(&sequence([1, 2, 5, 5, 2])), (5, 5, 0));
        assert_eq!(counts(&sequence([1, 1])), (1, 2, -1));
        assert_eq!(counts(&sequence([])), (0, 0, 0));
    }

    #[test]
    fn packet_before_the_first_is_no_wrap() {
        assert_eq!(sequence([0]).record(65_535), Step::Behind(65_535));
        assert_eq!(sequence([0, 65_535]).expected(), 1);
    }

    #[test]
    fn two_stray_packets_in_a_row_are_a_restart() {
        let stray = sequence([1, 2, 40_000, 3]);
        assert_eq!((counts(&stray), stray.stray), ((3, 3, 0), 1));
        let restarted = sequence([1, 2, 4, 40_000, 40_001, 40_003]);
        assert_eq!(counts(&restarted), (4 + 4, 3 + 3, 2));
        assert_eq!((restarted.stray, restarted.restarts), (0, 1));
    }

    #[test]
    fn the_limits_are_those_of_the_rfc() {
        let step = |number| sequence([10_000]).record(number);
        assert_eq!(step(12_999), Step::Ahead(65_536 + 12_999));
        assert_eq!(step(13_000), Step::Stray);
        assert_eq!(step(9_901), Step::Behind(65_536 + 9_901));
        assert_eq!(step(9_900), Step::Stray);
    }

    proptest! {
        #[test]
        fn many_wraps_with_gaps_lose_exactly_the_gaps(
            first: u16, gaps in prop::collection::vec(1u16..MAX_DROPOUT, 0..300),
        ) {
            let mut number = first;
            let mut sequence = sequence([first]);
            for gap in &gaps {
                number = number.wrapping_add(*gap);
                sequence.record(number);
            }
            let lost: i64 = gaps.iter().map(|gap| i64::from(*gap) - 1).sum();
            prop_assert_eq!(sequence.lost(), lost);
        }
    }
}
