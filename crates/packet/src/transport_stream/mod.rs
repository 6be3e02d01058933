//! Packets of MPEG transport streams (ISO/IEC 13818-1 section 2.4), as IPTV has them in UDP or RTP.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | packets |
//! | `assembler.rs`, `section.rs` | sections of several packets; one section |
//! | `program_map.rs` | elementary streams of a program |

mod assembler;
mod program_map;
mod section;

pub use assembler::SectionAssembler;
pub use program_map::ElementaryStream;
pub use section::{Association, Section, SectionError, has_correct_checksum};

/// Bytes of a packet.
pub const PACKET_BYTES: usize = 188;
/// Its first byte.
const SYNC: u8 = 0x47;

/// PID of packets without content.
pub const NULL_PID: u16 = 0x1fff;

/// Ticks a second of the program clock reference.
pub const CLOCK_RATE_HZ: u64 = 27_000_000;

/// A packet; borrows its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TsPacket<'a> {
    /// Identifier of the part of the stream, 13 bits.
    pub pid: u16,
    /// The payload begins with a section or with the packet of an elementary stream.
    pub begins_unit: bool,
    /// The payload is encrypted.
    pub scrambled: bool,
    /// Counter of the packets with payload of the PID, 4 bits.
    pub continuity: u8,
    /// The counter and the clock may jump here.
    pub discontinuity: bool,
    /// Program clock reference in ticks of 27 MHz, below 2^33 times 300. None if its extension is above 299.
    pub clock: Option<u64>,
    /// The payload; none if the packet has only an adaptation field.
    pub payload: Option<&'a [u8]>,
}

/// Whether a packet begins with the byte that each one has.
#[must_use]
pub fn begins_packet(bytes: &[u8]) -> bool {
    bytes.first() == Some(&SYNC)
}

/// Whether a receiver before this point marked a packet as damaged.
#[must_use]
pub fn is_marked_damaged(bytes: &[u8]) -> bool {
    bytes.get(1).is_some_and(|byte| byte & 0x80 != 0)
}

/// Whether a datagram's payload may be packets of a transport stream: whole packets, each with its first byte.
#[must_use]
pub fn is_transport_stream(payload: &[u8]) -> bool {
    payload.first() == Some(&SYNC)
        && payload.len().is_multiple_of(PACKET_BYTES)
        && payload.chunks(PACKET_BYTES).all(|packet| packet[0] == SYNC)
}

impl<'a> TsPacket<'a> {
    /// Parses a packet of [`PACKET_BYTES`]. `None` if the first byte or the length of the adaptation field is wrong, or if
    /// bytes are missing.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let [SYNC, high, low, flags, rest @ ..] = bytes.get(..PACKET_BYTES)? else { return None };
        let (adaptation, payload) = match flags >> 4 & 3 {
            1 => (&[][..], Some(rest)),
            2 => (adaptation(rest)?, None),
            3 => {
                let field = adaptation(rest)?;
                (field, Some(&rest[1 + field.len()..]))
            }
            _ => (&[][..], None), // reserved
        };
        Some(Self {
            pid: u16::from_be_bytes([high & 0x1f, *low]),
            begins_unit: high & 0x40 != 0,
            scrambled: flags >> 6 != 0,
            continuity: flags & 0x0f,
            discontinuity: adaptation.first().is_some_and(|flags| flags & 0x80 != 0),
            clock: clock(adaptation),
            payload,
        })
    }

    /// Presentation time stamp of the packet of audio or video that begins here, in ticks of 90 kHz (section 2.4.3.6).
    #[must_use]
    pub fn presentation_time(&self) -> Option<u64> {
        let payload = self.payload.filter(|_| self.begins_unit && !self.scrambled)?;
        let [0, 0, 1, stream, _, _, marker, flags, _, time @ ..] = payload else { return None };
        let [a, b, c, d, e] = *time.first_chunk()?;
        // Other streams, such as subtitles, may have none for a long time.
        let is_audio_or_video = (0xc0..=0xef).contains(stream);
        if !is_audio_or_video || marker >> 6 != 2 || flags & 0x80 == 0 {
            return None;
        }
        let [a, b, c, d, e] = [a, b, c, d, e].map(u64::from);
        Some((a >> 1 & 7) << 30 | b << 22 | (c >> 1) << 15 | d << 7 | e >> 1)
    }
}

/// The adaptation field without its length; none if it is longer than the packet.
fn adaptation(rest: &[u8]) -> Option<&[u8]> {
    let (length, field) = rest.split_first()?;
    field.get(..usize::from(*length))
}

