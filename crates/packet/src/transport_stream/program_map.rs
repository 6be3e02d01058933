//! Program maps: the elementary streams of a program (ISO/IEC 13818-1 section 2.4.4.8).

use super::NULL_PID;
use super::section::Section;

/// Bytes of a program map before its descriptors, and of an entry before its own.
const PROGRAM: usize = 4;
const ENTRY: usize = 5;

/// Stream types of video (ISO/IEC 13818-1 table 2-34; from 0x42 on user private): MPEG-1, MPEG-2, MPEG-4, H.264, JPEG 2000,
/// H.265, JPEG XS, H.266, AVS, Dirac, AVS2, VC-1.
const VIDEO: [u8; 12] = [0x01, 0x02, 0x10, 0x1b, 0x21, 0x24, 0x32, 0x33, 0x42, 0xd1, 0xd2, 0xea];
/// Those of audio: MPEG-1, MPEG-2, AAC in ADTS and LATM, AAC, MPEG-H main and auxiliary; user private AC-3 and E-AC-3.
const AUDIO: [u8; 9] = [0x03, 0x04, 0x0f, 0x11, 0x1c, 0x2d, 0x2e, 0x81, 0x87];
/// Private data, which descriptors may state to be audio.
const PRIVATE: u8 = 0x06;
/// Descriptors of AC-3, E-AC-3, DTS and AAC (ETSI EN 300 468).
const AUDIO_DESCRIPTORS: [u8; 4] = [0x6a, 0x7a, 0x7b, 0x7c];
/// Descriptor of a language and of the kind of audio (section 2.6.18), in entries of four bytes.
const LANGUAGE_DESCRIPTOR: u8 = 0x0a;
const LANGUAGE_ENTRY: usize = 4;

/// An elementary stream that a program map refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElementaryStream<'a> {
    /// Kind of the content.
    pub stream_type: u8,
    /// PID of its packets.
    pub pid: u16,
    descriptors: &'a [u8],
}

impl<'a> Section<'a> {
    /// PID of the packets with the clock references of a program map's program; none if it has none.
    #[must_use]
    pub fn clock_pid(&self) -> Option<u16> {
        let [high, low] = *self.content.first_chunk()?;
        let pid = u16::from_be_bytes([high & 0x1f, low]);
        (pid != NULL_PID).then_some(pid)
    }

    /// The elementary streams of a program map.
    pub fn elementary_streams(&self) -> impl Iterator<Item = ElementaryStream<'a>> + 'a {
        let descriptors =
            self.content.first_chunk::<PROGRAM>().map_or(0, |head| length(head[2], head[3]));
        let mut rest = self.content.get(PROGRAM + descriptors..).unwrap_or_default();
        std::iter::from_fn(move || {
            let [stream_type, high, low, length_high, length_low] = *rest.first_chunk::<ENTRY>()?;
            let end = ENTRY + length(length_high, length_low);
            let descriptors = rest.get(ENTRY..end)?;
            rest = &rest[end..];
            let pid = u16::from_be_bytes([high & 0x1f, low]);
            Some(ElementaryStream { stream_type, pid, descriptors })
        })
    }
}

impl ElementaryStream<'_> {
    /// Whether it is video, or audio that is always there: not audio for people with impaired hearing or sight, commentary or
    /// effects (audio type above 0), which may pause.
    #[must_use]
    pub fn is_continuous_medium(&self) -> bool {
        let is_audio = AUDIO.contains(&self.stream_type)
            || self.stream_type == PRIVATE
                && self.descriptors().any(|(tag, _)| AUDIO_DESCRIPTORS.contains(&tag));
        let is_additional = self
            .descriptors()
            .filter(|(tag, _)| *tag == LANGUAGE_DESCRIPTOR)
            .flat_map(|(_, content)| content.chunks_exact(LANGUAGE_ENTRY))
            .any(|entry| entry[LANGUAGE_ENTRY - 1] > 0);
        VIDEO.contains(&self.stream_type) || is_audio && !is_additional
    }

    /// Tags and contents.
    fn descriptors(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let mut rest = self.descriptors;
        std::iter::from_fn(move || {
            let [tag, length] = *rest.first_chunk()?;
            let content = rest.get(2..2 + usize::from(length))?;
            rest = &rest[2 + content.len()..];
            Some((tag, content))
        })
    }
}

/// A length of 12 bits.
fn length(high: u8, low: u8) -> usize {
    usize::from(u16::from_be_bytes([high & 0x0f, low]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(content: &[u8]) -> Section<'_> {
        Section { table: 2, extension: 1, is_current: true, number: 0, last_number: 0, content }
    }

    fn streams(content: &[u8]) -> Vec<(u8, u16, bool)> {
        let section = section(content);
        let streams = section.elementary_streams();
        streams.map(|it| (it.stream_type, it.pid, it.is_continuous_medium())).collect()
    }

    #[test]
    fn clock_pid_is_parsed() {
        let of = |pid: [u8; 2]| section(&[&pid[..], &[0xf0, 0]].concat()).clock_pid();
        assert_eq!([of([0xe1, 0x02]), of([0xff, 0xff])], [Some(0x102), None]);
        assert_eq!(section(&[0xe1]).clock_pid(), None);
    }

    #[test]
    fn streams_and_their_kinds_are_parsed() {
        let language = |kind| [0x0a, 4, b'd', b'e', b'u', kind];
        let content = [
            &[0xe1, 0x00, 0xf0, 2, 0x09, 0][..],
            &[0x1b, 0xe1, 0x00, 0xf0, 0],
            &[0x0f, 0xe1, 0x01, 0xf0, 6],
            &language(0),
            &[0x0f, 0xe1, 0x02, 0xf0, 6],
            &language(3),
            &[0x06, 0xe1, 0x03, 0xf0, 3, 0x6a, 1, 0],
            &[0x06, 0xe1, 0x04, 0xf0, 2, 0x59, 0],
        ]
        .concat();
        let expected = [
            (0x1b, 0x100, true),
            (0x0f, 0x101, true),
            (0x0f, 0x102, false),
            (0x06, 0x103, true),
            (0x06, 0x104, false),
        ];
        assert_eq!(streams(&content), expected);
        for length in 0..content.len() {
            assert!(streams(&content[..length]).len() < expected.len());
        }
    }
}
