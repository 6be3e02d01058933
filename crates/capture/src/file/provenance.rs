//! What a file says of the clock behind its stamps.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::Facts;

/// Marks the comment that is for us among those that are for people.
pub(super) const MARK: &str = "wirestamp ";

/// Which clock made a file's stamps. It stands in the interface block when a capture begins, and
/// once more, with the final error, in the statistics block that ends it.
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
    /// The largest error of a stamp against that system clock, in nanoseconds, so far.
    pub error_ns: i64,
    /// Whether the stamps were converted again from their raw values after the capture, between
    /// the anchors on either side. The error is that of the new stamps then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restamped: bool,
}

impl Provenance {
    /// The provenance of a capture on this machine.
    #[must_use]
    pub fn of(facts: &Facts, error_ns: i64) -> Self {
        // Without /proc two files of one machine cannot be told to be that; an empty identity
        // matches no other.
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self {
            method: facts.method.to_owned(),
            stamp: facts.stamp.to_owned(),
            clock: facts.clock.to_owned(),
            boot_id: boot_id.trim().to_owned(),
            error_ns,
            restamped: false,
        }
    }

    /// Whether stamps with this provenance and with `other` were taken against one system clock.
    #[must_use]
    pub fn shares_clock_with(&self, other: &Self) -> bool {
        !self.boot_id.is_empty() && self.boot_id == other.boot_id
    }

    pub(super) fn to_comment(&self) -> String {
        let json = serde_json::to_string(self).expect("plain strings and a number are JSON");
        format!("{MARK}{json}")
    }

    pub(super) fn from_comment(comment: &str) -> Option<Self> {
        serde_json::from_str(comment.strip_prefix(MARK)?).ok()
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
    fn captures_of_unknown_boots_share_no_clock() {
        let unknown = Provenance { boot_id: String::new(), ..example() };
        assert!(example().shares_clock_with(&example()));
        assert!(!unknown.shares_clock_with(&unknown));
    }
}
