//! Codecs and their impairment: ITU-T G.113 (11/2007) Appendix I, (09/2024) Appendices IV and V; for Opus, Alahmadi et al.
//! (2021).

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

use super::scale::Scale;

/// Defines the codecs, each with its name on the command line and in documents; its scale; its equipment impairment factor
/// Ie without packet loss, on the scale of R; and its packet-loss robustness factor Bpl, `None` if unknown.
macro_rules! codecs {
    ($($(#[$doc:meta])+ $codec:ident => $name:literal, $scale:ident, $ie:literal, $bpl:expr;)+) => {
        /// A codec with published impairment factors.
        ///
        /// Other codecs have none (iLBC, AMR), or none that could be verified: sources disagree on G.722. The values of EVS
        /// and Opus depend on a mode and bit rate that their packets do not name, so that users have to state them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Codec {
            $($(#[$doc])+ $codec,)+
        }

        /// Each codec in the order of its enum.
        const CODECS: [(Codec, &str, Scale, f64, Option<f64>); COUNT] =
            [$((Codec::$codec, $name, Scale::$scale, $ie, $bpl)),+];

        /// Number of codecs.
        const COUNT: usize = [$($name),+].len();
    };
}

// Provisional planning values of G.113: Appendix I for narrowband, table IV.1 (monotic listening) for wideband, Appendix V
// with its erratum 1 (01/2026; diotic listening, random loss) for fullband. Bpl is valid for packets of 10 ms (G.711),
// 20 ms (G.729A, GSM) and 30 ms (G.723.1). For AMR-WB there is none of monotic listening.
//
// Opus has no values in G.113. Those here, for random loss, are of M. Alahmadi, P. Pocta, H. Melvin, "An Adaptive Bitrate
// Switching Algorithm for Speech Applications in Context of WebRTC", ACM TOMM 17(4), article 133, 2021, rounded to three
// digits, from the program that the first author published with it; super-wideband is on the fullband scale.
codecs! {
    /// G.711 at 64 kbit/s, lost packets replaced by silence.
    G711 => "g711", Narrowband, 0.0, Some(4.3);
    /// G.711 at 64 kbit/s with the packet loss concealment of its Appendix I.
    G711Concealing => "g711-plc", Narrowband, 0.0, Some(25.1);
    /// G.723.1 at 5.3 kbit/s.
    G7231Low => "g723.1-5.3", Narrowband, 19.0, None;
    /// G.723.1 at 6.3 kbit/s, with voice activity detection where packets were lost.
    G7231High => "g723.1-6.3", Narrowband, 15.0, Some(16.1);
    /// G.729 at 8 kbit/s.
    G729 => "g729", Narrowband, 10.0, None;
    /// G.729 Annex A with the voice activity detection of Annex B, 8 kbit/s.
    G729A => "g729a", Narrowband, 11.0, Some(19.0);
    /// GSM full rate, 13 kbit/s.
    GsmFullRate => "gsm-fr", Narrowband, 20.0, None;
    /// GSM enhanced full rate, 12.2 kbit/s.
    GsmEnhancedFullRate => "gsm-efr", Narrowband, 5.0, Some(10.0);
    /// AMR-WB (G.722.2) at 6.60 kbit/s.
    AmrWb660 => "amr-wb-6.6", Wideband, 41.0, None;
    /// AMR-WB at 8.85 kbit/s.
    AmrWb885 => "amr-wb-8.85", Wideband, 26.0, None;
    /// AMR-WB at 12.65 kbit/s.
    AmrWb1265 => "amr-wb-12.65", Wideband, 13.0, None;
    /// AMR-WB at 14.25 kbit/s.
    AmrWb1425 => "amr-wb-14.25", Wideband, 10.0, None;
    /// AMR-WB at 15.85 kbit/s.
    AmrWb1585 => "amr-wb-15.85", Wideband, 7.0, None;
    /// AMR-WB at 18.25 kbit/s.
    AmrWb1825 => "amr-wb-18.25", Wideband, 5.0, None;
    /// AMR-WB at 19.85 kbit/s.
    AmrWb1985 => "amr-wb-19.85", Wideband, 3.0, None;
    /// AMR-WB at 23.05 kbit/s.
    AmrWb2305 => "amr-wb-23.05", Wideband, 1.0, None;
    /// AMR-WB at 23.85 kbit/s.
    AmrWb2385 => "amr-wb-23.85", Wideband, 8.0, None;
    /// EVS in super-wideband mode at 9.6 kbit/s.
    EvsSwb960 => "evs-swb-9.6", Fullband, 22.7, Some(13.0);
    /// EVS in super-wideband mode at 13.2 kbit/s.
    EvsSwb1320 => "evs-swb-13.2", Fullband, 17.1, Some(11.7);
    /// EVS in super-wideband mode at 16.4 kbit/s.
    EvsSwb1640 => "evs-swb-16.4", Fullband, 10.8, Some(10.3);
    /// EVS in super-wideband mode at 24.4 kbit/s.
    EvsSwb2440 => "evs-swb-24.4", Fullband, 7.2, Some(11.4);
    /// EVS in super-wideband mode at 32 kbit/s.
    EvsSwb3200 => "evs-swb-32", Fullband, 8.7, Some(9.3);
    /// EVS in super-wideband mode at 48 kbit/s.
    EvsSwb4800 => "evs-swb-48", Fullband, 10.2, Some(9.6);
    /// Opus, narrowband, variable bit rate of 6 kbit/s on average.
    OpusNbVbr6 => "opus-nb-vbr-6", Narrowband, 23.002, Some(24.564);
    /// Opus, narrowband, variable bit rate of 7 kbit/s on average.
    OpusNbVbr7 => "opus-nb-vbr-7", Narrowband, 21.255, Some(22.459);
    /// Opus, narrowband, variable bit rate of 8 kbit/s on average.
    OpusNbVbr8 => "opus-nb-vbr-8", Narrowband, 16.024, Some(20.259);
    /// Opus, narrowband, variable bit rate of 9 kbit/s on average.
    OpusNbVbr9 => "opus-nb-vbr-9", Narrowband, 11.737, Some(18.908);
    /// Opus, narrowband, constant bit rate of 6 kbit/s.
    OpusNbCbr6 => "opus-nb-cbr-6", Narrowband, 46.268, Some(8.94);
    /// Opus, narrowband, constant bit rate of 7 kbit/s.
    OpusNbCbr7 => "opus-nb-cbr-7", Narrowband, 31.735, Some(18.179);
    /// Opus, narrowband, constant bit rate of 8 kbit/s.
    OpusNbCbr8 => "opus-nb-cbr-8", Narrowband, 19.245, Some(15.128);
    /// Opus, narrowband, constant bit rate of 9 kbit/s.
    OpusNbCbr9 => "opus-nb-cbr-9", Narrowband, 13.209, Some(17.239);
    /// Opus, narrowband, constant bit rate of 10 kbit/s.
    OpusNbCbr10 => "opus-nb-cbr-10", Narrowband, 6.197, Some(15.33);
    /// Opus, narrowband, constant bit rate of 11 kbit/s.
    OpusNbCbr11 => "opus-nb-cbr-11", Narrowband, 2.03, Some(15.952);
    /// Opus, wideband, variable bit rate of 11 kbit/s on average.
    OpusWbVbr11 => "opus-wb-vbr-11", Wideband, 28.413, Some(23.94);
    /// Opus, wideband, variable bit rate of 12 kbit/s on average.
    OpusWbVbr12 => "opus-wb-vbr-12", Wideband, 23.295, Some(22.215);
    /// Opus, wideband, variable bit rate of 13 kbit/s on average.
    OpusWbVbr13 => "opus-wb-vbr-13", Wideband, 19.959, Some(19.496);
    /// Opus, wideband, constant bit rate of 12 kbit/s.
    OpusWbCbr12 => "opus-wb-cbr-12", Wideband, 29.764, Some(24.809);
    /// Opus, wideband, constant bit rate of 13 kbit/s.
    OpusWbCbr13 => "opus-wb-cbr-13", Wideband, 26.161, Some(23.005);
    /// Opus, wideband, constant bit rate of 14 kbit/s.
    OpusWbCbr14 => "opus-wb-cbr-14", Wideband, 20.772, Some(17.562);
    /// Opus, wideband, constant bit rate of 15 kbit/s.
    OpusWbCbr15 => "opus-wb-cbr-15", Wideband, 18.063, Some(18.737);
    /// Opus, super-wideband, variable bit rate of 14 kbit/s on average.
    OpusSwbVbr14 => "opus-swb-vbr-14", Fullband, 38.06, Some(16.51);
    /// Opus, super-wideband, variable bit rate of 15 kbit/s on average.
    OpusSwbVbr15 => "opus-swb-vbr-15", Fullband, 34.12, Some(15.0);
    /// Opus, super-wideband, variable bit rate of 16 kbit/s on average.
    OpusSwbVbr16 => "opus-swb-vbr-16", Fullband, 30.163, Some(11.83);
    /// Opus, super-wideband, variable bit rate of 19 kbit/s on average.
    OpusSwbVbr19 => "opus-swb-vbr-19", Fullband, 23.807, Some(10.67);
    /// Opus, super-wideband, variable bit rate of 22 kbit/s on average.
    OpusSwbVbr22 => "opus-swb-vbr-22", Fullband, 20.223, Some(10.47);
    /// Opus, super-wideband, variable bit rate of 25 kbit/s on average.
    OpusSwbVbr25 => "opus-swb-vbr-25", Fullband, 20.209, Some(11.28);
    /// Opus, super-wideband, variable bit rate of 28 kbit/s on average.
    OpusSwbVbr28 => "opus-swb-vbr-28", Fullband, 18.477, Some(10.63);
    /// Opus, super-wideband, variable bit rate of 31 kbit/s on average.
    OpusSwbVbr31 => "opus-swb-vbr-31", Fullband, 16.829, Some(10.44);
    /// Opus, super-wideband, variable bit rate of 34 kbit/s on average.
    OpusSwbVbr34 => "opus-swb-vbr-34", Fullband, 14.759, Some(10.12);
    /// Opus, super-wideband, variable bit rate of 37 kbit/s on average.
    OpusSwbVbr37 => "opus-swb-vbr-37", Fullband, 12.078, Some(10.38);
    /// Opus, super-wideband, variable bit rate of 40 kbit/s on average.
    OpusSwbVbr40 => "opus-swb-vbr-40", Fullband, 10.666, Some(9.79);
    /// Opus, super-wideband, constant bit rate of 16 kbit/s.
    OpusSwbCbr16 => "opus-swb-cbr-16", Fullband, 36.881, Some(13.3);
    /// Opus, super-wideband, constant bit rate of 19 kbit/s.
    OpusSwbCbr19 => "opus-swb-cbr-19", Fullband, 29.58, Some(10.74);
    /// Opus, super-wideband, constant bit rate of 22 kbit/s.
    OpusSwbCbr22 => "opus-swb-cbr-22", Fullband, 23.38, Some(10.01);
    /// Opus, super-wideband, constant bit rate of 25 kbit/s.
    OpusSwbCbr25 => "opus-swb-cbr-25", Fullband, 22.644, Some(10.57);
    /// Opus, super-wideband, constant bit rate of 28 kbit/s.
    OpusSwbCbr28 => "opus-swb-cbr-28", Fullband, 23.652, Some(11.67);
    /// Opus, super-wideband, constant bit rate of 31 kbit/s.
    OpusSwbCbr31 => "opus-swb-cbr-31", Fullband, 21.742, Some(11.51);
    /// Opus, super-wideband, constant bit rate of 34 kbit/s.
    OpusSwbCbr34 => "opus-swb-cbr-34", Fullband, 20.62, Some(11.78);
    /// Opus, super-wideband, constant bit rate of 37 kbit/s.
    OpusSwbCbr37 => "opus-swb-cbr-37", Fullband, 16.229, Some(10.62);
    /// Opus, super-wideband, constant bit rate of 40 kbit/s.
    OpusSwbCbr40 => "opus-swb-cbr-40", Fullband, 15.898, Some(11.35);
}

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
        let modes = &CODECS[Self::AmrWb660 as usize..=Self::AmrWb2385 as usize];
        modes.get(usize::from(mode)).map(|(codec, ..)| *codec)
    }

    /// Its encoding names in RTP (IANA, RTP payload format media types).
    #[must_use]
    pub fn encodings(self) -> &'static [&'static str] {
        let encodings: [(&str, &[&str]); 8] = [
            ("g711", &["PCMU", "PCMA"]),
            ("g723.1", &["G723"]),
            ("g729", &["G729"]),
            ("gsm-fr", &["GSM"]),
            ("gsm-efr", &["GSM-EFR"]),
            ("amr-wb", &["AMR-WB"]),
            ("evs", &["EVS"]),
            ("opus", &["opus"]),
        ];
        encodings.iter().find(|(begin, _)| self.name().starts_with(begin)).map_or(&[], |(_, it)| it)
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
    fn each_codec_has_an_encoding() {
        assert!(Codec::all().iter().all(|it| !it.encodings().is_empty()));
        assert_eq!(Codec::OpusSwbVbr25.encodings(), ["opus"]);
    }

    #[test]
    fn modes_of_amr_wb_are_codecs() {
        let names: Vec<_> = (0..=255).filter_map(Codec::amr_wb).map(Codec::name).collect();
        assert_eq!((names.len(), names[0], names[8]), (9, "amr-wb-6.6", "amr-wb-23.85"));
        assert!((0..9).all(|mode| Codec::amr_wb(mode).map(Codec::scale) == Some(Scale::Wideband)));
    }
}
