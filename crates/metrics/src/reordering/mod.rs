//! Reordering of one stream, as RFC 4737 defines it.

mod arrival;
mod discontinuities;
mod free_runs;

use std::collections::VecDeque;

use wirestamp_clock::{Time, Utc};

use crate::numeric::count_to_f64;
use crate::{CountDistribution, Distribution};

pub use arrival::{Arrival, Lateness, Order, OrderCounts};
pub use discontinuities::Discontinuities;
pub use free_runs::FreeRuns;

#[cfg(test)]
mod tests;

/// Reordering metrics of one stream (RFC 4737), over its packets as they arrive.
///
/// The last arrivals are kept in a window (section 6) of configurable size, at 40 bytes each. A packet later than the
/// window counts as [`Order::Forgotten`] and is in no other figure, but has a position among the arrivals. A packet in
/// order takes constant time, a reordered one time proportional to its extent.
#[derive(Clone, Debug)]
pub struct Reordering {
    window: usize,
    /// First copies in the order of arrival, newest last.
    recent: VecDeque<Recent>,
    /// Highest sequence number up to the last arrival that left the window.
    forgotten_until: Option<u64>,
    /// First copies that left the window.
    gone: u64,
    /// Counts by order.
    pub counts: OrderCounts,
    /// Extents of the reordered packets, in packets.
    pub extents: CountDistribution,
    /// Late time offsets of the reordered packets.
    pub late_times: Distribution,
    /// Byte offsets of the reordered packets.
    pub byte_offsets: CountDistribution,
    /// Discontinuities, and the gaps between them (section 4.5).
    pub discontinuities: Discontinuities,
    /// The reordering-free runs (section 4.6).
    pub free_runs: FreeRuns,
    /// Number of packets by [`Lateness::n_reordering`].
    by_n: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    arrival: Arrival,
    /// Highest sequence number of all arrivals up to this one; `NextExp` of RFC 4737 section 3.3 is one more.
    highest: u64,
}

impl Reordering {
    /// An empty stream with a window of `window` arrivals; 0 is taken as 1.
    #[must_use]
    pub fn new(window: usize) -> Self {
        Self {
            window: window.max(1),
            recent: VecDeque::new(),
            forgotten_until: None,
            gone: 0,
            counts: OrderCounts::default(),
            discontinuities: Discontinuities::default(),
            free_runs: FreeRuns::default(),
            extents: CountDistribution::default(),
            late_times: Distribution::new(),
            byte_offsets: CountDistribution::default(),
            by_n: Vec::new(),
        }
    }

    /// Records the next packet, in the order of arrival, and returns its order.
    pub fn record(&mut self, arrival: Arrival) -> Order {
        let order = self.order_of(&arrival);
        match order {
            Order::InOrder => {
                self.counts.in_order += 1;
                self.free_runs.record(true);
            }
            Order::Reordered(lateness) => self.count_reordered(lateness),
            Order::Duplicate => self.counts.duplicated += 1,
            Order::Forgotten => self.counts.forgotten += 1,
        }
        if order != Order::Duplicate {
            self.remember(arrival);
        }
        order
    }

    fn order_of(&self, arrival: &Arrival) -> Order {
        let sequence = arrival.sequence;
        if self.recent.back().is_none_or(|last| last.highest < sequence) {
            return Order::InOrder;
        }
        // Its first copy cannot be before the packet that first reached its number.
        let reached = self.recent.partition_point(|recent| recent.highest < sequence);
        if self.recent.range(reached..).any(|recent| recent.arrival.sequence == sequence) {
            return Order::Duplicate;
        }
        if self.forgotten_until.is_some_and(|highest| highest >= sequence) {
            return Order::Forgotten;
        }
        // The first arrival sent later is also the first at which the highest number exceeds this one.
        match self.recent.get(reached) {
            Some(first) => Order::Reordered(self.lateness(arrival, reached, first.arrival.time)),
            None => Order::InOrder,
        }
    }

    fn lateness(&self, late: &Arrival, first: usize, overtaken_at: Time<Utc>) -> Lateness {
        let sent_later = |recent: &&Recent| recent.arrival.sequence > late.sequence;
        let since = self.recent.range(first..);
        Lateness {
            extent: since.len() as u64,
            time: late.time - overtaken_at,
            bytes: since.clone().filter(sent_later).map(|it| u64::from(it.arrival.bytes)).sum(),
            n_reordering: since.rev().take_while(sent_later).count() as u64,
        }
    }

    fn count_reordered(&mut self, lateness: Lateness) {
        self.counts.reordered += 1;
        self.free_runs.record(false);
        // The extent counts back from the end of the window to the discontinuity.
        let first = self.recent.len() as u64 - lateness.extent;
        if let Some(first) = usize::try_from(first).ok().and_then(|it| self.recent.get(it)) {
            let place = self.gone + self.recent.len() as u64 - lateness.extent;
            self.discontinuities.record(place, first.arrival.time);
        }
        self.extents.record(lateness.extent);
        self.late_times.record(lateness.time);
        self.byte_offsets.record(lateness.bytes);
        // It fits, because it counts packets in the window.
        let n = usize::try_from(lateness.n_reordering).unwrap_or(usize::MAX);
        if self.by_n.len() <= n {
            self.by_n.resize(n + 1, 0);
        }
        self.by_n[n] += 1;
    }

    fn remember(&mut self, arrival: Arrival) {
        let highest =
            self.recent.back().map_or(arrival.sequence, |last| last.highest.max(arrival.sequence));
        if self.recent.len() >= self.window
            && let Some(oldest) = self.recent.pop_front()
        {
            self.forgotten_until = Some(oldest.highest);
            self.gone += 1;
        }
        self.recent.push_back(Recent { arrival, highest });
    }

    /// Adds the figures of another stream, but not its window: this stream continues unchanged.
    pub fn merge(&mut self, other: &Self) {
        let OrderCounts { in_order, reordered, duplicated, forgotten } = other.counts;
        self.counts.in_order += in_order;
        self.counts.reordered += reordered;
        self.counts.duplicated += duplicated;
        self.counts.forgotten += forgotten;
        self.extents.merge(&other.extents);
        self.late_times.merge(&other.late_times);
        self.byte_offsets.merge(&other.byte_offsets);
        self.discontinuities.merge(&other.discontinuities);
        self.free_runs.merge(&other.free_runs);
        if self.by_n.len() < other.by_n.len() {
            self.by_n.resize(other.by_n.len(), 0);
        }
        self.by_n.iter_mut().zip(&other.by_n).for_each(|(count, more)| *count += more);
    }

    /// Ratio of reordered packets to packets received (RFC 4737 section 4.1), 0 to 1; without duplicates and forgotten
    /// packets. `None` without packets.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let OrderCounts { in_order, reordered, .. } = self.counts;
        let all = in_order + reordered;
        (all > 0).then(|| count_to_f64(reordered) / count_to_f64(all))
    }

    /// Number of n-reordered packets (RFC 4737 section 5.3, m of definition 2), for `n` from 1; with 0, all reordered
    /// packets. With `n` = 3 these are the packets that TCP takes for lost, by three duplicate acknowledgements (RFC
    /// 5681 section 3.2).
    ///
    /// Excludes duplicates, as section 3.6 requires; section 5.2 would include them.
    #[must_use]
    pub fn n_reordered(&self, n: usize) -> u64 {
        self.by_n.iter().skip(n).sum()
    }
}
