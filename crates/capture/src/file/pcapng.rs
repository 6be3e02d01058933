//! Writes the blocks of a pcapng file (draft-ietf-opsawg-pcapng). Rare blocks use the library; packets are encoded
//! in the buffer, without allocation.

use std::borrow::Cow;
use std::io;
use std::mem;
use std::time::Duration;

use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness};

use super::buffer::{Record, RecordedPacket};
use super::comment::LedgerComment;
use super::raw::PacketComment;
use super::times::nanos;
use super::{Provenance, comment};
use crate::{CapturedPacket, Facts, Ledger};

const ENHANCED_PACKET: u32 = 6; // block type (section 4.3)
const INTERFACE: usize = 8; // where such a block has the number of the interface
const ORIGINAL_LENGTH: usize = 24; // where it has the packet's length on the wire
const COMMENT: u16 = 1; // opt_comment (section 3.5)
const LIBPCAP: u8 = 0; // if_filter: a filter in libpcap's syntax follows (section 4.2)

/// The library's encoder of a section.
pub(super) struct Section {
    /// Encodes into memory, in the interfaces' unit of time.
    library: PcapNgWriter<Vec<u8>>,
}

/// Statistics at the end of a file. Counts are since the start of the capture, as in the draft (section 4.6), not
/// since the start of the file.
pub(super) struct Statistics<'a> {
    /// Start of the capture, and end of this file.
    pub(super) started: Duration,
    pub(super) ended: Duration,
    /// Packets written.
    pub(super) delivered: u64,
    /// Ledger of the whole capture, available at its end.
    pub(super) ledger: Option<&'a Ledger>,
    /// Provenance with the max error of a stamp so far.
    pub(super) provenance: &'a Provenance,
}

impl Section {
    /// Appends the header of the section and the descriptions of its interfaces.
    pub(super) fn begin<'a>(
        into: &mut Vec<u8>,
        interfaces: impl Iterator<Item = (&'a Facts, &'a Provenance)>,
    ) -> io::Result<Self> {
        let program = concat!("wirestamp ", env!("CARGO_PKG_VERSION"));
        let header = SectionHeaderBlock {
            endianness: Endianness::native(),
            options: vec![SectionHeaderOption::UserApplication(program.into())],
            ..SectionHeaderBlock::default()
        };
        let library = PcapNgWriter::with_section_header(Vec::new(), header);
        let mut section = Self { library: library.map_err(io::Error::other)? };
        for (facts, provenance) in interfaces {
            section.append(into, interface(facts, provenance))?;
        }
        Ok(section)
    }

    /// Appends the statistics of an interface.
    pub(super) fn end(
        &mut self,
        into: &mut Vec<u8>,
        interface: u32,
        summary: &Statistics<'_>,
    ) -> io::Result<()> {
        self.append(into, statistics(interface, summary))
    }

    /// Appends statistics with the number of an interface's packets lost up to a time.
    pub(super) fn lost_by(
        &mut self,
        into: &mut Vec<u8>,
        interface_id: u32,
        time: Duration,
        lost: u64,
    ) -> io::Result<()> {
        let options = vec![InterfaceStatisticsOption::IsbOsDrop(lost)];
        self.append(into, InterfaceStatisticsBlock { interface_id, timestamp: time, options })
    }

    fn append<'a>(&mut self, into: &mut Vec<u8>, block: impl PcapNgBlock<'a>) -> io::Result<()> {
        self.library.write_pcapng_block(block).map_err(io::Error::other)?;
        into.append(&mut mem::take(self.library.get_mut()));
        Ok(())
    }
}

fn interface<'a>(facts: &'a Facts, provenance: &Provenance) -> InterfaceDescriptionBlock<'a> {
    use InterfaceDescriptionOption as Opt;
    let description = format!(
        "received by {}, stamped with {} {}, granularity {} ns",
        facts.method, facts.clock, facts.taken, facts.granularity_ns
    );
    let mut options = vec![
        Opt::IfName(Cow::Borrowed(&facts.interface)),
        Opt::IfDescription(description.into()),
        Opt::IfTsResol(InterfaceTsResolution::NANO),
        Opt::Common(CommonOption::Comment(comment::of(provenance).into())),
    ];
    // The length of an option has 16 bits; longer filters are not stored.
    if let Some(filter) = facts.filter.as_ref().filter(|filter| filter.len() < 65_535) {
        let option = [&[LIBPCAP], filter.as_bytes()].concat();
        options.push(Opt::IfFilter(option.into()));
    }
    InterfaceDescriptionBlock {
        linktype: DataLink::from(facts.link.number()),
        snaplen: facts.snaplen,
        options,
    }
}

