//! Statistics of foreign exporters.

use parking_lot::Mutex;

/// Datagrams, records and packets by outcome, since the collector started.
#[derive(Debug, Default)]
pub struct ExporterStats(Mutex<Counts>);

/// The counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Whether the collector listens for exporters.
    pub(super) is_listening: bool,
    /// Datagrams.
    pub(super) datagrams: u64,
    /// Datagrams from addresses that no task names.
    pub(super) strangers: u64,
    /// Datagrams that are not IPFIX messages.
    pub(super) malformed: u64,
    /// Messages of domains that no task names.
    pub(super) other_domains: u64,
    /// Messages of exporters whose clock is more than a minute ahead.
    pub(super) ahead: u64,
    /// Messages with which an exporter's clock was set back.
    pub(super) set_back: u64,
    /// Duplicate messages.
    pub(super) copies: u64,
    /// Sets that could not be decoded: no template, a wrong one, or a truncated set.
    pub(super) unread_sets: u64,
    /// Records lost, by sequence numbers.
    pub(super) missed: u64,
    /// Records without a packet.
    pub(super) no_packets: u64,
    /// Packets observed before the settled time, or after their report.
    pub(super) out_of_time: u64,
    /// Packets dropped because the other point of their path was behind.
    pub(super) dropped: u64,
    /// Packets taken.
    pub(super) packets: u64,
}

impl ExporterStats {
    /// The counters by name; empty if the collector does not listen for exporters.
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = *self.0.lock();
        if !counts.is_listening {
            return Vec::new();
        }
        vec![
            ("datagrams", counts.datagrams),
            ("datagrams-from-strangers", counts.strangers),
            ("datagrams-malformed", counts.malformed),
            ("messages-of-other-domains", counts.other_domains),
            ("messages-ahead-of-time", counts.ahead),
            ("clocks-set-back", counts.set_back),
            ("messages-twice", counts.copies),
            ("sets-unread", counts.unread_sets),
            ("records-missed", counts.missed),
            ("records-of-no-packet", counts.no_packets),
            ("packets-out-of-time", counts.out_of_time),
            ("packets-given-up", counts.dropped),
            ("packets-taken", counts.packets),
        ]
    }

    pub(super) fn publish(&self, counts: Counts) {
        *self.0.lock() = counts;
    }
}
