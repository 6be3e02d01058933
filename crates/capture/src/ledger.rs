//! Where every packet of a capture went.

use serde::{Deserialize, Serialize};

/// The account of a capture. Each packet that the kernel had for us is in exactly one of the
/// outcomes, which [`Ledger::balances`] checks; what the interface itself dropped never got that
/// far and stands apart.
///
/// The queues between our own threads have no line, because nothing is lost there: a thread that
/// finds no room leaves packets in the kernel's ring or queue, until that is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ledger {
    /// Packets that the interface dropped, for whomever they were meant: those that its driver or
    /// the kernel's backlog had no room for, and, where no packet socket takes them, packets of a
    /// protocol that this machine does not know. Counted by the kernel: `drop` of `/proc/net/dev`.
    /// Some drivers, veth among them, count here too what AF_XDP dropped: then it is in
    /// `kernel_dropped` as well.
    pub interface_dropped: u64,
    /// Packets that reached the receiver: those that passed the filter, where the kernel applies
    /// it, and all of the interface's otherwise. Counted by the kernel (`PACKET_STATISTICS`,
    /// packet(7)), or by the XDP program.
    pub seen: u64,
    /// Dropped because the ring or queue between the kernel and us was full. Counted by the kernel
    /// (`PACKET_STATISTICS`; for AF_XDP `XDP_STATISTICS`), or by the XDP program that found no room
    /// in its ring buffer.
    pub kernel_dropped: u64,
    /// Left in the ring or queue when the capture ended, because the kernel did not hand them over
    /// in time: what reached the receiver, less what was dropped and what the acquiring threads
    /// counted.
    pub left_behind: u64,
    /// Refused by the filter where we apply it, not the kernel. This one and those below are
    /// counted by the consumer, unless they say otherwise.
    pub filtered: u64,
    /// Arrived after the count that was asked for.
    pub surplus: u64,
    /// Lost because the consumer had failed, for instance when the disk was full.
    pub consumer_dropped: u64,
    /// Handed to the consumer: written, correlated, counted.
    pub delivered: u64,
    /// Of those dropped by the kernel, packets that came while all memory was out on loan, so that
    /// they found AF_XDP's fill ring empty; before Linux 6.6, those too that no chunk of it is
    /// large enough for. Counted by the kernel (`XDP_STATISTICS`). The receive ring has room for
    /// all of that memory, so that it is never the one that is full.
    pub fill_ring_empty: u64,
    /// Packets that were stamped later than asked for: with kernel stamps those that the kernel stamped
    /// when it copied them to us, which method `libpcap` cannot tell, so that it has none here; with
    /// stamps of the network card those that it did not stamp, such as all that this machine sends:
    /// they have the kernel's stamp, or that of an XDP program. With an XDP program those that came
    /// without its stamp. Counted by the acquiring threads.
    pub stamped_late: u64,
    /// Packets that were handed to the consumer after one with a later stamp.
    pub out_of_order: u64,
}

impl Ledger {
    /// Packets that should have been captured and were not.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.kernel_dropped + self.left_behind + self.consumer_dropped
    }

    /// Whether every packet seen has been accounted for.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.seen
            == self.kernel_dropped
                + self.left_behind
                + self.filtered
                + self.surplus
                + self.consumer_dropped
                + self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_is_in_no_outcome_upsets_the_balance() {
        let whole = Ledger { seen: 10, kernel_dropped: 3, delivered: 7, ..Ledger::default() };
        assert!(whole.balances());
        assert_eq!(whole.lost(), 3);
        assert!(!Ledger { delivered: 6, ..whole }.balances());
    }

    #[test]
    fn each_outcome_takes_a_packet_once_and_three_of_them_are_losses() {
        let one = Ledger { seen: 1, ..Ledger::default() };
        let losses = [
            Ledger { kernel_dropped: 1, ..one },
            Ledger { left_behind: 1, ..one },
            Ledger { consumer_dropped: 1, ..one },
        ];
        let others = [
            Ledger { filtered: 1, ..one },
            Ledger { surplus: 1, ..one },
            Ledger { delivered: 1, ..one },
        ];
        assert!(losses.iter().all(|ledger| ledger.balances() && ledger.lost() == 1));
        assert!(others.iter().all(|ledger| ledger.balances() && ledger.lost() == 0));
    }
}
