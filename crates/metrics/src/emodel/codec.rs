//! Codecs and their impairment: ITU-T G.113 (11/2007) Appendix I.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// A narrow-band codec with values in ITU-T G.113 Appendix I.
///
/// Other codecs have no published values that could be verified, among them iLBC, Opus and the wide-band codecs
/// (G.722, AMR-WB), for which G.107.1 and G.107.2 have other scales.
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
}

/// Each codec in the order of its enum with its name on the command line and in documents; its equipment impairment
/// factor Ie without packet loss, on the scale of R; and its packet-loss robustness factor Bpl. These are the provisional
/// planning values of G.113 Appendix I. Bpl is valid for packets of 10 ms (G.711), 20 ms (G.729A, GSM) and 30 ms
/// (G.723.1); `None` where the table has no row for the codec.
const CODECS: [(Codec, &str, f64, Option<f64>); 8] = [
    (Codec::G711, "g711", 0.0, Some(4.3)),
    (Codec::G711Concealing, "g711-plc", 0.0, Some(25.1)),
    (Codec::G7231Low, "g723.1-5.3", 19.0, None),
    (Codec::G7231High, "g723.1-6.3", 15.0, Some(16.1)),
    (Codec::G729, "g729", 10.0, None),
    (Codec::G729A, "g729a", 11.0, Some(19.0)),
    (Codec::GsmFullRate, "gsm-fr", 20.0, None),
    (Codec::GsmEnhancedFullRate, "gsm-efr", 5.0, Some(10.0)),
];

impl Codec {
    /// All codecs.
    #[must_use]
    pub fn all() -> [Self; 8] {
        CODECS.map(|(codec, ..)| codec)
    }

    /// Name on the command line and in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        CODECS[self as usize].1
    }

    /// Equipment impairment factor Ie without packet loss, on the scale of R.
    #[must_use]
    pub const fn equipment_impairment(self) -> f64 {
        CODECS[self as usize].2
    }

    /// Packet-loss robustness factor Bpl; `None` if unknown.
    #[must_use]
    pub const fn loss_robustness(self) -> Option<f64> {
        CODECS[self as usize].3
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
        assert!("opus".parse::<Codec>().unwrap_err().to_string().contains("g711, g711-plc"));
    }
}
