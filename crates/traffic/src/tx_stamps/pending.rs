//! Sent packets that wait for their transmit stamps.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use wirestamp_clock::{Time, Utc};

use super::{PerStampKind, StampKind, StampQueue};
use crate::SentPacket;

/// Max waiting packets. One more releases the oldest: its stamps were lost, or are too late.
const WINDOW: usize = 4096;

/// Sent packets, the oldest first.
#[derive(Debug)]
pub(crate) struct PendingStamps {
    expected: PerStampKind<bool>,
    sent: VecDeque<SentPacket>,
    /// The kernel's number of the oldest packet.
    first: u32,
    /// Number of packets, from the oldest, whose kernel numbers are known.
    numbered: usize,
    /// Whether the next packet's kernel number is known.
    counts: bool,
}

impl PendingStamps {
    /// Waits for the kinds of stamps that `queue` requested; for none without a queue.
    pub(crate) fn new(queue: Option<&StampQueue>) -> Self {
        let is_available = |kind| queue.is_some_and(|queue| queue.unavailable.of(kind).is_none());
        let expected = PerStampKind::each(is_available);
        Self { expected, sent: VecDeque::new(), first: 0, numbered: 0, counts: true }
    }

    /// Adds a packet that the kernel accepted.
    pub(crate) fn push(&mut self, sent: SentPacket) {
        self.sent.push_back(sent);
        self.numbered += usize::from(self.counts);
    }

    /// The kernel refused a packet, and has not taken the last `not_taken` added ones. It does not
    /// report whether it had numbered the refused packet. So the numbers of these and of all later
    /// packets are unknown: they get no stamps.
    pub(crate) fn refused(&mut self, not_taken: usize) {
        if self.counts {
            self.numbered = self.numbered.saturating_sub(not_taken);
        }
        self.counts = false;
    }

    /// Whether the max number of packets waits.
    pub(crate) fn is_full(&self) -> bool {
        self.sent.len() > WINDOW
    }

    /// Whether stamps are still expected.
    pub(crate) fn is_waiting(&self) -> bool {
        self.sent.iter().take(self.numbered).any(|sent| !self.has_all(sent))
    }

    fn has_all(&self, sent: &SentPacket) -> bool {
        let has = |kind| !self.expected.of(kind) || sent.stamps.of(kind).is_some();
        StampKind::ALL.into_iter().all(has)
    }

    /// Reads one stamp from the queue; false if it is empty.
    pub(crate) fn read_stamp(
        &mut self,
        queue: &mut StampQueue,
        socket: BorrowedFd<'_>,
    ) -> io::Result<bool> {
        queue.take(socket, |number, kind, time| self.stamp(number, kind, time))
    }

    fn stamp(&mut self, number: u32, kind: StampKind, time: Time<Utc>) {
        let nth = usize::try_from(number.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        if nth < self.numbered {
            *self.sent[nth].stamps.of_mut(kind) = Some(time);
        }
    }

    /// Releases the oldest packets that have all their stamps, get none, or exceed the max number;
    /// but none of the last `not_taken`, which the kernel has not taken.
    pub(crate) fn release_complete(
        &mut self,
        not_taken: usize,
        mut on_sent: impl FnMut(&SentPacket),
    ) {
        while self.sent.len() > not_taken {
            let Some(oldest) = self.sent.front() else { break };
            if self.numbered > 0 && !self.has_all(oldest) && !self.is_full() {
                break;
            }
            on_sent(oldest);
            self.remove_oldest();
        }
    }

    /// Releases all packets. The last `not_taken` were not sent.
    pub(crate) fn release_all(&mut self, not_taken: usize, on_sent: impl FnMut(&SentPacket)) {
        let taken = self.sent.len().saturating_sub(not_taken);
        self.sent.iter().take(taken).for_each(on_sent);
        self.sent.clear();
        self.numbered = 0;
    }

    fn remove_oldest(&mut self) {
        self.sent.pop_front();
        if self.numbered > 0 {
            self.numbered -= 1;
            self.first = self.first.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;

    use super::*;
    use crate::TxStamps;

    fn pending(first: u32) -> PendingStamps {
        let expected = PerStampKind { sched: true, software: true, hardware: false };
        PendingStamps { expected, first, ..PendingStamps::new(None) }
    }

    fn sent(sequence: u64) -> SentPacket {
        let time = Time::from_nanos(0);
        let (pacing_error, stamps) = (Span::ZERO, TxStamps::default());
        SentPacket { stream: 1, sequence, intended: time, actual: time, pacing_error, stamps }
    }

    fn settled(pending: &mut PendingStamps) -> Vec<u64> {
        let mut sequences = Vec::new();
        pending.release_complete(0, |sent| sequences.push(sent.sequence));
        sequences
    }

    #[test]
    fn packets_with_all_stamps_are_released_in_order() {
        let mut pending = pending(u32::MAX);
        (0..3).for_each(|sequence| pending.push(sent(sequence)));
        let time = Time::from_nanos(5);
        for (number, kind) in [(0, StampKind::Sched), (0, StampKind::Software)] {
            pending.stamp(number, kind, time);
        }
        pending.stamp(7, StampKind::Sched, time);
        assert!(settled(&mut pending).is_empty());
        pending.stamp(u32::MAX, StampKind::Software, time);
        pending.stamp(u32::MAX, StampKind::Sched, time);
        assert_eq!(settled(&mut pending), [0, 1]);
        assert!(pending.is_waiting());
        pending.release_all(0, |sent| assert_eq!(sent.stamps, TxStamps::default()));
        assert!(!pending.is_waiting());
    }

    #[test]
    fn packets_after_a_refused_one_get_no_stamps() {
        let mut pending = pending(0);
        (0..2).for_each(|sequence| pending.push(sent(sequence)));
        pending.refused(1);
        pending.refused(1);
        pending.push(sent(2));
        let time = Time::from_nanos(5);
        for number in [0, 1, 2] {
            pending.stamp(number, StampKind::Sched, time);
            pending.stamp(number, StampKind::Software, time);
        }
        let stamped = pending.sent.iter().map(|sent| sent.stamps.sched.is_some());
        assert_eq!(stamped.collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(settled(&mut pending), [0, 1, 2]);
    }

    #[test]
    fn lost_stamp_delays_at_most_one_window() {
        let mut pending = pending(0);
        (0..4097).for_each(|sequence| pending.push(sent(sequence)));
        assert!(pending.is_full());
        assert_eq!(settled(&mut pending), [0]);
        assert!(!pending.is_full());
    }

    #[test]
    fn untaken_packets_are_not_reported_as_sent() {
        let mut pending = PendingStamps::new(None);
        (0..3).for_each(|sequence| pending.push(sent(sequence)));
        let mut sequences = Vec::new();
        pending.release_complete(2, |sent| sequences.push(sent.sequence));
        pending.release_all(1, |sent| sequences.push(sent.sequence));
        assert_eq!(sequences, [0, 1]);
    }

    #[test]
    fn packets_without_stamps_are_released_at_once() {
        let mut pending = PendingStamps::new(None);
        pending.push(sent(0));
        assert!(!pending.is_waiting());
        assert_eq!(settled(&mut pending), [0]);
    }
}
