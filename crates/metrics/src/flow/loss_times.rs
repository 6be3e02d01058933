//! When the capture lost packets, for the reports of flows.

use std::collections::VecDeque;

use wirestamp_clock::{Time, Utc};

use crate::CaptureLoss;

/// Losses kept apart. The oldest are joined, so that older flows may have too high a count, never too low a one.
const MAX_KEPT: usize = 256;

/// Losses of the capture with their times.
#[derive(Clone, Debug, Default)]
pub(super) struct LossTimes {
    losses: VecDeque<CaptureLoss>,
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
        self.losses.push_back(loss);
        if self.losses.len() > MAX_KEPT
            && let (Some(first), Some(second)) = (self.losses.pop_front(), self.losses.front_mut())
        {
            *second = CaptureLoss {
                packets: first.packets.saturating_add(second.packets),
                from: first.from.min(second.from),
                until: first.until.max(second.until),
            };
        }
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
        for second in (0..1_000).rev() {
            losses.note(CaptureLoss { packets: 2, from: at(second), until: at(second) });
        }
        assert_eq!(losses.packets, 2_000);
        assert_eq!(losses.between(at(10), at(12)), 6);
        // Joined: never fewer than were lost.
        assert!(losses.between(at(900), at(910)) >= 22);
    }
}
