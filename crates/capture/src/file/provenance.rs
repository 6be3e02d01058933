//! The clock of a file's stamps, with its error.

use std::fs;

use serde::{Deserialize, Serialize};
use wirestamp_clock::{ClockService, Domain};

use super::comment;
use crate::Facts;

/// The clock of a file's stamps. The interface block at the start has it with an error that holds for all packets
/// without an error of their own. The statistics block at the end has it with the actual max error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Reception method.
    pub method: String,
    /// Timestamp source.
    pub stamp: String,
    /// Clock of the stamps.
    pub clock: String,
    /// Boot id of the capturing machine: two files of one boot share their system clock.
    pub boot_id: String,
    /// Max error of a stamp against that system clock, in nanoseconds.
    pub error_ns: i64,
    /// Granularity: the smallest usual step of the clock, in nanoseconds, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granularity_ns: Option<i64>,
    /// Whether the stamps were converted again from their raw values after the capture, between surrounding
    /// anchors. The error is that of the new stamps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restamped: bool,
}

impl Provenance {
    /// The provenance of a capture that starts now, with stamps of `domain`.
    #[must_use]
    pub fn now(facts: &Facts, clock: &ClockService, domain: Domain) -> Self {
        let timeline = clock.timeline(domain);
        // At the newest anchor; there is none if stamps are system time.
        let raw = timeline.anchors().next_back().map_or(0, |anchor| anchor.raw);
        Self::of(facts, timeline.convert(raw).error.as_nanos())
    }

    /// The provenance of a capture on this machine with a max error of `error_ns`.
    #[must_use]
    pub fn of(facts: &Facts, error_ns: i64) -> Self {
        // Without /proc the boot is unknown; an empty id matches no other.
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

    /// The provenance with an error that holds for nearly all packets to come, so that few need an error of their
    /// own: twice the error, because it grows between anchors and differs among them, rounded up to a power of two.
    pub(super) fn with_margin(self) -> Self {
        let twice = self.error_ns.unsigned_abs().saturating_mul(2);
        let margin =
            twice.checked_next_power_of_two().and_then(|margin| i64::try_from(margin).ok());
        Self { error_ns: margin.unwrap_or(i64::MAX), ..self }
    }

    /// Whether stamps with this provenance and with `other` refer to one system clock.
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
    fn provenance_survives_the_comment() {
        for restamped in [false, true] {
            let there = Provenance { restamped, ..example() };
            assert_eq!(there.to_comment().contains("restamped"), restamped);
            assert_eq!(Provenance::from_comment(&there.to_comment()), Some(there));
        }
        assert_eq!(Provenance::from_comment("taken behind the firewall"), None);
        assert_eq!(Provenance::from_comment("wirestamp {}"), None);
    }

    #[test]
    fn initial_error_has_a_margin() {
        let margin = |error_ns| Provenance { error_ns, ..example() }.with_margin().error_ns;
        assert_eq!([0, 1, 100, 128, i64::MAX].map(margin), [1, 2, 256, 256, i64::MAX]);
    }

    #[test]
    fn captures_of_unknown_boots_share_no_clock() {
        let unknown = Provenance { boot_id: String::new(), ..example() };
        assert!(example().shares_clock_with(&example()));
        assert!(!unknown.shares_clock_with(&unknown));
    }
}
