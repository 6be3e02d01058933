//! Why a value of a transport stream is unknown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a value of [`TransportStreamReport`](super::TransportStreamReport) is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UnknownTransportStreamValue {
    /// The stream has no clock references (PCR).
    NoClockReferences,
    /// There are fewer than 32 clock references of a PID.
    TooFewClockReferences,
    /// Packets are missing at least once in 32 clock references of a PID.
    PacketsLost,
    /// The bitrate is variable, or most clock references are inaccurate, or null packets are lost, which have no counter. The
    /// packets do not show which.
    VariableBitrate,
    /// The media rate is not known for a whole interval yet.
    NoWholeInterval,
    /// The capture lost packets, which may be of this stream.
    CaptureLost,
}

impl UnknownTransportStreamValue {
    /// The value of the JSON key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoClockReferences => "no-clock-references",
            Self::TooFewClockReferences => "too-few-clock-references",
            Self::PacketsLost => "packets-lost",
            Self::VariableBitrate => "variable-bitrate",
            Self::NoWholeInterval => "no-whole-interval",
            Self::CaptureLost => "capture-lost",
        }
    }
}

impl fmt::Display for UnknownTransportStreamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoClockReferences => "there are no clock references (PCR)",
            Self::TooFewClockReferences => "there are fewer than 32 clock references (PCR)",
            Self::PacketsLost => "packets are missing between the clock references (PCR)",
            Self::VariableBitrate => "variable bitrate, inaccurate PCR, or lost null packets",
            Self::NoWholeInterval => "the media rate is not known for a whole second yet",
            Self::CaptureLost => "the capture lost packets, which may be of the stream",
        })
    }
}
