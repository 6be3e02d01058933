//! When the capture lost packets, for the reports of flows.

use wirestamp_clock::{Time, Utc};

use crate::CaptureLoss;
use crate::numeric::nanos_to_f64;

/// Losses kept apart. Beyond it, neighbours are joined; a flow may then have too high a count, never too low a one.
const MAX_KEPT: usize = 256;

/// Losses of the capture with their times.
#[derive(Clone, Debug, Default)]
pub(super) struct LossTimes {
    /// In the order of their begin.
    losses: Vec<CaptureLoss>,
    /// Packets of all losses.
    pub(super) packets: u64,
}

impl LossTimes {
    /// Records a loss, in any order.
    pub(super) fn note(&mut self, loss: CaptureLoss) {
        if loss.packets == 0 {
            return;
        }
        self.packets = self.packets.saturating_add(loss.packets);
        let place = self.losses.partition_point(|it| it.from <= loss.from);
        self.losses.insert(place, loss);
        if self.losses.len() > MAX_KEPT {
            self.join_two();
        }
    }

    /// Joins the two neighbours that are closest together for their age, so that recent losses stay the most exact.
    fn join_two(&mut self) {
        let newest = self.losses.iter().map(|it| it.until).max();
        let Some(newest) = newest else { return };
        let width = |pair: &[CaptureLoss]| {
            let joined = pair[0].and(pair[1]);
            let age = nanos_to_f64((newest - joined.from).as_nanos().max(1));
            nanos_to_f64((joined.until - joined.from).as_nanos()) / age
        };
        let pairs = self.losses.windows(2).map(width).enumerate();
        let Some((place, _)) = pairs.min_by(|(_, a), (_, b)| a.total_cmp(b)) else { return };
        let next = self.losses.remove(place + 1);
        self.losses[place] = self.losses[place].and(next);
    }

    /// Packets of all losses that may lie between two times.
    pub(super) fn between(&self, first: Time<Utc>, last: Time<Utc>) -> u64 {
        let overlapping = self.losses.iter().filter(|it| it.from <= last && it.until >= first);
        overlapping.fold(0, |sum, it| sum.saturating_add(it.packets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time<Utc> {
        Time::from_nanos(second * 1_000_000_000)
    }

    #[test]
    fn losses_count_where_their_times_overlap_in_any_order_of_reports() {
        let mut losses = LossTimes::default();
        for second in (0..200).rev() {
            losses.note(CaptureLoss { packets: 2, from: at(second), until: at(second) });
        }
        assert_eq!(losses.packets, 400);
        assert_eq!(losses.between(at(10), at(12)), 6);
    }

    #[test]
    fn flows_after_many_losses_have_their_own_share() {
        let mut losses = LossTimes::default();
        for second in 0..10_000 {
            losses.note(CaptureLoss { packets: 1, from: at(second), until: at(second) });
        }
        assert!(losses.losses.len() <= MAX_KEPT);
        for (first, last) in [(9_990, 9_999), (9_000, 9_500), (100, 5_000)] {
            let (found, truth) = (losses.between(at(first), at(last)), last - first + 1);
            let truth = u64::try_from(truth).unwrap();
            assert!((truth..truth + truth / 2 + 10).contains(&found), "{found} of {truth}");
        }
    }
}
