//! Codecs and their impairment: ITU-T G.113 (11/2007) Appendix I, (09/2024) Appendices IV and V.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

use super::scale::Scale;

/// A codec with values in ITU-T G.113.
///
/// Other codecs have none (iLBC, Opus, AMR), or none that could be verified: sources disagree on G.722. The values of EVS
/// are for its super-wideband mode. The packets do not name this mode, so that users have to state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// G.711 at 64 kbit/s, lost packets replaced by silence.
    G711,
    /// G.711 at 64 kbit/s with the packet loss concealment of its Appendix I.
    G711Concealing,
    /// G.723.1 at 5.3 kbit/s.
    G7231Low,
    /// G.723.1 at 6.3 kbit/s, with voice activity detection where packets were lost.
    G7231High,
    /// G.729 at 8 kbit/s.
    G729,
    /// G.729 Annex A with the voice activity detection of Annex B, 8 kbit/s.
    G729A,
    /// GSM full rate, 13 kbit/s.
    GsmFullRate,
    /// GSM enhanced full rate, 12.2 kbit/s.
    GsmEnhancedFullRate,
    /// AMR-WB (G.722.2) at 6.60 kbit/s.
    AmrWb660,
    /// AMR-WB at 8.85 kbit/s.
    AmrWb885,
    /// AMR-WB at 12.65 kbit/s.
    AmrWb1265,
    /// AMR-WB at 14.25 kbit/s.
    AmrWb1425,
    /// AMR-WB at 15.85 kbit/s.
    AmrWb1585,
    /// AMR-WB at 18.25 kbit/s.
    AmrWb1825,
    /// AMR-WB at 19.85 kbit/s.
    AmrWb1985,
    /// AMR-WB at 23.05 kbit/s.
    AmrWb2305,
    /// AMR-WB at 23.85 kbit/s.
    AmrWb2385,
    /// EVS in super-wideband mode at 9.6 kbit/s.
    EvsSwb960,
    /// The same at 13.2 kbit/s.
    EvsSwb1320,
    /// The same at 16.4 kbit/s.
    EvsSwb1640,
    /// The same at 24.4 kbit/s.
    EvsSwb2440,
    /// The same at 32 kbit/s.
    EvsSwb3200,
    /// The same at 48 kbit/s.
    EvsSwb4800,
}

/// Number of codecs.
const COUNT: usize = 23;

/// Each codec in the order of its enum with its name on the command line and in documents; its scale; its equipment
/// impairment factor Ie without packet loss, on the scale of R; and its packet-loss robustness factor Bpl. These are the
/// provisional planning values of G.113: Appendix I for narrowband, table IV.1 (monotic listening) for wideband,
/// Appendix V with its erratum 1 (01/2026; diotic listening, random loss) for fullband. Bpl is
/// valid for packets of 10 ms (G.711), 20 ms (G.729A, GSM) and 30 ms (G.723.1); `None` where there is no value for the
/// codec. For AMR-WB there is none of monotic listening.
const CODECS: [(Codec, &str, Scale, f64, Option<f64>); COUNT] = [
    (Codec::G711, "g711", Scale::Narrowband, 0.0, Some(4.3)),
    (Codec::G711Concealing, "g711-plc", Scale::Narrowband, 0.0, Some(25.1)),
    (Codec::G7231Low, "g723.1-5.3", Scale::Narrowband, 19.0, None),
    (Codec::G7231High, "g723.1-6.3", Scale::Narrowband, 15.0, Some(16.1)),
    (Codec::G729, "g729", Scale::Narrowband, 10.0, None),
    (Codec::G729A, "g729a", Scale::Narrowband, 11.0, Some(19.0)),
    (Codec::GsmFullRate, "gsm-fr", Scale::Narrowband, 20.0, None),
    (Codec::GsmEnhancedFullRate, "gsm-efr", Scale::Narrowband, 5.0, Some(10.0)),
    (Codec::AmrWb660, "amr-wb-6.6", Scale::Wideband, 41.0, None),
    (Codec::AmrWb885, "amr-wb-8.85", Scale::Wideband, 26.0, None),
    (Codec::AmrWb1265, "amr-wb-12.65", Scale::Wideband, 13.0, None),
    (Codec::AmrWb1425, "amr-wb-14.25", Scale::Wideband, 10.0, None),
    (Codec::AmrWb1585, "amr-wb-15.85", Scale::Wideband, 7.0, None),
    (Codec::AmrWb1825, "amr-wb-18.25", Scale::Wideband, 5.0, None),
    (Codec::AmrWb1985, "amr-wb-19.85", Scale::Wideband, 3.0, None),
    (Codec::AmrWb2305, "amr-wb-23.05", Scale::Wideband, 1.0, None),
    (Codec::AmrWb2385, "amr-wb-23.85", Scale::Wideband, 8.0, None),
    (Codec::EvsSwb960, "evs-swb-9.6", Scale::Fullband, 22.7, Some(13.0)),
    (Codec::EvsSwb1320, "evs-swb-13.2", Scale::Fullband, 17.1, Some(11.7)),
    (Codec::EvsSwb1640, "evs-swb-16.4", Scale::Fullband, 10.8, Some(10.3)),
    (Codec::EvsSwb2440, "evs-swb-24.4", Scale::Fullband, 7.2, Some(11.4)),
    (Codec::EvsSwb3200, "evs-swb-32", Scale::Fullband, 8.7, Some(9.3)),
    (Codec::EvsSwb4800, "evs-swb-48", Scale::Fullband, 10.2, Some(9.6)),
];

