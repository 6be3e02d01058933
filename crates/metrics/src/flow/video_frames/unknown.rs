//! Why a value of a video is unknown.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a value of [`VideoFramesReport`](super::VideoFramesReport) is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UnknownVideoValue {
    /// The capture lost packets of the stream.
    CaptureLost,
    /// The session description states that the payload is encrypted (SRTP).
    EncryptedPayload,
    /// The payload of more than one in ten frames does not follow the payload format: it may be encrypted, or of another
    /// codec.
    UnreadablePayload,
    /// The payload of the encoding is not read.
    UnsupportedCodec,
    /// Packets have units of several frames (MTAP of RFC 6184 section 5.7.2), which is not read. The frames are counted by their
    /// packets, so that there may be more of them.
    InterleavedPayload,
    /// The capture cut off headers of the payload (snap length).
    CutPayload,
    /// There are too few frames.
    TooFewFrames,
}

impl UnknownVideoValue {
    /// The value of the JSON key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CaptureLost => "capture-lost",
            Self::EncryptedPayload => "encrypted-payload",
            Self::UnreadablePayload => "unreadable-payload",
            Self::UnsupportedCodec => "unsupported-codec",
            Self::InterleavedPayload => "interleaved-payload",
            Self::CutPayload => "cut-payload",
            Self::TooFewFrames => "too-few-frames",
        }
    }
}

impl fmt::Display for UnknownVideoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CaptureLost => "the capture lost packets of the stream",
            Self::EncryptedPayload => "the payload is encrypted",
            Self::UnreadablePayload => "the payload is encrypted, or does not follow its format",
            Self::UnsupportedCodec => "the payload of this codec is not read",
            Self::InterleavedPayload => {
                "packets have units of several frames (interleaved mode), which is not read"
            }
            Self::CutPayload => "the capture cut off headers of the payload",
            Self::TooFewFrames => "there are too few frames",
        })
    }
}
