//! The ledger of a capture: the outcome of each packet.

use serde::{Deserialize, Serialize};

/// Packet counts of a capture. Each packet that reached the receiver has exactly one outcome
/// ([`Ledger::balances`]). Packets that the interface dropped did not reach the receiver, and are counted
/// separately.
///
/// The queues between the pipeline's threads lose nothing: a thread that finds no room leaves packets in the
/// kernel's ring or queue until that is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Ledger {
    /// Packets that the interface dropped, for any receiver: no room in its driver or in the kernel's backlog, or,
    /// where no packet socket exists, a protocol that this machine does not support. Counted by the kernel: `drop`
    /// of `/proc/net/dev`. Some drivers, for example veth, also count AF_XDP drops here: those are in
    /// `kernel_dropped` too.
    pub interface_dropped: u64,
    /// Packets that reached the receiver: those that passed the filter where the kernel applies it, otherwise all
    /// of the interface's. Counted by the kernel (`PACKET_STATISTICS`, packet(7)), or by the XDP program.
    pub seen: u64,
    /// Packets dropped because the ring or queue between kernel and process was full. Counted by the kernel
    /// (`PACKET_STATISTICS`; for AF_XDP `XDP_STATISTICS`), or by the XDP program that found no room in its ring
    /// buffer.
    pub kernel_dropped: u64,
    /// Packets left in the ring or queue at the end of the capture, because the kernel did not return them in time:
    /// `seen` minus drops and the packets that the acquiring threads counted.
    pub left_behind: u64,
    /// Packets rejected by a filter that runs in this process. This count and those below are the consumer's,
    /// unless noted.
    pub filtered: u64,
    /// Packets beyond the requested count.
    pub surplus: u64,
    /// Packets lost because the consumer failed, for example on a full disk.
    pub consumer_dropped: u64,
    /// Packets delivered to the consumer: written, correlated, counted.
    pub delivered: u64,
    /// Packets of `kernel_dropped` that were dropped because AF_XDP's fill ring was empty: all memory was in use.
    /// Before Linux 6.6, also packets larger than a chunk. Counted by the kernel (`XDP_STATISTICS`). The receive ring
    /// has room for all of that memory, so it is never full.
    pub fill_ring_empty: u64,
    /// Packets stamped later than requested. With kernel stamps: stamped when the kernel copied them to the process
    /// (always 0 with method `libpcap`, which does not report it). With stamps of the network card: not stamped by
    /// the card, such as all outgoing packets; they have the kernel's stamp, or that of an XDP program. With an XDP
    /// program: without its stamp. Counted by the acquiring threads.
    pub stamped_late: u64,
    /// Packets delivered to the consumer after one with a later stamp.
    pub out_of_order: u64,
}

impl Ledger {
    /// Packets that the capture should have delivered and lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        // A ledger in a file may have any counts.
        let lost = self.kernel_dropped.saturating_add(self.left_behind);
        lost.saturating_add(self.consumer_dropped)
    }

    /// Whether each packet seen has exactly one outcome.
    #[must_use]
    pub fn balances(&self) -> bool {
        let outcomes = [self.filtered, self.surplus, self.delivered];
        self.seen == outcomes.into_iter().fold(self.lost(), u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_outcome_breaks_balance() {
        let whole = Ledger { seen: 10, kernel_dropped: 3, delivered: 7, ..Ledger::default() };
        assert!(whole.balances());
        assert_eq!(whole.lost(), 3);
        let wrong = Ledger { left_behind: u64::MAX, ..whole };
        assert_eq!((wrong.lost(), wrong.balances()), (u64::MAX, false));
        assert!(!Ledger { delivered: 6, ..whole }.balances());
    }

    #[test]
    fn three_of_six_outcomes_are_losses() {
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
