//! Sequence numbers of a stream: detection of gaps, late packets and duplicates.

use crate::rtp::Step;

/// Size of the window: all numbers that [`Step::Behind`] can mean, and a neighbour.
const MAX_KEPT: u64 = 128;

/// Classification of a packet by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrivalKind {
    /// Highest so far; `skipped` numbers before it are missing.
    Ahead { skipped: u64 },
    /// Was missing; 0 to 2 of its neighbours are still missing.
    Late { missing_neighbours: u8 },
    /// Older than the first packet; `skipped` numbers between them are missing.
    Early { skipped: u64 },
    /// Arrived before.
    Duplicate,
    /// Far from all others.
    Stray,
    /// The sender restarted with the packet before this one.
    Restarted,
}

/// Window of the newest numbers of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers {
    /// Lowest and highest number received.
    ends: Option<(u64, u64)>,
    /// Bit n: number `highest` - n arrived, or is below the lowest.
    arrived: u128,
}

impl Numbers {
    /// Records the next packet.
    pub(super) fn record(&mut self, step: Step) -> ArrivalKind {
        match (step, self.ends) {
            (Step::Stray, _) => ArrivalKind::Stray,
            (Step::Restarted(number), _) => {
                *self = Self { ends: Some((number.saturating_sub(1), number)), arrived: u128::MAX };
                ArrivalKind::Restarted
            }
            (Step::Ahead(number) | Step::Behind(number), None) => {
                *self = Self { ends: Some((number, number)), arrived: u128::MAX };
                ArrivalKind::Ahead { skipped: 0 }
            }
            (Step::Ahead(number), Some((lowest, highest))) if number > highest => {
                self.ends = Some((lowest, number));
                let ahead = number - highest;
                let shift = u32::try_from(ahead).unwrap_or(u32::MAX);
                self.arrived = self.arrived.checked_shl(shift).unwrap_or(0) | 1;
                ArrivalKind::Ahead { skipped: ahead - 1 }
            }
            (Step::Ahead(number) | Step::Behind(number), Some(ends)) => self.behind(number, ends),
        }
    }

    fn behind(&mut self, number: u64, (lowest, highest): (u64, u64)) -> ArrivalKind {
        let place = highest.saturating_sub(number);
        if place >= MAX_KEPT {
            return ArrivalKind::Stray;
        }
        if number < lowest {
            self.ends = Some((number, highest));
            (number + 1..lowest).for_each(|missing| self.arrived &= !(1 << (highest - missing)));
            return ArrivalKind::Early { skipped: lowest - number - 1 };
        }
        if self.arrived >> place & 1 == 1 {
            return ArrivalKind::Duplicate;
        }
        self.arrived |= 1 << place;
        let missing = |place: Option<u64>| {
            place.is_some_and(|place| place < MAX_KEPT && self.arrived >> place & 1 == 0)
        };
        let neighbours = [place.checked_sub(1), place.checked_add(1)].map(missing);
        ArrivalKind::Late { missing_neighbours: neighbours.into_iter().map(u8::from).sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::Sequence;

    fn all(numbers: &[u16]) -> Vec<ArrivalKind> {
        let (mut sequence, mut seen) = (Sequence::default(), Numbers::default());
        numbers.iter().map(|number| seen.record(sequence.record(*number))).collect()
    }

    fn last(numbers: &[u16]) -> ArrivalKind {
        all(numbers).pop().expect("a number")
    }

    #[test]
    fn gaps_late_packets_and_duplicates_are_distinguished() {
        assert_eq!(last(&[1, 2]), ArrivalKind::Ahead { skipped: 0 });
        assert_eq!(last(&[1, 5]), ArrivalKind::Ahead { skipped: 3 });
        assert_eq!(last(&[1, 3, 2]), ArrivalKind::Late { missing_neighbours: 0 });
        assert_eq!(last(&[1, 4, 2]), ArrivalKind::Late { missing_neighbours: 1 });
        assert_eq!(last(&[1, 5, 3]), ArrivalKind::Late { missing_neighbours: 2 });
        assert_eq!(last(&[1, 1]), ArrivalKind::Duplicate);
        assert_eq!(last(&[1, 3, 2, 2]), ArrivalKind::Duplicate);
        assert_eq!(last(&[65_535, 1, 0]), ArrivalKind::Late { missing_neighbours: 0 });
    }

    #[test]
    fn older_first_packet_moves_the_beginning() {
        assert_eq!(last(&[10, 11, 7]), ArrivalKind::Early { skipped: 2 });
        assert_eq!(last(&[10, 11, 7, 9]), ArrivalKind::Late { missing_neighbours: 1 });
        assert_eq!(last(&[10, 11, 7, 10]), ArrivalKind::Duplicate);
    }

    #[test]
    fn window_covers_the_latest_possible_packet() {
        let late = |number| last(&[1000, 1002, 1100, number]);
        assert_eq!(late(1001), ArrivalKind::Late { missing_neighbours: 0 });
        assert_eq!(late(1002), ArrivalKind::Duplicate);
        assert_eq!(late(1000), ArrivalKind::Stray);
    }

    #[test]
    fn large_jump_clears_the_window() {
        assert_eq!(last(&[0, 2999]), ArrivalKind::Ahead { skipped: 2998 });
        assert_eq!(last(&[0, 2999, 2998]), ArrivalKind::Late { missing_neighbours: 1 });
        assert_eq!(all(&[0, 20_000, 20_001])[1..], [ArrivalKind::Stray, ArrivalKind::Restarted]);
        assert_eq!(last(&[0, 20_000, 20_001, 20_000]), ArrivalKind::Duplicate);
    }
}
