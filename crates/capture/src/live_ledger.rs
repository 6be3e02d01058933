//! The ledger of a running capture.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Ledger;
use crate::interface::Interface;
use crate::receiver::KernelCounts;

/// Ledger of a running capture that other threads can read without locks.
///
/// Its counts come from several threads, some of them milliseconds later than others: it balances only at the end.
#[derive(Debug)]
pub struct LiveLedger {
    interface: Arc<Interface>,
    /// The interface's drop count when the capture was opened.
    dropped_before: u64,
    /// Sums over the acquiring threads, of counts read from the kernel.
    seen: AtomicU64,
    kernel_dropped: AtomicU64,
    stamped_late: AtomicU64,
    fill_ring_empty: AtomicU64,
    /// Counts of the consumer.
    filtered: AtomicU64,
    surplus: AtomicU64,
    consumer_dropped: AtomicU64,
    delivered: AtomicU64,
    out_of_order: AtomicU64,
}

impl LiveLedger {
    /// Ledger of a capture on `interface`, whose drop count was `dropped_before` when the capture was opened.
    pub(crate) fn new(interface: Arc<Interface>, dropped_before: u64) -> Self {
        let none = AtomicU64::default;
        Self {
            interface,
            dropped_before,
            seen: none(),
            kernel_dropped: none(),
            stamped_late: none(),
            fill_ring_empty: none(),
            filtered: none(),
            surplus: none(),
            consumer_dropped: none(),
            delivered: none(),
            out_of_order: none(),
        }
    }

    /// The current counts. `left_behind` stays 0 until the end.
    #[must_use]
    pub fn snapshot(&self) -> Ledger {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let dropped = self.interface.dropped().unwrap_or(self.dropped_before);
        Ledger {
            interface_dropped: dropped.saturating_sub(self.dropped_before),
            seen: count(&self.seen),
            kernel_dropped: count(&self.kernel_dropped),
            left_behind: 0,
            filtered: count(&self.filtered),
            surplus: count(&self.surplus),
            consumer_dropped: count(&self.consumer_dropped),
            delivered: count(&self.delivered),
            fill_ring_empty: count(&self.fill_ring_empty),
            stamped_late: count(&self.stamped_late),
            out_of_order: count(&self.out_of_order),
        }
    }

    /// Adds the growth of one receiver's kernel counts.
    pub(crate) fn add(&self, before: KernelCounts, now: KernelCounts) {
        let add = |line: &AtomicU64, before: u64, now: u64| {
            line.fetch_add(now.saturating_sub(before), Ordering::Relaxed);
        };
        add(&self.seen, before.seen, now.seen);
        add(&self.kernel_dropped, before.dropped, now.dropped);
        add(&self.stamped_late, before.stamped_late, now.stamped_late);
        add(&self.fill_ring_empty, before.fill_ring_empty, now.fill_ring_empty);
    }

    /// Publishes the consumer's counts.
    pub(crate) fn publish(&self, ledger: &Ledger) {
        self.filtered.store(ledger.filtered, Ordering::Relaxed);
        self.surplus.store(ledger.surplus, Ordering::Relaxed);
        self.consumer_dropped.store(ledger.consumer_dropped, Ordering::Relaxed);
        self.delivered.store(ledger.delivered, Ordering::Relaxed);
        self.out_of_order.store(ledger.out_of_order, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_several_receivers_are_added() {
        let interface = Arc::new(Interface::open("lo").unwrap());
        let before = interface.dropped().unwrap();
        let live = LiveLedger::new(interface, before);
        let none = KernelCounts::default();
        let counts = KernelCounts { seen: 9, dropped: 2, stamped_late: 3, fill_ring_empty: 1 };
        live.add(none, counts);
        live.add(counts, KernelCounts { seen: 10, ..counts });
        live.add(none, counts);
        let consumed = Ledger {
            filtered: 4,
            surplus: 5,
            consumer_dropped: 6,
            delivered: 7,
            out_of_order: 8,
            ..Ledger::default()
        };
        live.publish(&consumed);
        let kernel = Ledger { seen: 19, kernel_dropped: 4, stamped_late: 6, ..consumed };
        let expected = Ledger { fill_ring_empty: 2, ..kernel };
        assert_eq!(Ledger { interface_dropped: 0, ..live.snapshot() }, expected);
    }
}
