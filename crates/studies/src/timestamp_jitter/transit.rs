//! Transit of each packet: from its departure, the driver's transmit stamp where that is recorded, to the stamp of a
//! capture. A packet with a much longer transit than the others is late.

use crate::experiment::deviation;
use wirestamp_report::format::{length, real};

/// A packet is late if its transit is longer than the median by this, in nanoseconds: the limit of the control, too.
pub(super) const INTERRUPTION_NS: f64 = 1_000.0;

/// The transits of the packets of a flow.
pub(super) struct Transits {
    /// Number of the packet and its transit in nanoseconds, by number.
    packets: Vec<(u64, f64)>,
    /// The same transits, ascending.
    sorted: Vec<f64>,
}

impl Transits {
    /// Of packets in ascending order of their numbers.
    pub(super) fn of(packets: impl Iterator<Item = (u64, f64)>) -> Self {
        let packets: Vec<_> = packets.collect();
        let mut sorted: Vec<_> = packets.iter().map(|(_, transit)| *transit).collect();
        sorted.sort_by(f64::total_cmp);
        Self { packets, sorted }
    }

    /// The transit that a share of the packets does not exceed, in thousandths; none without packets.
    pub(super) fn quantile(&self, per_mille: usize) -> Option<f64> {
        let last = self.sorted.len().checked_sub(1)?;
        self.sorted.get(last * per_mille.min(1000) / 1000).copied()
    }

    /// Share of the packets that were late; none without packets.
    pub(super) fn late_share(&self) -> Option<f64> {
        let limit = self.limit()?;
        let late = self.sorted.iter().filter(|transit| **transit > limit).count();
        Some(real(u64::try_from(late).ok()?) / real(length(&self.sorted)))
    }

    /// Standard deviation of the differences between consecutive packets of which none was late: the jitter without late
    /// packets. None with fewer than two differences.
    pub(super) fn uninterrupted_jitter(&self) -> Option<f64> {
        let limit = self.limit()?;
        let difference = |pair: &[(u64, f64)]| match pair {
            [(before, first), (packet, second)] => {
                let is_gap = before.checked_add(1) == Some(*packet);
                (is_gap && *first <= limit && *second <= limit).then_some(second - first)
            }
            _ => None,
        };
        deviation(&self.packets.windows(2).filter_map(difference).collect::<Vec<_>>())
    }

    /// The late packets: number, and how much longer than the median their transit was.
    pub(super) fn late(&self) -> impl Iterator<Item = (u64, f64)> {
        let median = self.quantile(500).unwrap_or(f64::INFINITY);
        let excess = self.packets.iter().map(move |(packet, transit)| (*packet, transit - median));
        excess.filter(|(_, excess)| *excess > INTERRUPTION_NS)
    }

    /// Number of packets.
    pub(super) fn count(&self) -> u64 {
        length(&self.packets)
    }

    /// Sum of the squares of the differences from the median, in square nanoseconds; none without packets.
    pub(super) fn squares(&self) -> Option<f64> {
        let median = self.quantile(500)?;
        Some(self.sorted.iter().map(|transit| (transit - median).powi(2)).sum())
    }

    fn limit(&self) -> Option<f64> {
        Some(self.quantile(500)? + INTERRUPTION_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_packets_do_not_count_to_the_uninterrupted_jitter() {
        let ns = [700.0, 710.0, 700.0, 9_000.0, 690.0, 700.0];
        let transits = Transits::of((0..).zip(ns));
        assert_eq!(transits.quantile(500), Some(700.0));
        assert_eq!(transits.quantile(1000), Some(9_000.0));
        assert_eq!(transits.late_share(), Some(1.0 / 6.0));
        assert_eq!(transits.late().collect::<Vec<_>>(), [(3, 8_300.0)]);
        assert_eq!((transits.count(), transits.squares()), (6, Some(8_300.0 * 8_300.0 + 200.0)));
        // Of 10, -10 and 10.
        assert_eq!(transits.uninterrupted_jitter().map(f64::round), Some(12.0));
    }

    #[test]
    fn time_across_a_lost_packet_is_not_a_difference() {
        let transits = Transits::of([(0, 700.0), (1, 710.0), (3, 900.0)].into_iter());
        assert_eq!(transits.uninterrupted_jitter(), None);
        let none = Transits::of(std::iter::empty());
        assert_eq!((none.quantile(500), none.late_share()), (None, None));
        assert_eq!((none.late().count(), none.squares()), (0, None));
    }
}
