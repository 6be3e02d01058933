//! The ledger of a layers measurement.

use serde::{Deserialize, Serialize};

/// Packet counts of a measurement. Each packet that passed the filter has exactly one outcome
/// ([`LayersLedger::balances`]). Its path in the host is in its journey.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LayersLedger {
    /// Packets that reached the first point and passed the filter. Counted by the BPF program, as the next two.
    pub seen: u64,
    /// Packets not followed, because 65,536 were already followed.
    pub untracked: u64,
    /// Packets followed to their end, without room in the ring buffer.
    pub dropped: u64,
    /// Packets beyond the requested count, or after the consumer failed.
    pub surplus: u64,
    /// Packets passed to the consumer, including those with an open journey.
    pub delivered: u64,
    /// Times that a BPF program did not run, because it was already running on that core and was interrupted. Each
    /// can cause a missing point or end of any packet. Counted by the kernel (`recursion_misses` of linux/bpf.h).
    pub skipped: u64,
}

impl LayersLedger {
    /// Packets that should have been followed, without any result.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.untracked + self.dropped
    }

    /// Whether each packet seen has exactly one outcome.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.seen == self.untracked + self.dropped + self.surplus + self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_outcome_breaks_balance() {
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
