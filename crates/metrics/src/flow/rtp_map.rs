//! Codecs of payload types that the user states, where the session description is not in the capture.

use std::num::NonZeroU32;
use std::str::FromStr;

use super::encoding::Encoding;

/// Encoding names of video (the registry "RTP Payload Format Media Types" of IANA); others are audio.
const VIDEO: [&str; 14] = [
    "AV1",
    "CelB",
    "H261",
    "H263",
    "H263-1998",
    "H263-2000",
    "H264",
    "H265",
    "JPEG",
    "MP2T",
    "MP4V-ES",
    "MPV",
    "VP8",
    "VP9",
];

/// The highest payload type: it has 7 bits (RFC 3550 section 5.1).
const MAX_PAYLOAD_TYPE: u8 = 127;

/// Codecs of payload types, for all flows. They take precedence over session descriptions and RFC 3551.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtpMap(Vec<RtpMapEntry>);

/// The codec of a payload type. Its text form is `97=opus/48000`, like `a=rtpmap:97 opus/48000` of a session description
/// (RFC 8866 section 6.6): payload type, encoding name and clock rate in Hz.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtpMapEntry {
    payload_type: u8,
    encoding: Encoding,
}

impl RtpMap {
    /// Encoding of a payload type. The last entry of a number counts.
    pub(super) fn encoding(&self, payload_type: u8) -> Option<Encoding> {
        let entry = self.0.iter().rfind(|entry| entry.payload_type == payload_type);
        entry.map(|entry| entry.encoding.clone())
    }
}

impl FromIterator<RtpMapEntry> for RtpMap {
    fn from_iter<T: IntoIterator<Item = RtpMapEntry>>(entries: T) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl FromStr for RtpMapEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "it is a payload type from 0 to {MAX_PAYLOAD_TYPE}, an encoding name and a clock rate in Hz, such as \
                 97=opus/48000"
            )
        };
        let parse = || {
            let (number, encoding) = text.split_once('=')?;
            // The number of channels may follow.
            let mut parts = encoding.split('/');
            let (name, clock_rate) = (parts.next()?, parts.next()?.parse::<NonZeroU32>().ok()?);
            let payload_type = number.parse().ok().filter(|it| *it <= MAX_PAYLOAD_TYPE)?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
            let video = VIDEO.iter().any(|it| it.eq_ignore_ascii_case(name));
            let encoding = Encoding { name: name.into(), clock_rate, video, encrypted: false };
            is_name.then_some(Self { payload_type, encoding })
        };
        parse().ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> RtpMapEntry {
        text.parse().expect("an entry")
    }

    #[test]
    fn last_entry_of_a_payload_type_counts() {
        let entries = ["97=opus/48000/2", "98=h264/90000", "97=G729/8000"].map(entry);
        let map: RtpMap = entries.into_iter().collect();
        let found = |number| {
            map.encoding(number).map(|it| (it.name.to_string(), it.clock_rate.get(), it.video))
        };
        assert_eq!(found(97), Some(("G729".to_owned(), 8000, false)));
        assert_eq!(found(98), Some(("h264".to_owned(), 90_000, true)));
        assert_eq!(found(0), None);
        assert_eq!(entry("97=opus/48000/2"), entry("97=opus/48000"));
    }

    #[test]
    fn wrong_entries_are_explained() {
        for wrong in
            ["", "97", "97=opus", "97=opus/0", "128=opus/8000", "=a/1", "97=/8000", "97=a b/8000"]
        {
            let error = wrong.parse::<RtpMapEntry>().unwrap_err();
            assert!(error.contains("97=opus/48000"), "{wrong}: {error}");
        }
    }
}
