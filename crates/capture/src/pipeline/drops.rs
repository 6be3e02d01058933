//! Monitors the kernel's drop counts: the difference of two readings is the number of drops between them.

use std::io;
use std::mem;
use std::time::{Duration, Instant};

use wirestamp_clock::{Span, Time, Utc};

use super::now;
use crate::CaptureLoss;
use crate::live_ledger::LiveLedger;
use crate::receiver::{KernelCounts, Receiver};

/// Interval of readings while packets arrive. A hundred system calls a second cost little, and 10 ms are short
/// compared with the packet timeout of a measurement.
const INTERVAL: Duration = Duration::from_millis(10);

/// Max time from the stamp of a packet to its drop. The kernel stamps on arrival, and may keep a packet in its
/// backlog for one round of receiving: two ticks of its timer (`netdev_budget_usecs`,
/// `Documentation/admin-guide/sysctl/net.rst`), which are 8 ms at 250 Hz.
pub(super) const STAMPED_BEFORE: Span = Span::from_millis(10);

/// Reads a receiver's counts and collects drops.
pub(super) struct DropMonitor<'a> {
    /// The ledger that other threads read.
    live: &'a LiveLedger,
    counts: KernelCounts,
    /// Start of the last reading: its counts include all earlier drops.
    reading_start: Time<Utc>,
    last: Instant,
    /// Drops not yet reported, for lack of room.
    unreported: Option<CaptureLoss>,
}

impl<'a> DropMonitor<'a> {
    /// A monitor of a receiver that was opened after `opened`.
    pub(super) fn since(opened: Time<Utc>, live: &'a LiveLedger) -> Self {
        let counts = KernelCounts::default();
        Self { live, counts, reading_start: opened, last: Instant::now(), unreported: None }
    }

    /// Whether it is time to read the counts again.
    pub(super) fn is_due(&self) -> bool {
        self.last.elapsed() >= INTERVAL
    }

    /// Reads the counts.
    pub(super) fn read(&mut self, receiver: &mut impl Receiver) -> io::Result<()> {
        self.last = Instant::now();
        let reading_start = now();
        let counts = receiver.counts()?;
        self.record(reading_start, counts, now());
        Ok(())
    }

    /// Passes unreported drops to `report`, which returns them if it has no room.
    pub(super) fn report(&mut self, report: impl FnOnce(CaptureLoss) -> Result<(), CaptureLoss>) {
        self.unreported = self.unreported.take().and_then(|missed| report(missed).err());
    }

    /// Extends the unreported interval to now. All frames that arrived before the counts were read are stamped by
    /// now. Where stamps are taken after arrival, frames that arrived before the drops may have later stamps.
    pub(super) fn extend_to_now(&mut self) {
        if let Some(unreported) = &mut self.unreported {
            unreported.until = unreported.until.max(now());
        }
    }

    /// Records a reading. The additional packets were dropped between the start of the previous reading and the end
    /// of this one, even if the system clock was set in between.
    fn record(&mut self, reading_start: Time<Utc>, counts: KernelCounts, ended: Time<Utc>) {
        let before = mem::replace(&mut self.counts, counts);
        self.live.add(before, counts);
        let earlier = mem::replace(&mut self.reading_start, reading_start);
        let packets = counts.dropped.saturating_sub(before.dropped);
        if packets > 0 {
            let from = earlier.min(ended) - STAMPED_BEFORE;
            let missed = CaptureLoss { from, until: earlier.max(ended), packets };
            self.unreported =
                Some(self.unreported.map_or(missed, |unreported| unreported.and(missed)));
        }
    }

    /// Start of the last reading, and the number of frames that had arrived by then and were not dropped.
    pub(super) fn arrived(&self) -> (Time<Utc>, u64) {
        (self.reading_start, self.counts.seen.saturating_sub(self.counts.dropped))
    }

    /// The counts at the last reading.
    pub(super) fn counts(&self) -> KernelCounts {
        self.counts
    }

    /// Drops not yet reported.
    pub(super) fn unreported(self) -> Option<CaptureLoss> {
        self.unreported
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::interface::Interface;

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    fn live() -> LiveLedger {
        LiveLedger::new(Arc::new(Interface::open("lo").unwrap()), 0)
    }

    fn dropped(dropped: u64) -> KernelCounts {
        KernelCounts { dropped, ..KernelCounts::default() }
    }

    #[test]
    fn drops_lie_between_two_readings() {
        let live = live();
        let mut drops = DropMonitor::since(at(100), &live);
        drops.record(at(110), dropped(0), at(111));
        assert_eq!(drops.unreported, None);
        drops.record(at(120), dropped(7), at(121));
        let missed = CaptureLoss { from: at(110) - STAMPED_BEFORE, until: at(121), packets: 7 };
        assert_eq!(drops.unreported.take(), Some(missed));
        drops.record(at(130), dropped(7), at(131));
        assert_eq!(drops.unreported(), None);
    }

    #[test]
    fn unreported_drops_join_the_next_interval() {
        let live = live();
        let mut drops = DropMonitor::since(at(100), &live);
        drops.record(at(110), dropped(2), at(111));
        drops.record(at(120), dropped(2), at(121));
        drops.record(at(130), dropped(5), at(131));
        let missed = CaptureLoss { from: at(100) - STAMPED_BEFORE, until: at(131), packets: 5 };
        assert_eq!(drops.unreported(), Some(missed));
    }

    #[test]
    fn clock_set_back_keeps_interval_valid() {
        let live = live();
        let mut drops = DropMonitor::since(at(5000), &live);
        drops.record(at(1000), dropped(1), at(1001));
        let missed = CaptureLoss { from: at(1001) - STAMPED_BEFORE, until: at(5000), packets: 1 };
        assert_eq!(drops.unreported(), Some(missed));
    }

    proptest! {
        #[test]
        fn every_drop_is_in_exactly_one_interval(
            drops in prop::collection::vec((1..20_i64, any::<bool>()), 1..100),
        ) {
            let live = live();
            let mut monitor = DropMonitor::since(at(0), &live);
            let (mut now, mut count, mut waiting, mut reported) = (0, 0, Vec::new(), 0);
            for (gap, read) in drops {
                now += gap;
                count += 1;
                waiting.push(at(now));
                if read {
                    monitor.record(at(now + 1), dropped(count), at(now + 1));
                    now += 1;
                    let missed = monitor.unreported.take().unwrap();
                    prop_assert_eq!(missed.packets, waiting.len() as u64);
                    prop_assert!(waiting.drain(..).all(|it| missed.from <= it && it <= missed.until));
                    reported += missed.packets;
                }
            }
            prop_assert_eq!(reported + waiting.len() as u64, count);
        }
    }
}
