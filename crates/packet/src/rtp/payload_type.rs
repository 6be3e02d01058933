//! Static payload types, which need no negotiation.

/// Content of a payload type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Medium {
    /// Sound.
    Audio,
    /// Pictures.
    Video,
    /// Both in one stream (MPEG-2 transport streams).
    AudioVideo,
}

/// A payload type that RFC 3551 section 6 binds to an encoding, for the audio and video profile. A session
/// description defines the other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StaticPayloadType {
    /// The encoding's name, in the RFC's spelling.
    pub name: &'static str,
    /// Content.
    pub medium: Medium,
    /// Ticks of the RTP timestamp per second. For G722 that is 8000 by an old error that the RFC keeps (section
    /// 4.5.2), although it carries 16000 samples per second.
    pub clock_rate_hz: u32,
}

impl StaticPayloadType {
    /// Encoding of `payload_type`: RFC 3551 tables 4 and 5. `None` for dynamic, reserved and unassigned numbers.
    #[must_use]
    pub fn of(payload_type: u8) -> Option<Self> {
        Some(match payload_type {
            0 => audio("PCMU", 8_000),
            3 => audio("GSM", 8_000),
            4 => audio("G723", 8_000),
            5 => audio("DVI4", 8_000),
            6 => audio("DVI4", 16_000),
            7 => audio("LPC", 8_000),
            8 => audio("PCMA", 8_000),
            9 => audio("G722", 8_000),
            10 => audio("L16", 44_100),
            11 => audio("L16", 44_100),
            12 => audio("QCELP", 8_000),
            13 => audio("CN", 8_000),
            14 => at_90_khz("MPA", Medium::Audio),
            15 => audio("G728", 8_000),
            16 => audio("DVI4", 11_025),
            17 => audio("DVI4", 22_050),
            18 => audio("G729", 8_000),
            25 => at_90_khz("CelB", Medium::Video),
            26 => at_90_khz("JPEG", Medium::Video),
            28 => at_90_khz("nv", Medium::Video),
            31 => at_90_khz("H261", Medium::Video),
            32 => at_90_khz("MPV", Medium::Video),
            33 => at_90_khz("MP2T", Medium::AudioVideo),
            34 => at_90_khz("H263", Medium::Video),
            _ => return None,
        })
    }
}

const fn audio(name: &'static str, clock_rate_hz: u32) -> StaticPayloadType {
    StaticPayloadType { name, medium: Medium::Audio, clock_rate_hz }
}

const fn at_90_khz(name: &'static str, medium: Medium) -> StaticPayloadType {
    StaticPayloadType { name, medium, clock_rate_hz: 90_000 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unassigned_numbers_have_no_encoding() {
        let bound: Vec<u8> = (0..=255).filter(|n| StaticPayloadType::of(*n).is_some()).collect();
        let mut expected: Vec<u8> = (0..=18).filter(|n| ![1, 2].contains(n)).collect();
        expected.extend([25, 26, 28, 31, 32, 33, 34]);
        assert_eq!(bound, expected);
    }

    #[test]
    fn common_encodings_have_names_and_clocks() {
        let of = |number| StaticPayloadType::of(number).map(|it| (it.name, it.clock_rate_hz));
        assert_eq!(of(0), Some(("PCMU", 8_000)));
        assert_eq!(of(8), Some(("PCMA", 8_000)));
        assert_eq!(of(9), Some(("G722", 8_000)));
        assert_eq!(of(18), Some(("G729", 8_000)));
        assert_eq!(of(33), Some(("MP2T", 90_000)));
    }
}
