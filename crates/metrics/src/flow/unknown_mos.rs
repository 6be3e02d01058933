//! Why a stream has no MOS.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why the MOS of a stream is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UnknownMos {
    /// The payload type is dynamic (RFC 3551 section 3), and its session description was not captured.
    UnknownPayloadType,
    /// There are no published values for the codec, or they depend on a mode that packets do not contain, for more than 1 % of
    /// the packets.
    UnratedCodec,
    /// No packet of AMR-WB has a speech mode that could be read.
    UnknownMode,
    /// All packets are events or comfort noise.
    NoMedia,
    /// ITU-T G.113 has no packet-loss robustness factor of the codec, and packets were lost or late.
    NoLossRobustness,
    /// The stream changed between narrowband and wideband codecs, whose ratings are not comparable.
    SeveralScales,
}

impl UnknownMos {
    /// The value of the JSON key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownPayloadType => "unknown-payload-type",
            Self::UnratedCodec => "unrated-codec",
            Self::UnknownMode => "unknown-mode",
            Self::NoMedia => "no-media",
            Self::NoLossRobustness => "no-loss-robustness",
            Self::SeveralScales => "several-scales",
        }
    }
}

impl fmt::Display for UnknownMos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownPayloadType => {
                "no captured SIP announces the payload type; --rtp-map states it"
            }
            Self::UnratedCodec => {
                "no published values for this codec, or they depend on a mode that packets do not contain (EVS, Opus: state it with --codec)"
            }
            Self::UnknownMode => {
                "no packet has a speech mode of AMR-WB that could be read (only comfort noise, layout, snap length)"
            }
            Self::NoMedia => "all packets are events or comfort noise",
            Self::NoLossRobustness => {
                "ITU-T G.113 has no packet-loss robustness factor of the codec"
            }
            Self::SeveralScales => {
                "the stream changed between narrowband and wideband, whose ratings are not comparable"
            }
        })
    }
}
