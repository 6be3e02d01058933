//! The names of codecs on the command line.

use wirestamp_metrics::emodel::Codec;

const NAMES: [(&str, Codec); 8] = [
    ("g711", Codec::G711),
    ("g711-plc", Codec::G711Concealing),
    ("g723.1-5.3", Codec::G7231Low),
    ("g723.1-6.3", Codec::G7231High),
    ("g729", Codec::G729),
    ("g729a", Codec::G729A),
    ("gsm-fr", Codec::GsmFullRate),
    ("gsm-efr", Codec::GsmEnhancedFullRate),
];

pub(super) fn parse(name: &str) -> Result<Codec, String> {
    let found = NAMES.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, codec)| *codec)
        .ok_or_else(|| format!("choose among {}", NAMES.map(|(name, _)| name).join(", ")))
}

pub(super) fn name(codec: Codec) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == codec).map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_codec_has_a_name_that_leads_to_it() {
        for codec in Codec::ALL {
            assert_eq!(parse(name(codec)), Ok(codec));
        }
        assert!(parse("opus").unwrap_err().contains("g711"));
    }
}