impl Codec {
    /// All codecs.
    #[must_use]
    pub fn all() -> [Self; COUNT] {
        CODECS.map(|(codec, ..)| codec)
    }

    /// Name on the command line and in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        CODECS[self as usize].1
    }

    /// AMR-WB with a speech mode of RFC 4867, 0 (6.60 kbit/s) to 8 (23.85 kbit/s); `None` beyond.
    #[must_use]
    pub fn amr_wb(mode: u8) -> Option<Self> {
        let place = Self::AmrWb660 as usize + usize::from(mode);
        let found = CODECS.get(place).filter(|(_, _, scale, ..)| *scale == Scale::Wideband);
        found.map(|(codec, ..)| *codec)
    }

    /// Scale of its ratings.
    #[must_use]
    pub const fn scale(self) -> Scale {
        CODECS[self as usize].2
    }

    /// Equipment impairment factor Ie without packet loss, on the scale of R.
    #[must_use]
    pub const fn equipment_impairment(self) -> f64 {
        CODECS[self as usize].3
    }

    /// Packet-loss robustness factor Bpl; `None` if unknown.
    #[must_use]
    pub const fn loss_robustness(self) -> Option<f64> {
        CODECS[self as usize].4
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for an unknown codec name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("choose among {}", Codec::all().map(Codec::name).join(", "))]
pub struct UnknownCodec;

impl FromStr for Codec {
    type Err = UnknownCodec;

    fn from_str(name: &str) -> Result<Self, UnknownCodec> {
        Self::all().into_iter().find(|codec| codec.name() == name).ok_or(UnknownCodec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codec_is_parsed_from_its_name() {
        for codec in Codec::all() {
            assert_eq!(codec.to_string().parse(), Ok(codec));
        }
        for (place, codec) in Codec::all().into_iter().enumerate() {
            assert_eq!(codec as usize, place);
        }
        assert!("opus".parse::<Codec>().unwrap_err().to_string().contains("g711, g711-plc"));
    }

    #[test]
    fn modes_of_amr_wb_are_codecs() {
        let names: Vec<_> = (0..=255).filter_map(Codec::amr_wb).map(Codec::name).collect();
        assert_eq!((names.len(), names[0], names[8]), (9, "amr-wb-6.6", "amr-wb-23.85"));
        assert!((0..9).all(|mode| Codec::amr_wb(mode).map(Codec::scale) == Some(Scale::Wideband)));
    }
}
