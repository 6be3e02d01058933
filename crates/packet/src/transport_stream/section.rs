//! Tables that describe the programs of a stream (ISO/IEC 13818-1 section 2.4.4).

use super::TsPacket;

/// Bytes before the length's end.
const HEAD: usize = 3;
/// Bytes of the checksum at the end.
const CHECKSUM: usize = 4;
/// Bytes of the syntax after the length and before the content.
const SYNTAX: usize = 5;

/// A section that is in one packet, with a correct checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Kind of the table: 0 for the program association table, 2 for a program map.
    pub table: u8,
    /// Whether it is valid now, and not only announced.
    pub is_current: bool,
    content: &'a [u8],
}

/// Why a section cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionError {
    /// It continues in the next packet.
    Continued,
    /// The checksum is wrong.
    Checksum,
    /// No section begins in the packet, or its length is impossible.
    Malformed,
}

/// A program of the program association table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Association {
    /// Number of the program; 0 is the network's information.
    pub program: u16,
    /// PID of its map.
    pub pid: u16,
}

impl<'a> Section<'a> {
    /// The first section that begins in a packet.
    ///
    /// # Errors
    /// If the packet does not have the whole section.
    pub fn begin(packet: &TsPacket<'a>) -> Result<Self, SectionError> {
        let payload = packet.payload.filter(|_| packet.begins_unit && !packet.scrambled);
        let (pointer, rest) =
            payload.and_then(<[u8]>::split_first).ok_or(SectionError::Malformed)?;
        let bytes = rest.get(usize::from(*pointer)..).ok_or(SectionError::Malformed)?;
        let [table, high, low, ..] = *bytes else { return Err(SectionError::Continued) };
        let length = HEAD + usize::from(u16::from_be_bytes([high & 0x0f, low]));
        if length < HEAD + SYNTAX + CHECKSUM {
            return Err(SectionError::Malformed);
        }
        let section = bytes.get(..length).ok_or(SectionError::Continued)?;
        if checksum(section) != 0 {
            return Err(SectionError::Checksum);
        }
        let is_current = section[HEAD + 2] & 1 != 0;
        Ok(Self { table, is_current, content: &section[HEAD + SYNTAX..length - CHECKSUM] })
    }

    /// The programs of a program association table (section 2.4.4.3).
    pub fn associations(&self) -> impl Iterator<Item = Association> + 'a {
        self.content.chunks_exact(4).map(|entry| Association {
            program: u16::from_be_bytes([entry[0], entry[1]]),
            pid: u16::from_be_bytes([entry[2] & 0x1f, entry[3]]),
        })
    }
}

/// CRC-32 of MPEG-2 (Annex A): 0 over a section with its checksum.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            crc << 1 ^ if crc & 1 << 31 == 0 { 0 } else { 0x04c1_1db7 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program association table with one program, whose map has PID 0x1000, as ffmpeg writes it.
    const TABLE: [u8; 16] =
        [0, 0xb0, 0x0d, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0, 0x2a, 0xb1, 0x04, 0xb2];

    fn packet(payload: &[u8]) -> TsPacket<'_> {
        TsPacket {
            pid: 0,
            begins_unit: true,
            scrambled: false,
            continuity: 0,
            discontinuity: false,
            clock: None,
            payload: Some(payload),
        }
    }

    #[test]
    fn table_is_parsed_and_its_checksum_is_verified() {
        let payload = [&[1, 0xff][..], &TABLE, &[0xff; 9]].concat();
        let section = Section::begin(&packet(&payload)).expect("a section");
        assert!(section.is_current);
        let programs: Vec<_> = section.associations().collect();
        assert_eq!(
            (section.table, &programs[..]),
            (0, &[Association { program: 1, pid: 0x1000 }][..])
        );
        let mut damaged = payload.clone();
        damaged[10] ^= 1;
        assert_eq!(Section::begin(&packet(&damaged)), Err(SectionError::Checksum));
        assert_eq!(Section::begin(&packet(&payload[..12])), Err(SectionError::Continued));
        assert_eq!(Section::begin(&packet(&[200, 0])), Err(SectionError::Malformed));
    }
}
