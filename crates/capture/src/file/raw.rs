//! Comments of packets: raw stamps and errors.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use wirestamp_clock::Stamp;

use super::comment;

/// A packet's stamp before conversion, in a comment of the packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawValue<'a> {
    /// Raw value, in ticks of the clock.
    pub raw: u64,
    /// Name of the clock.
    #[serde(borrow)]
    pub clock: Cow<'a, str>,
    /// Error of the packet's time against the system clock, in nanoseconds.
    pub error_ns: i64,
}

/// A comment of a packet.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum PacketComment<'a> {
    /// The packet's max error, if it exceeds the interface's.
    Error { error_ns: i64 },
    /// The raw value, for converting the stamp again.
    Raw(RawValue<'a>),
}

impl<'a> RawValue<'a> {
    pub(super) fn of(stamp: &Stamp, clock: &'a str) -> Self {
        Self { raw: stamp.raw.value, clock: Cow::Borrowed(clock), error_ns: stamp.error.as_nanos() }
    }

    pub(super) fn to_comment(&self) -> String {
        comment::of(self)
    }

    /// Raw value in a packet's comment, if it has one.
    #[must_use]
    pub fn from_comment(comment: &'a str) -> Option<Self> {
        comment::read(comment)
    }
}

/// Max error in nanoseconds in a packet's comment, with or without a raw value.
pub(super) fn error_of(comment: &str) -> Option<i64> {
    #[derive(Deserialize)]
    struct Error {
        error_ns: i64,
    }
    comment::read::<Error>(comment).map(|comment| comment.error_ns)
}

#[cfg(test)]
mod tests {
    use super::super::provenance;
    use super::*;

    #[test]
    fn raw_value_survives_the_comment() {
        let there = RawValue { raw: u64::MAX, clock: "tsc".into(), error_ns: 42 };
        let comment = there.to_comment();
        assert_eq!(
            comment,
            r#"wirestamp {"raw":18446744073709551615,"clock":"tsc","error_ns":42}"#
        );
        assert_eq!(error_of(&comment), Some(42));
        assert_eq!(RawValue::from_comment(&comment), Some(there));
    }

    #[test]
    fn comment_can_have_only_an_error() {
        let comment = comment::of(&PacketComment::Error { error_ns: 7 });
        assert_eq!(comment, r#"wirestamp {"error_ns":7}"#);
        assert_eq!((error_of(&comment), RawValue::from_comment(&comment)), (Some(7), None));
    }

    #[test]
    fn other_comments_have_no_raw_value() {
        for comment in
            ["", "wirestamp ", "raw 5", r#"wirestamp {"raw":-1,"clock":"t","error_ns":0}"#]
        {
            assert_eq!(RawValue::from_comment(comment), None);
        }
        assert_eq!(RawValue::from_comment(&provenance::example().to_comment()), None);
    }
}
