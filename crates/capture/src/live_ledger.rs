//! The account of a capture while it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Ledger;
use crate::interface::Interface;
use crate::receiver::KernelCounts;

/// The ledger of a running capture, for others to look at: nobody waits for anybody.
///
/// Its lines come from different threads, some of them milliseconds later than others, so that it need
/// not balance before the end.
#[derive(Debug)]
pub struct LiveLedger {
    interface: Arc<Interface>,
    /// What the interface had dropped before.
    dropped_before: u64,
    /// What the acquiring threads read from the kernel, added up.
    seen: AtomicU64,
    kernel_dropped: AtomicU64,
    stamped_late: AtomicU64,
    fill_ring_empty: AtomicU64,
    /// What the consumer counts.
    filtered: AtomicU64,
    surplus: AtomicU64,
    consumer_dropped: AtomicU64,
    delivered: AtomicU64,
    out_of_order: AtomicU64,
}

impl LiveLedger {
    /// That of a capture on `interface`, which had dropped so many packets before.
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

    /// The lines as they are now. Nothing counts as left behind before the end.
    #[must_use]
    pub fn glance(&self) -> Ledger {
        let line = |line: &AtomicU64| line.load(Ordering::Relaxed);
        let dropped = self.interface.dropped().unwrap_or(self.dropped_before);
        Ledger {
            interface_dropped: dropped.saturating_sub(self.dropped_before),
            seen: line(&self.seen),
            kernel_dropped: line(&self.kernel_dropped),
            left_behind: 0,
            filtered: line(&self.filtered),
            surplus: line(&self.surplus),
            consumer_dropped: line(&self.consumer_dropped),
            delivered: line(&self.delivered),
            fill_ring_empty: line(&self.fill_ring_empty),
            stamped_late: line(&self.stamped_late),
            out_of_order: line(&self.out_of_order),
        }
    }

    /// Adds what the kernel has counted for one receiver since its last reading.
    pub(crate) fn add(&self, before: KernelCounts, now: KernelCounts) {
        let add = |line: &AtomicU64, before: u64, now: u64| {
            line.fetch_add(now.saturating_sub(before), Ordering::Relaxed);
        };
        add(&self.seen, before.seen, now.seen);
        add(&self.kernel_dropped, before.dropped, now.dropped);
        add(&self.stamped_late, before.stamped_late, now.stamped_late);
        add(&self.fill_ring_empty, before.fill_ring_empty, now.fill_ring_empty);
    }

    /// Shows the lines of the consumer.
    pub(crate) fn show(&self, ledger: &Ledger) {
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
    fn every_line_is_shown_and_those_of_several_receivers_are_added_up() {
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
        live.show(&consumed);
        let kernel = Ledger { seen: 19, kernel_dropped: 4, stamped_late: 6, ..consumed };
        let expected = Ledger { fill_ring_empty: 2, ..kernel };
        assert_eq!(Ledger { interface_dropped: 0, ..live.glance() }, expected);
    }
}
