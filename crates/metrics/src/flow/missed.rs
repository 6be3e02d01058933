//! When the capture lost packets: gaps at that time are not the network's.

use std::collections::VecDeque;

use wirestamp_clock::{Time, Utc};

/// Losses of the capture that are remembered, the newest.
const REMEMBERED: usize = 256;

/// A time in which the capture lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedPackets {
    /// When the last packet before the loss came.
    pub from: Time<Utc>,
    /// When the first packet after it came.
    pub until: Time<Utc>,
    /// How many packets were lost, of whatever flow.
    pub packets: u64,
}

/// The newest times in which the capture lost packets.
#[derive(Clone, Debug, Default)]
pub(super) struct MissedTimes {
    newest_last: VecDeque<MissedPackets>,
}

impl MissedTimes {
    pub(super) fn note(&mut self, missed: MissedPackets) {
        if self.newest_last.len() >= REMEMBERED {
            self.newest_last.pop_front();
        }
        self.newest_last.push_back(missed);
    }

    /// Of so many packets that are missing between these times, those that the capture lost. They are
    /// taken: what it lost of one stream, it did not lose of another.
    pub(super) fn take(&mut self, missing: u64, from: Time<Utc>, until: Time<Utc>) -> u64 {
        let shares = |it: &&mut MissedPackets| it.from <= until && from <= it.until;
        let mut left = missing;
        for missed in self.newest_last.iter_mut().filter(shares) {
            let taken = left.min(missed.packets);
            missed.packets -= taken;
            left -= taken;
        }
        missing - left
    }
}
