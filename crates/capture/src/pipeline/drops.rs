//! When the kernel dropped packets: its counts are read in passing, and what they have grown by was
//! dropped between two readings.

use std::io;
use std::mem;
use std::time::{Duration, Instant};

use wirestamp_clock::{Span, Time, Utc};

use super::now;
use crate::CaptureLoss;
use crate::live_ledger::LiveLedger;
use crate::receiver::{KernelCounts, Receiver};

/// How often the counts are read while packets come: a hundred system calls a second are not felt,
/// and a stretch of 10 ms is short beside the time that a measurement waits for a packet.
const INTERVAL: Duration = Duration::from_millis(10);

/// How long before it was dropped a packet may have been stamped: the kernel stamps on arrival, and
/// may keep the packet in its backlog for as long as a round of receiving takes, two ticks of its timer
/// (`netdev_budget_usecs`, `Documentation/admin-guide/sysctl/net.rst`), which are 8 ms at 250 Hz.
pub(super) const STAMPED_BEFORE: Span = Span::from_millis(10);

/// Reads a receiver's counts.
pub(super) struct Drops<'a> {
    /// Where others look at the counts.
    live: &'a LiveLedger,
    counts: KernelCounts,
    /// When the last reading began: what was dropped before is in it.
    begun: Time<Utc>,
    last: Instant,
    /// What nobody had room to be told of.
    untold: Option<CaptureLoss>,
}

impl<'a> Drops<'a> {
    /// Those of a receiver that was opened after `opened`.
    pub(super) fn since(opened: Time<Utc>, live: &'a LiveLedger) -> Self {
        let counts = KernelCounts::default();
        Self { live, counts, begun: opened, last: Instant::now(), untold: None }
    }

    /// Whether the counts are to be read again.
    pub(super) fn is_due(&self) -> bool {
        self.last.elapsed() >= INTERVAL
    }

    /// Reads the counts.
    pub(super) fn read(&mut self, receiver: &mut impl Receiver) -> io::Result<()> {
        self.last = Instant::now();
        let begun = now();
        let counts = receiver.counts()?;
        self.note(begun, counts, now());
        Ok(())
    }

    /// What was dropped goes to `tell`, which gives back what it has no room for.
    pub(super) fn tell(&mut self, tell: impl FnOnce(CaptureLoss) -> Result<(), CaptureLoss>) {
        self.untold = self.untold.take().and_then(|missed| tell(missed).err());
    }

    /// All frames that arrived before the counts were read have been stamped by now: where stamps are
    /// taken after the arrival, those of frames from before the drops may be later than the drops.
    pub(super) fn stamped(&mut self) {
        if let Some(untold) = &mut self.untold {
            untold.until = untold.until.max(now());
        }
    }

    /// Takes note of a reading. What it has more than the one before was dropped after that one had
    /// begun and before this one ended, whichever way the system clock was set meanwhile.
    fn note(&mut self, begun: Time<Utc>, counts: KernelCounts, ended: Time<Utc>) {
        let before = mem::replace(&mut self.counts, counts);
        self.live.add(before, counts);
        let earlier = mem::replace(&mut self.begun, begun);
        let packets = counts.dropped.saturating_sub(before.dropped);
        if packets > 0 {
            let from = earlier.min(ended) - STAMPED_BEFORE;
            let missed = CaptureLoss { from, until: earlier.max(ended), packets };
            self.untold = Some(self.untold.map_or(missed, |untold| untold.and(missed)));
        }
    }

    /// When the last reading began, and how many frames had arrived by then that were not dropped.
    pub(super) fn arrived(&self) -> (Time<Utc>, u64) {
        (self.begun, self.counts.seen.saturating_sub(self.counts.dropped))
    }

    /// The counts at the last reading.
    pub(super) fn counts(&self) -> KernelCounts {
        self.counts
    }

    /// What nobody has been told of yet.
    pub(super) fn untold(self) -> Option<CaptureLoss> {
        self.untold
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
    fn drops_lie_between_the_beginning_of_one_reading_and_the_end_of_the_next() {
        let live = live();
        let mut drops = Drops::since(at(100), &live);
        drops.note(at(110), dropped(0), at(111));
        assert_eq!(drops.untold, None);
        drops.note(at(120), dropped(7), at(121));
        let missed = CaptureLoss { from: at(110) - STAMPED_BEFORE, until: at(121), packets: 7 };
        assert_eq!(drops.untold.take(), Some(missed));
        drops.note(at(130), dropped(7), at(131));
        assert_eq!(drops.untold(), None);
    }

    #[test]
    fn what_there_was_no_room_to_tell_is_told_with_the_next() {
        let live = live();
        let mut drops = Drops::since(at(100), &live);
        drops.note(at(110), dropped(2), at(111));
        drops.note(at(120), dropped(2), at(121));
        drops.note(at(130), dropped(5), at(131));
        let missed = CaptureLoss { from: at(100) - STAMPED_BEFORE, until: at(131), packets: 5 };
        assert_eq!(drops.untold(), Some(missed));
    }

    #[test]
    fn a_clock_that_was_set_back_leaves_a_stretch_that_ends_after_it_begins() {
        let live = live();
        let mut drops = Drops::since(at(5000), &live);
        drops.note(at(1000), dropped(1), at(1001));
        let missed = CaptureLoss { from: at(1001) - STAMPED_BEFORE, until: at(5000), packets: 1 };
        assert_eq!(drops.untold(), Some(missed));
    }

    proptest! {
        #[test]
        fn every_drop_is_in_one_stretch_that_covers_it(
            drops in prop::collection::vec((1..20_i64, any::<bool>()), 1..100),
        ) {
            let live = live();
            let mut watch = Drops::since(at(0), &live);
            let (mut now, mut count, mut waiting, mut told) = (0, 0, Vec::new(), 0);
            for (gap, read) in drops {
                now += gap;
                count += 1;
                waiting.push(at(now));
                if read {
                    watch.note(at(now + 1), dropped(count), at(now + 1));
                    now += 1;
                    let missed = watch.untold.take().unwrap();
                    prop_assert_eq!(missed.packets, waiting.len() as u64);
                    prop_assert!(waiting.drain(..).all(|it| missed.from <= it && it <= missed.until));
                    told += missed.packets;
                }
            }
            prop_assert_eq!(told + waiting.len() as u64, count);
        }
    }
}
