//! What a packet was stamped with, kept beside its time.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use wirestamp_clock::Stamp;

use super::provenance::MARK;

/// A packet's stamp before conversion, in a comment of the packet: every tool shows it, those that
/// cut and merge captures keep it, and it takes no number of a registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawValue<'a> {
    /// The value that was read, in ticks of the clock.
    pub raw: u64,
    /// The clock by its name.
    #[serde(borrow)]
    pub clock: Cow<'a, str>,
    /// The error of the packet's time against the system clock, in nanoseconds.
    pub error_ns: i64,
}

impl<'a> RawValue<'a> {
    pub(super) fn of(stamp: &Stamp, clock: &'a str) -> Self {
        Self { raw: stamp.raw.value, clock: Cow::Borrowed(clock), error_ns: stamp.error.as_nanos() }
    }

    pub(super) fn to_comment(&self) -> String {
        let json = serde_json::to_string(self).expect("a plain string and numbers are JSON");
        format!("{MARK}{json}")
    }

    /// What a packet's comment says, if it is one of ours.
    #[must_use]
    pub fn from_comment(comment: &'a str) -> Option<Self> {
        serde_json::from_str(comment.strip_prefix(MARK)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::provenance;
    use super::*;

    #[test]
    fn a_comment_gives_back_what_was_put_in() {
        let there = RawValue { raw: u64::MAX, clock: "tsc".into(), error_ns: 42 };
        let comment = there.to_comment();
        assert_eq!(
            comment,
            r#"wirestamp {"raw":18446744073709551615,"clock":"tsc","error_ns":42}"#
        );
        assert_eq!(RawValue::from_comment(&comment), Some(there));
    }

    #[test]
    fn the_comments_of_others_and_our_other_ones_are_none() {
        for comment in
            ["", "wirestamp ", "raw 5", r#"wirestamp {"raw":-1,"clock":"t","error_ns":0}"#]
        {
            assert_eq!(RawValue::from_comment(comment), None);
        }
        assert_eq!(RawValue::from_comment(&provenance::example().to_comment()), None);
    }
}