/// Ticks of 27 MHz in one of 90 kHz.
const TICKS: u64 = 300;

/// The program clock reference: 33 bits of 90 kHz, and 9 bits of 27 MHz (section 2.4.3.5).
fn clock(adaptation: &[u8]) -> Option<u64> {
    let [flags, fields @ ..] = adaptation else { return None };
    let bytes: [u8; 6] = *fields.first_chunk().filter(|_| flags & 0x10 != 0)?;
    let word = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let (base, extension) = (word >> 15, word & 0x1ff);
    (extension < TICKS).then_some(base * TICKS + extension)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(head: &[u8]) -> Vec<u8> {
        let mut bytes = head.to_vec();
        bytes.resize(PACKET_BYTES, 0xff);
        bytes
    }

    #[test]
    fn header_is_parsed() {
        let bytes = packet(&[0x47, 0x41, 0x00, 0x17]);
        let found = TsPacket::parse(&bytes).expect("a packet");
        assert_eq!((found.pid, found.continuity, found.begins_unit), (0x100, 7, true));
        assert_eq!((found.clock, found.payload.map(<[u8]>::len)), (None, Some(184)));
        assert!(!found.scrambled && !found.discontinuity && !is_marked_damaged(&bytes));
    }

    #[test]
    fn clock_is_parsed() {
        // 1 s is 90,000 ticks of 90 kHz, and 5 more of 27 MHz.
        let base = 90_000_u64 << 15 | 5;
        let field = [&[7, 0x90][..], &base.to_be_bytes()[2..]].concat();
        let bytes = packet(&[&[0x47, 0x01, 0x00, 0x30][..], &field].concat());
        let found = TsPacket::parse(&bytes).expect("a packet");
        assert_eq!((found.clock, found.discontinuity), (Some(CLOCK_RATE_HZ + 5), true));
        assert_eq!(found.payload.map(<[u8]>::len), Some(176));
        let wrong = packet(&[0x47, 0x01, 0x00, 0x30, 184]);
        assert!(TsPacket::parse(&wrong).is_none() && begins_packet(&wrong));
    }

    #[test]
    fn clock_with_an_impossible_extension_is_rejected() {
        let clock = |extension: u64| {
            let word = ((1_u64 << 33) - 1) << 15 | extension;
            let field = [&[7, 0x10][..], &word.to_be_bytes()[2..]].concat();
            let bytes = packet(&[&[0x47, 0x01, 0x00, 0x30][..], &field].concat());
            TsPacket::parse(&bytes).expect("a packet").clock
        };
        assert_eq!(
            [clock(299), clock(300), clock(511)],
            [Some((1_u64 << 33) * 300 - 1), None, None]
        );
    }

    #[test]
    fn presentation_time_is_parsed() {
        // 0x1_2345_6789 in the layout of 3, 15 and 15 bits with markers.
        let time = 0x1_2345_6789_u64;
        let bits = |shift: u32, mask: u64| u8::try_from(time >> shift & mask).unwrap();
        let stamp = [
            0x21 | bits(30, 7) << 1,
            bits(22, 0xff),
            bits(15, 0x7f) << 1 | 1,
            bits(7, 0xff),
            bits(0, 0x7f) << 1 | 1,
        ];
        let unit = [&[0, 0, 1, 0xe0, 0, 0, 0x80, 0x80, 5][..], &stamp].concat();
        let bytes = packet(&[&[0x47, 0x41, 0x00, 0x10][..], &unit].concat());
        assert_eq!(TsPacket::parse(&bytes).expect("a packet").presentation_time(), Some(time));
        let mut subtitles = bytes.clone();
        subtitles[7] = 0xbd;
        assert_eq!(TsPacket::parse(&subtitles).expect("a packet").presentation_time(), None);
    }

    #[test]
    fn datagrams_are_recognised() {
        let one = packet(&[0x47]);
        assert!(is_transport_stream(&one) && is_transport_stream(&one.repeat(7)));
        assert!(!is_transport_stream(&one[1..]) && !is_transport_stream(&one[..187]));
        assert!(!is_transport_stream(&[]) && !is_transport_stream(&[&one[..], &[0; 188]].concat()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(bytes in prop::collection::vec(any::<u8>(), 180..190)) {
            let mut bytes = bytes;
            bytes[0] = SYNC;
            if let Some(packet) = TsPacket::parse(&bytes) {
                let _ = packet.presentation_time();
                let mut assembler = SectionAssembler::default();
                assembler.record(&packet, |bytes| {
                    let _ = Section::parse(bytes).map(|it| it.elementary_streams().count());
                });
            }
        }
    }
}
