//! Where every packet went that was to be followed.

use serde::{Deserialize, Serialize};

/// The account of a measurement. Each packet that passed the filter is in exactly one of the
/// outcomes, which [`LayersLedger::balances`] checks. What happened to it in the host is another
/// matter, which its journey tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayersLedger {
    /// Packets that came to the first point and passed the filter. Counted by the BPF program, as the
    /// next two.
    pub seen: u64,
    /// Not followed, because 65,536 were followed already.
    pub untracked: u64,
    /// Followed to their end, for which there was no room in the ring buffer.
    pub dropped: u64,
    /// Followed beyond the count that was asked for, or after the consumer had failed.
    pub surplus: u64,
    /// Handed to the consumer, those among them whose journey had not ended.
    pub delivered: u64,
    /// Times that a BPF program did not run, because it was running on that core already and was
    /// interrupted. Each may be a point or an end, of any packet, that is missing. Counted by the
    /// kernel (`recursion_misses` of linux/bpf.h).
    pub skipped: u64,
}

impl LayersLedger {
    /// Packets that should have been followed and of which nothing is known.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.untracked + self.dropped
    }

    /// Whether every packet seen has been accounted for.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.seen == self.untracked + self.dropped + self.surplus + self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_is_in_no_outcome_upsets_the_balance() {
        let whole = LayersLedger {
            seen: 10,
            untracked: 1,
            dropped: 2,
            surplus: 3,
            delivered: 4,
            skipped: 5,
        };
        assert!(whole.balances());
        assert_eq!(whole.lost(), 3);
        assert!(!LayersLedger { delivered: 5, ..whole }.balances());
    }
}
