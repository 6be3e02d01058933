//! Why a value from RTCP is unknown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a value of [`RtcpReport`](super::RtcpReport) is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UnknownRtcpValue {
    /// No report that the value is computed from was captured.
    NoReport,
    /// The clock rate of the stream's timestamps is unknown, which is the unit of the jitter.
    UnknownClockRate,
    /// The reports answer no report of the other end: none arrived there, or its sender has no clock (LSR or LRR is 0).
    NothingAnswered,
    /// The report that is answered was not captured.
    AnsweredNotCaptured,
    /// The report that is answered was captured several times: it is unknown which one is answered.
    AnsweredRepeated,
    /// The result is negative, which cannot be.
    Negative,
    /// Fewer than two reports of one receiver are about packets that were captured here.
    TooFewReports,
    /// The capture lost packets while the stream lasted.
    CaptureLost,
    /// The loss that the receiver counts shrank, or grew by more than the packets between two reports: many packets arrived
    /// late there, or it began to count again.
    InconsistentCounts,
    /// Packets were captured several times, and it is unknown whether the receiver counts them several times, too.
    DuplicatesCaptured,
}

impl UnknownRtcpValue {
    /// The value of the JSON key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoReport => "no-report",
            Self::UnknownClockRate => "unknown-clock-rate",
            Self::NothingAnswered => "nothing-answered",
            Self::AnsweredNotCaptured => "answered-not-captured",
            Self::AnsweredRepeated => "answered-repeated",
            Self::Negative => "negative",
            Self::TooFewReports => "too-few-reports",
            Self::CaptureLost => "capture-lost",
            Self::InconsistentCounts => "inconsistent-counts",
            Self::DuplicatesCaptured => "duplicates-captured",
        }
    }
}

impl fmt::Display for UnknownRtcpValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoReport => "no report was captured",
            Self::UnknownClockRate => "the clock rate is unknown",
            Self::NothingAnswered => "the reports answer no other report",
            Self::AnsweredNotCaptured => "the answered report was not captured",
            Self::AnsweredRepeated => "the answered report was captured several times",
            Self::Negative => "the result is negative",
            Self::TooFewReports => "fewer than two reports on captured packets",
            Self::CaptureLost => "the capture lost packets",
            Self::InconsistentCounts => "the receiver's counts of two reports do not fit together",
            Self::DuplicatesCaptured => "packets were captured several times",
        })
    }
}
