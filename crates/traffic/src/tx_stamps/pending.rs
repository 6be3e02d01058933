//! Packets that were sent and whose stamps are not all there.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use wirestamp_clock::{Time, Utc};

use super::{PerKind, StampKind, StampQueue};
use crate::Sent;

/// How many packets are waited for at a time. The next one has the oldest given up: its stamps
/// were lost, or come too late.
const WINDOW: usize = 4096;

/// Packets in the order in which they were sent, the oldest first.
#[derive(Debug)]
pub(crate) struct Pending {
    wanted: PerKind<bool>,
    sent: VecDeque<Sent>,
    /// The kernel's number of the oldest packet.
    first: u32,
    /// How many of the packets, from the oldest on, the kernel's numbers are known of.
    numbered: usize,
    /// Whether the next packet's will be.
    counts: bool,
}

impl Pending {
    /// Waits for the kinds of stamps that `queue` was asked for; for none, if there is no queue.
    pub(crate) fn new(queue: Option<&StampQueue>) -> Self {
        let wants = |kind| queue.is_some_and(|queue| queue.unavailable().of(kind).is_none());
        let wanted = PerKind::each(wants);
        Self { wanted, sent: VecDeque::new(), first: 0, numbered: 0, counts: true }
    }

    /// Adds a packet that the kernel took.
    pub(crate) fn push(&mut self, sent: Sent) {
        self.sent.push_back(sent);
        self.numbered += usize::from(self.counts);
    }

    /// The kernel refused a packet, and has not taken the last so many of those added. It does not
    /// say whether it had numbered it by then, so that the numbers of these and of all later ones
    /// are not known: they get no stamps.
    pub(crate) fn refused(&mut self, not_taken: usize) {
        if self.counts {
            self.numbered = self.numbered.saturating_sub(not_taken);
        }
        self.counts = false;
    }

    /// Whether as many packets wait as may.
    pub(crate) fn is_full(&self) -> bool {
        self.sent.len() > WINDOW
    }

    /// Whether stamps are still to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.sent.iter().take(self.numbered).any(|sent| !self.has_all(sent))
    }

    fn has_all(&self, sent: &Sent) -> bool {
        let has = |kind| !self.wanted.of(kind) || sent.stamps.of(kind).is_some();
        StampKind::ALL.into_iter().all(has)
    }

    /// Takes one stamp off the queue; false if it is empty.
    pub(crate) fn take(
        &mut self,
        queue: &mut StampQueue,
        socket: BorrowedFd<'_>,
    ) -> io::Result<bool> {
        queue.take(socket, |report| self.stamp(report.number, report.kind, report.time))
    }

    fn stamp(&mut self, number: u32, kind: StampKind, time: Time<Utc>) {
        let nth = usize::try_from(number.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        if nth < self.numbered {
            *self.sent[nth].stamps.of_mut(kind) = Some(time);
        }
    }

    /// Lets go of the oldest packets: of those that have all their stamps, of those that get none,
    /// and of one too many; but of none of the last `not_taken`, which the kernel has not taken.
    pub(crate) fn settle(&mut self, not_taken: usize, mut on_sent: impl FnMut(&Sent)) {
        while self.sent.len() > not_taken {
            let Some(oldest) = self.sent.front() else { break };
            if self.numbered > 0 && !self.has_all(oldest) && !self.is_full() {
                break;
            }
            on_sent(oldest);
            self.forget_oldest();
        }
    }

    /// Lets go of all packets. The last `not_taken` were not sent.
    pub(crate) fn give_up(&mut self, not_taken: usize, on_sent: impl FnMut(&Sent)) {
        let taken = self.sent.len().saturating_sub(not_taken);
        self.sent.iter().take(taken).for_each(on_sent);
        self.sent.clear();
        self.numbered = 0;
    }

    fn forget_oldest(&mut self) {
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

    fn pending(first: u32) -> Pending {
        let wanted = PerKind { sched: true, software: true, hardware: false };
        Pending { wanted, first, ..Pending::new(None) }
    }

    fn sent(sequence: u64) -> Sent {
        let time = Time::from_nanos(0);
        let (pacing_error, stamps) = (Span::ZERO, TxStamps::default());
        Sent { stream: 1, sequence, intended: time, actual: time, pacing_error, stamps }
    }

    fn settled(pending: &mut Pending) -> Vec<u64> {
        let mut sequences = Vec::new();
        pending.settle(0, |sent| sequences.push(sent.sequence));
        sequences
    }

    #[test]
    fn packets_go_in_order_when_all_their_stamps_are_there() {
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
        pending.give_up(0, |sent| assert_eq!(sent.stamps, TxStamps::default()));
        assert!(!pending.is_waiting());
    }

    #[test]
    fn packets_behind_a_refused_one_are_not_waited_for_and_not_stamped() {
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
    fn a_lost_stamp_holds_up_no_more_than_a_window() {
        let mut pending = pending(0);
        (0..4097).for_each(|sequence| pending.push(sent(sequence)));
        assert!(pending.is_full());
        assert_eq!(settled(&mut pending), [0]);
        assert!(!pending.is_full());
    }

    #[test]
    fn what_the_kernel_has_not_taken_is_not_reported_as_sent() {
        let mut pending = Pending::new(None);
        (0..3).for_each(|sequence| pending.push(sent(sequence)));
        let mut sequences = Vec::new();
        pending.settle(2, |sent| sequences.push(sent.sequence));
        pending.give_up(1, |sent| sequences.push(sent.sequence));
        assert_eq!(sequences, [0, 1]);
    }

    #[test]
    fn without_stamps_to_wait_for_packets_go_at_once() {
        let mut pending = Pending::new(None);
        pending.push(sent(0));
        assert!(!pending.is_waiting());
        assert_eq!(settled(&mut pending), [0]);
    }
}
