//! Sections of the tables that describe a stream (ISO/IEC 13818-1 section 2.4.4).

/// Bytes before the length's end.
const HEAD: usize = 3;
/// Bytes of the checksum at the end.
const CHECKSUM: usize = 4;
/// Bytes of the syntax after the length and before the content.
const SYNTAX: usize = 5;

/// A section with the long syntax and a correct checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// Kind of the table: 0 for the program association table, 1 for the conditional access table, 2 for a program map.
    pub table: u8,
    /// Number of the program in a program map; of the stream in the program association table.
    pub extension: u16,
    /// Whether it is valid now, and not only announced.
    pub is_current: bool,
    /// Number of the section in its table.
    pub number: u8,
    /// Number of the last section of the table.
    pub last_number: u8,
    /// The bytes between the header and the checksum.
    pub(super) content: &'a [u8],
}

/// Why a section cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionError {
    /// The checksum is wrong.
    Checksum,
    /// It has the short syntax, or its length is impossible.
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
    /// Parses the bytes of a whole section.
    ///
    /// # Errors
    /// If the checksum is wrong, or the section has no long syntax.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, SectionError> {
        let [table, high, low, extension @ .., version, number, last_number] =
            *bytes.first_chunk::<{ HEAD + SYNTAX }>().ok_or(SectionError::Malformed)?;
        let length = HEAD + usize::from(u16::from_be_bytes([high & 0x0f, low]));
        if high & 0x80 == 0 || length != bytes.len() || length < HEAD + SYNTAX + CHECKSUM {
            return Err(SectionError::Malformed);
        }
        if !has_correct_checksum(bytes) {
            return Err(SectionError::Checksum);
        }
        Ok(Self {
            table,
            extension: u16::from_be_bytes(extension),
            is_current: version & 1 != 0,
            number,
            last_number,
            content: &bytes[HEAD + SYNTAX..length - CHECKSUM],
        })
    }

    /// The programs of a program association table (section 2.4.4.3).
    pub fn associations(&self) -> impl Iterator<Item = Association> + 'a {
        self.content.chunks_exact(4).map(|entry| Association {
            program: u16::from_be_bytes([entry[0], entry[1]]),
            pid: u16::from_be_bytes([entry[2] & 0x1f, entry[3]]),
        })
    }
}

/// Whether the checksum at the end of a whole section is correct: CRC-32 of MPEG-2 (Annex A), which is 0 over a section
/// with its checksum.
#[must_use]
pub fn has_correct_checksum(section: &[u8]) -> bool {
    let crc = section.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 24, |crc, _| {
            crc << 1 ^ if crc & 1 << 31 == 0 { 0 } else { 0x04c1_1db7 }
        })
    });
    crc == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program association table with one program, whose map has PID 0x1000, as ffmpeg writes it.
    const TABLE: [u8; 16] =
        [0, 0xb0, 0x0d, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0, 0x2a, 0xb1, 0x04, 0xb2];

    #[test]
    fn table_is_parsed_and_its_checksum_is_verified() {
        let section = Section::parse(&TABLE).expect("a section");
        assert!(section.is_current);
        assert_eq!((section.table, section.extension), (0, 1));
        assert_eq!((section.number, section.last_number), (0, 0));
        let programs: Vec<_> = section.associations().collect();
        assert_eq!(programs, [Association { program: 1, pid: 0x1000 }]);
        let mut damaged = TABLE;
        damaged[10] ^= 1;
        assert_eq!(Section::parse(&damaged), Err(SectionError::Checksum));
        for length in 0..TABLE.len() {
            assert_eq!(Section::parse(&TABLE[..length]), Err(SectionError::Malformed));
        }
        let mut short_syntax = TABLE;
        short_syntax[1] &= 0x7f;
        assert_eq!(Section::parse(&short_syntax), Err(SectionError::Malformed));
    }
}
