//! Meaning of payload types: by RFC 3551 or by signalling.

use std::num::NonZeroU32;
use std::sync::Arc;

use wirestamp_packet::rtp::{Medium, StaticPayloadType};
use wirestamp_packet::sdp;

use crate::emodel::Codec;

/// Codec and clock rate of a payload type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) name: Arc<str>,
    pub(super) clock_rate: NonZeroU32,
    pub(super) video: bool,
}

impl Encoding {
    /// Encoding that RFC 3551 assigns to a payload type.
    pub(super) fn fixed(payload_type: u8) -> Option<Self> {
        let StaticPayloadType { name, medium, clock_rate_hz, .. } =
            StaticPayloadType::of(payload_type)?;
        let clock_rate = NonZeroU32::new(clock_rate_hz)?;
        Some(Self { name: name.into(), clock_rate, video: medium != Medium::Audio })
    }

    /// Encoding from a session description, of a medium of this kind.
    pub(super) fn announced(kind: &str, encoding: &sdp::Encoding<'_>) -> Option<Self> {
        let clock_rate = NonZeroU32::new(encoding.clock_rate_hz)?;
        let video = kind == "video" || encoding.name.eq_ignore_ascii_case("MP2T");
        Some(Self { name: encoding.name.into(), clock_rate, video })
    }

    /// Whether the packets carry no media: telephone events, whose timestamps do not advance (RFC 4733 sections 2.2.1
    /// and 4), or comfort noise.
    pub(super) fn is_auxiliary(&self) -> bool {
        self.is_event() || self.name.eq_ignore_ascii_case("CN")
    }

    /// Whether the packets are the digits of a telephone, and other events (RFC 4733 section 2).
    pub(super) fn is_telephone_event(&self) -> bool {
        self.name.eq_ignore_ascii_case("telephone-event")
    }

    fn is_event(&self) -> bool {
        self.is_telephone_event() || self.name.eq_ignore_ascii_case("tone")
    }

    /// Clock rate for jitter; none where timestamps do not advance.
    pub(super) fn jitter_rate(&self) -> Option<NonZeroU32> {
        (!self.is_event()).then_some(self.clock_rate)
    }

    /// Whether the codec depends on the payload.
    pub(super) fn is_amr_wb(&self) -> bool {
        self.name.eq_ignore_ascii_case("AMR-WB")
    }

    /// The rated codec; none for AMR-WB, which has one for each mode.
    pub(super) fn codec(&self) -> Option<Codec> {
        codec_of(&self.name)
    }
}

/// Codec of an encoding name, where ITU-T G.113 has values. G.711 is taken with loss concealment, as in phones; G.729
/// and G.723.1 as the variants whose robustness is published.
fn codec_of(encoding: &str) -> Option<Codec> {
    const CODECS: [(&str, Codec); 6] = [
        ("PCMU", Codec::G711Concealing),
        ("PCMA", Codec::G711Concealing),
        ("G729", Codec::G729A),
        ("G723", Codec::G7231High),
        ("GSM", Codec::GsmFullRate),
        ("GSM-EFR", Codec::GsmEnhancedFullRate),
    ];
    let known = CODECS.iter().find(|(name, _)| encoding.eq_ignore_ascii_case(name));
    known.map(|(_, codec)| *codec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voice_has_a_codec_and_events_have_no_jitter() {
        let codec = |payload_type| Encoding::fixed(payload_type).and_then(|it| it.codec());
        assert_eq!([0, 8, 18].map(codec).map(|it| it.is_some()), [true; 3]);
        assert_eq!([9, 13, 33].map(codec), [None; 3]);
        let encoding = |name| sdp::Encoding { name, clock_rate_hz: 8000 };
        let event =
            Encoding::announced("audio", &encoding("Telephone-Event")).expect("an encoding");
        assert!(event.is_auxiliary() && event.jitter_rate().is_none());
        let voice = Encoding::announced("audio", &encoding("pcmu")).expect("an encoding");
        assert!(!voice.is_auxiliary() && voice.codec() == Some(Codec::G711Concealing));
    }
}
