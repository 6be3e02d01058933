//! Reordering of one stream, as RFC 4737 defines it.

use std::collections::VecDeque;

use wirestamp_clock::{Span, Time, Utc};

use crate::distribution::count_to_f64;
use crate::{Distribution, Tally};

#[cfg(test)]
mod tests;

/// A packet of a stream, as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The packet's place in the order of sending, without wraps: numbers of a few bits are extended
    /// first, as [`crate::rtp::Sequence`] does. A sender that begins anew begins a new stream.
    pub sequence: u64,
    /// When it arrived.
    pub time: Time<Utc>,
    /// Its payload in bytes.
    pub bytes: u32,
}

/// What an arrival is in the order of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing that was sent later has arrived before it.
    InOrder,
    /// Something has: Type-P-Reordered is true (RFC 4737 section 3.3).
    Reordered(Lateness),
    /// One more copy of a packet in the window. Only the first copy has a place in the order.
    Duplicate,
    /// Older than the window: reordered or a duplicate, but which of them, and how late, can no
    /// longer be told.
    Forgotten,
}

/// How far a reordered packet came behind its place.
///
/// Extent and time are counted from the *earliest* arrival that was sent after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Reordering extent (RFC 4737 section 4.2): packets from that arrival to this one, at least 1.
    pub extent: u64,
    /// Late time offset (section 4.3): the time from that arrival to this one, which a buffer would
    /// have had to wait. Negative only where stamps go back.
    pub time: Span,
    /// Reordering byte offset (section 4.4): the payloads, in bytes, of all earlier arrivals that
    /// were sent after this packet, which a buffer would have had to hold.
    pub bytes: u64,
    /// The greatest n for which the packet is n-reordered (section 5.3): so many packets that
    /// arrived directly before it were all sent after it. 0 if the one just before was sent earlier:
    /// the packet is reordered, but not n-reordered for any n.
    pub n_reordering: u64,
}

/// How often each [`Order`] came up; their sum is the number of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Arrivals in order.
    pub in_order: u64,
    /// Reordered packets.
    pub reordered: u64,
    /// Copies beyond the first.
    pub duplicated: u64,
    /// Arrivals older than the window.
    pub forgotten: u64,
}

/// The reordering metrics of one stream (RFC 4737), over its packets as they arrive.
///
/// The last arrivals are kept in a window (section 6), whose size is chosen, at 40 bytes each: a
/// packet that comes later than that is counted as [`Order::Forgotten`] and is in no other figure,
/// but it has its place among the arrivals. A packet in order takes constant time, a reordered one
/// time in proportion to its extent.
#[derive(Clone, Debug)]
pub struct Reordering {
    window: usize,
    /// First copies in the order of arrival, the newest last.
    recent: VecDeque<Recent>,
    /// The highest sequence number up to the last arrival that left the window.
    forgotten_until: Option<u64>,
    counts: OrderCounts,
    extents: Tally,
    times: Distribution,
    bytes: Tally,
    /// Of each [`Lateness::n_reordering`], how many packets have it.
    by_n: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    arrival: Arrival,
    /// The highest sequence number of all arrivals up to this one; `NextExp` of RFC 4737 section 3.3
    /// is one more.
    highest: u64,
}

impl Reordering {
    /// Metrics of a stream that has not begun, with a window of so many arrivals; 0 is taken as 1.
    #[must_use]
    pub fn new(window: usize) -> Self {
        Self {
            window: window.max(1),
            recent: VecDeque::new(),
            forgotten_until: None,
            counts: OrderCounts::default(),
            extents: Tally::default(),
            times: Distribution::new(),
            bytes: Tally::default(),
            by_n: Vec::new(),
        }
    }

    /// Takes the next packet, in the order of arrival, and says what it is.
    pub fn record(&mut self, arrival: Arrival) -> Order {
        let order = self.order_of(&arrival);
        match order {
            Order::InOrder => self.counts.in_order += 1,
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
        // Wherever its first copy is, it is not before the packet that first reached its number.
        let reached = self.recent.partition_point(|recent| recent.highest < sequence);
        if self.recent.range(reached..).any(|recent| recent.arrival.sequence == sequence) {
            return Order::Duplicate;
        }
        if self.forgotten_until.is_some_and(|highest| highest >= sequence) {
            return Order::Forgotten;
        }
        // The first arrival sent later is also the first that made the highest number exceed it.
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
        self.extents.record(lateness.extent);
        self.times.record(lateness.time);
        self.bytes.record(lateness.bytes);
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
        }
        self.recent.push_back(Recent { arrival, highest });
    }

    /// How often each order came up.
    #[must_use]
    pub const fn counts(&self) -> &OrderCounts {
        &self.counts
    }

    /// The ratio of reordered packets to packets received (RFC 4737 section 4.1), 0 to 1; copies and
    /// forgotten packets are in neither. `None` without packets.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let OrderCounts { in_order, reordered, .. } = self.counts;
        let all = in_order + reordered;
        (all > 0).then(|| count_to_f64(reordered) / count_to_f64(all))
    }

    /// The extents of the reordered packets, in packets.
    #[must_use]
    pub const fn extents(&self) -> &Tally {
        &self.extents
    }

    /// The late time offsets of the reordered packets.
    #[must_use]
    pub const fn late_times(&self) -> &Distribution {
        &self.times
    }

    /// The byte offsets of the reordered packets.
    #[must_use]
    pub const fn byte_offsets(&self) -> &Tally {
        &self.bytes
    }

    /// How many packets are n-reordered (RFC 4737 section 5.3, m of definition 2), for `n` from 1 on;
    /// with 0, all reordered packets. With `n` = 3 these are the packets that TCP takes for lost, by
    /// three duplicate acknowledgements (RFC 5681 section 3.2).
    ///
    /// Copies are left out, as section 3.6 demands; section 5.2 lets them take part.
    #[must_use]
    pub fn n_reordered(&self, n: usize) -> u64 {
        self.by_n.iter().skip(n).sum()
    }
}
