//! What a file says of the clock behind its stamps.

use std::fs;

use serde::{Deserialize, Serialize};
use wirestamp_clock::{ClockService, Domain};

use super::comment;
use crate::Facts;

/// Which clock made a file's stamps. It stands in the interface block when a file begins, with an
/// error that no packet exceeds unless it says so itself, and once more in the statistics block
/// that ends it, with the largest error that there was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The reception method.
    pub method: String,
    /// The timestamp source.
    pub stamp: String,
    /// The clock that was read.
    pub clock: String,
    /// The boot of the machine that captured: two files of one boot share their system clock.
    pub boot_id: String,
    /// A bound of a stamp's error against that system clock, in nanoseconds.
    pub error_ns: i64,
    /// The smallest usual step of the clock that was read, in nanoseconds, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granularity_ns: Option<i64>,
    /// Whether the stamps were converted again from their raw values after the capture, between
    /// the anchors on either side. The error is that of the new stamps then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restamped: bool,
}

impl Provenance {
    /// The provenance of a capture that begins now, with stamps of `domain`.
    #[must_use]
    pub fn now(facts: &Facts, clock: &ClockService, domain: Domain) -> Self {
        let timeline = clock.timeline(domain);
        // Right at the newest anchor; there is none where stamps are system time already.
        let raw = timeline.anchors().next_back().map_or(0, |anchor| anchor.raw);
        Self::of(facts, timeline.convert(raw).error.as_nanos())
    }

    /// The provenance of a capture on this machine, whose stamps are `error_ns` off at the most.
    #[must_use]
    pub fn of(facts: &Facts, error_ns: i64) -> Self {
        // Without /proc two files of one machine cannot be told to be that; an empty identity
        // matches no other.
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self {
            method: facts.method.to_owned(),
            stamp: facts.stamp.to_owned(),
            clock: facts.clock.clone(),
            boot_id: boot_id.trim().to_owned(),
            error_ns,
            granularity_ns: Some(facts.granularity_ns),
            restamped: false,
        }
    }

    /// The same with a bound that holds for nearly all packets to come, so that few have to state
    /// one of their own: twice the error, as it grows between two anchors and differs from anchor
    /// to anchor, rounded up to a power of two.
    pub(super) fn with_room(self) -> Self {
        let twice = self.error_ns.unsigned_abs().saturating_mul(2);
        let room = twice.checked_next_power_of_two().and_then(|room| i64::try_from(room).ok());
        Self { error_ns: room.unwrap_or(i64::MAX), ..self }
    }

    /// Whether stamps with this provenance and with `other` were taken against one system clock.
    #[must_use]
    pub fn shares_clock_with(&self, other: &Self) -> bool {
        !self.boot_id.is_empty() && self.boot_id == other.boot_id
    }

    pub(super) fn to_comment(&self) -> String {
        comment::of(self)
    }

    pub(super) fn from_comment(comment: &str) -> Option<Self> {
        comment::read(comment)
    }
}

#[cfg(test)]
pub(super) fn example() -> Provenance {
    Provenance {
        method: "ring".into(),
        stamp: "raw".into(),
        clock: "tsc".into(),
        boot_id: "b".into(),
        error_ns: 42,
        granularity_ns: Some(10),
        restamped: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_gives_back_what_was_put_in() {
        for restamped in [false, true] {
            let there = Provenance { restamped, ..example() };
            assert_eq!(there.to_comment().contains("restamped"), restamped);
            assert_eq!(Provenance::from_comment(&there.to_comment()), Some(there));
        }
        assert_eq!(Provenance::from_comment("taken behind the firewall"), None);
        assert_eq!(Provenance::from_comment("wirestamp {}"), None);
    }

    #[test]
    fn the_bound_of_a_file_that_begins_has_room() {
        let room = |error_ns| Provenance { error_ns, ..example() }.with_room().error_ns;
        assert_eq!([0, 1, 100, 128, i64::MAX].map(room), [1, 2, 256, 256, i64::MAX]);
    }

    #[test]
    fn captures_of_unknown_boots_share_no_clock() {
        let unknown = Provenance { boot_id: String::new(), ..example() };
        assert!(example().shares_clock_with(&example()));
        assert!(!unknown.shares_clock_with(&unknown));
    }
}
