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
    /// The bitrate is variable, or most clock references are inaccurate. The packets do not show which of both.
    VariableBitrate,
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
        }
    }
}

impl fmt::Display for UnknownTransportStreamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoClockReferences => "there are no clock references (PCR)",
            Self::TooFewClockReferences => "there are fewer than 32 clock references (PCR)",
            Self::PacketsLost => "packets are missing between the clock references (PCR)",
            Self::VariableBitrate => "the bitrate is variable, or most PCR are inaccurate",
        })
    }
}
