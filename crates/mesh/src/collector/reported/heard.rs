//! What was made of all that came.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many datagrams, records and packets there were of a kind, since the collector was started.
#[derive(Debug, Default)]
pub struct Heard(Mutex<Counts>);

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Somebody listens.
    pub(super) is_listening: bool,
    /// Datagrams.
    pub(super) datagrams: u64,
    /// Datagrams from an address that no task names.
    pub(super) strangers: u64,
    /// Datagrams that are no messages.
    pub(super) malformed: u64,
    /// Messages of a domain that no task names.
    pub(super) other_domains: u64,
    /// Messages whose exporter's clock is more than a minute ahead.
    pub(super) ahead: u64,
    /// Messages by which their exporter's clock was set back.
    pub(super) set_back: u64,
    /// Messages that had come before.
    pub(super) copies: u64,
    /// Sets of records that could not be read: no template was known, or it was none, or they were cut off.
    pub(super) unread_sets: u64,
    /// Records that did not come, by the sequence numbers.
    pub(super) missed: u64,
    /// Records that report no packet.
    pub(super) no_packets: u64,
    /// Packets that were observed before what was settled, or after they were reported.
    pub(super) out_of_time: u64,
    /// Packets that there was no room for, while the other point of their path was behind.
    pub(super) given_up: u64,
    /// Packets that were taken.
    pub(super) packets: u64,
}

impl Heard {
    /// All of them by their names; none if nobody listens.
    #[must_use]
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = *self.lock();
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
            ("packets-given-up", counts.given_up),
            ("packets-taken", counts.packets),
        ]
    }

    pub(super) fn publish(&self, counts: Counts) {
        *self.lock() = counts;
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
