//! What was read of a capture file, as it is there, for a copy without some of its packets.

use std::error::Error;

use pcap_file::Endianness;
use pcap_file::pcap::{PcapHeader, RawPcapPacket};
use pcap_file::pcapng::blocks::section_header::SectionHeaderBlock;
use pcap_file::pcapng::{Block, PcapNgWriter, RawBlock};

/// Headers, blocks or records of a file that are not written yet.
pub(super) struct Copied {
    encoder: Encoder,
    /// Where a packet begins that may be left out; the end if there is none.
    undecided: usize,
}

/// Encodes into memory, in the byte order of the file.
enum Encoder {
    Next(PcapNgWriter<Vec<u8>>),
    Classic(Endianness, Vec<u8>),
}

impl Copied {
    /// Begins with the header of a section.
    pub(super) fn of_section(section: SectionHeaderBlock<'_>) -> Result<Self, String> {
        let writer = PcapNgWriter::with_section_header(Vec::new(), open_ended(section));
        Ok(Self::new(Encoder::Next(writer.map_err(text)?)))
    }

    /// Begins with the header of a classic file.
    pub(super) fn of_classic(header: PcapHeader) -> Result<Self, String> {
        let mut bytes = Vec::new();
        header.write_to(&mut bytes).map_err(text)?;
        Ok(Self::new(Encoder::Classic(header.endianness, bytes)))
    }

    fn new(encoder: Encoder) -> Self {
        let mut copied = Self { encoder, undecided: 0 };
        copied.keep();
        copied
    }

    /// Adds a block of pcapng. A packet may be left out.
    pub(super) fn block(&mut self, raw: &RawBlock<'_>, block: &Block<'_>) -> Result<(), String> {
        let Encoder::Next(writer) = &mut self.encoder else { return Ok(()) };
        let written = match block {
            Block::SectionHeader(section) => {
                writer.write_block(&Block::SectionHeader(open_ended(section.clone())))
            }
            _ => writer.write_raw_block(raw),
        };
        written.map_err(text)?;
        if !matches!(block, Block::EnhancedPacket(_) | Block::Packet(_) | Block::SimplePacket(_)) {
            self.keep();
        }
        Ok(())
    }

    /// Adds a packet of a classic file, which may be left out.
    pub(super) fn record(&mut self, packet: &RawPcapPacket<'_>) {
        let Encoder::Classic(endianness, bytes) = &mut self.encoder else { return };
        let RawPcapPacket { ts_sec, ts_frac, incl_len, orig_len, data } = packet;
        let head = [*ts_sec, *ts_frac, *incl_len, *orig_len].map(match endianness {
            Endianness::Little => u32::to_le_bytes,
            Endianness::Big => u32::to_be_bytes,
        });
        bytes.extend_from_slice(head.as_flattened());
        bytes.extend_from_slice(data);
    }

    /// Keeps the last packet.
    pub(super) fn keep(&mut self) {
        self.undecided = self.pending().len();
    }

    /// Removes the last packet, unless it is kept.
    pub(super) fn leave_out(&mut self) {
        let undecided = self.undecided;
        self.pending().truncate(undecided);
    }

    /// The kept bytes, which the caller writes and removes.
    pub(super) fn kept(&mut self) -> &mut Vec<u8> {
        self.leave_out();
        self.undecided = 0;
        self.pending()
    }

    /// Number of bytes that are not written yet.
    pub(super) fn length(&mut self) -> usize {
        self.pending().len()
    }

    fn pending(&mut self) -> &mut Vec<u8> {
        match &mut self.encoder {
            Encoder::Next(writer) => writer.get_mut(),
            Encoder::Classic(_, bytes) => bytes,
        }
    }
}

/// The header of a section with unknown length (-1).
pub(super) fn open_ended(section: SectionHeaderBlock<'_>) -> SectionHeaderBlock<'_> {
    SectionHeaderBlock { section_length: -1, ..section }
}

fn text(error: impl Error) -> String {
    error.to_string()
}