fn statistics<'a>(interface_id: u32, summary: &Statistics<'_>) -> InterfaceStatisticsBlock<'a> {
    use InterfaceStatisticsOption as Opt;
    let mut options = vec![
        Opt::IsbStartTime(summary.started),
        Opt::IsbEndTime(summary.ended),
        Opt::IsbUsrDeliv(summary.delivered),
        Opt::Common(CommonOption::Comment(comment::of(summary.provenance).into())),
    ];
    if let Some(ledger) = summary.ledger {
        options.extend([
            // As in libpcap (pcap_stats(3PCAP)): packets that passed the kernel's filter.
            Opt::IsbIfRecv(ledger.seen),
            Opt::IsbIfDrop(ledger.interface_dropped),
            Opt::IsbFilterAccept(ledger.seen.saturating_sub(ledger.filtered)),
            Opt::IsbOsDrop(ledger.kernel_dropped),
            Opt::Common(CommonOption::Comment(comment::of(&LedgerComment { ledger }).into())),
        ]);
    }
    InterfaceStatisticsBlock { interface_id, timestamp: summary.ended, options }
}

/// Appends the block of a packet of an interface.
pub(super) fn packet(
    into: &mut Vec<u8>,
    interface: u32,
    packet: &CapturedPacket<'_>,
    comment: Option<&PacketComment<'_>>,
) {
    let start = into.len();
    let ticks = nanos(packet.stamp.utc);
    let [high, low] = halves(ticks);
    let captured = length(packet.bytes.len());
    let head = [ENHANCED_PACKET, 0, interface, high, low, captured, packet.length.max(captured)];
    into.extend_from_slice(head.map(u32::to_ne_bytes).as_flattened());
    into.extend_from_slice(packet.bytes);
    pad(into, packet.bytes.len());
    if let Some(comment) = comment {
        option(into, comment);
    }
    // The length is written at both ends.
    let whole = length(into.len() - start + size_of::<u32>()).to_ne_bytes();
    into.extend_from_slice(&whole);
    into[start + 4..start + 8].copy_from_slice(&whole);
}

/// Appends a comment and the end of the options.
fn option(into: &mut Vec<u8>, comment: &PacketComment<'_>) {
    let start = into.len();
    into.extend_from_slice(&COMMENT.to_ne_bytes());
    into.extend_from_slice(&[0; 2]);
    comment::append(into, comment);
    let text = into.len() - start - 4;
    let counted = u16::try_from(text).unwrap_or(u16::MAX);
    into[start + 2..start + 4].copy_from_slice(&counted.to_ne_bytes());
    pad(into, text);
    into.extend_from_slice(&[0; 4]);
}

/// Pads `length` bytes to a multiple of four.
fn pad(into: &mut Vec<u8>, length: usize) {
    let end = into.len() + length.wrapping_neg() % 4;
    // Appending four bytes is faster than one to three.
    into.extend_from_slice(&[0; 4]);
    into.truncate(end);
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
fn halves(number: u64) -> [u32; 2] {
    [(number >> 32) as u32, number as u32]
}

/// The length of memory that holds a packet, which is shorter than 4 GiB.
fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The first block of a sequence in this machine's byte order: type and length come first.
pub(super) fn parse_record(sequence: &[u8]) -> Option<Record> {
    let [a, b, c, d, e, f, g, h] = *sequence.first_chunk()?;
    let length = u32::from_ne_bytes([e, f, g, h]) as usize;
    let is_packet = u32::from_ne_bytes([a, b, c, d]) == ENHANCED_PACKET;
    let word = |place| sequence.get(place..)?.first_chunk().copied().map(u32::from_ne_bytes);
    let packet = is_packet.then(|| RecordedPacket {
        interface: word(INTERFACE).unwrap_or(0),
        length: word(ORIGINAL_LENGTH).unwrap_or(0),
    });
    Some(Record { length, packet })
}
