//! Reads capture files: pcapng, and classic pcap in microseconds or nanoseconds.

use std::borrow::Cow;
use std::io::{self, Read};
use std::mem;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcap::{
    PcapHeader, PcapReader, PcapTsResolution, PcapValidationError, RawPcapPacket,
};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgState};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::LinkType;

use super::copied::Copied;
use super::folder;
use super::interface::{Interface, obsolete_packet_comments, packet_comments};
use super::pipe::Pipe;
use super::selection::{Selection, split_interface};
use super::source::{self, Bytes, Chunks, Kind};
use super::times::from_epoch;
use crate::{CaptureLoss, Error, Stop};

/// A packet of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Index of the interface in [`Reader::interfaces`].
    pub interface: usize,
    /// The stamp in the file.
    pub time: Time<Utc>,
    /// Max error of that time, if the file has it.
    pub error: Option<Span>,
    /// Link type of the bytes.
    pub link: LinkType,
    /// Captured bytes.
    pub bytes: Cow<'a, [u8]>,
    /// Packet length on the wire.
    pub length: u32,
    /// Losses of the capture, as far as the file has them between the previous packet and this one. In wirestamp's
    /// files they precede the first packet stamped after them. If a file has statistics only at its end, as those
    /// of dumpcap, the time of losses is unknown: then only [`Reader::capture_lost`] is available.
    pub missed: Vec<CaptureLoss>,
}

impl Packet<'static> {
    /// A packet without content.
    pub(super) const fn empty() -> Self {
        Packet {
            interface: 0,
            time: Time::from_nanos(0),
            error: None,
            link: LinkType::Ethernet,
            bytes: Cow::Borrowed(&[]),
            length: 0,
            missed: Vec::new(),
        }
    }
}

impl Packet<'_> {
    /// The packet without its captured bytes, whose place is free then.
    pub(super) fn without_bytes(self) -> Packet<'static> {
        let Self { interface, time, error, link, length, missed, .. } = self;
        Packet { interface, time, error, link, bytes: Cow::Borrowed(&[]), length, missed }
    }
}

/// An open capture file.
pub struct Reader {
    path: PathBuf,
    format: Format,
    packets: u64,
    interfaces: Interfaces,
    /// Bytes of the last packet read.
    bytes: Vec<u8>,
    /// What was read, if it is copied.
    copied: Option<Copied>,
}

enum Format {
    Next(PcapNgReader<Bytes>),
    Classic(PcapReader<Bytes>),
}

/// The interfaces of all sections so far.
#[derive(Default)]
struct Interfaces {
    all: Vec<Interface>,
    /// Index of the section's first interface: a section numbers its interfaces from 0.
    section: usize,
    /// Losses not yet returned.
    missed: Vec<CaptureLoss>,
    selection: Selection,
}

impl Reader {
    /// Opens the file at `path`, or standard input for `-`. Files compressed with zstd, gzip or xz are decompressed. Of
    /// `file#interface` ([`split_interface`]), only the packets and losses of that interface are read. The captures in a
    /// folder, such as the files of a ring, are read as one, in the order of their first packets; they need the same format.
    ///
    /// # Errors
    /// It cannot be read, or is not a capture file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (file, interface) = split_interface(path);
        let selection = Selection::new(interface);
        if file.is_dir() {
            let first_time =
                |path: &Path| Ok(Self::open(path)?.next_packet()?.map(|packet| packet.time));
            return Self::begin(path, folder::open(&file, first_time)?, selection);
        }
        Self::begin(path, source::file_or_input(&file)?, selection)
    }

    /// Opens the pipe at `path`, to read a capture while it is written. It ends with its writer, or when the stop
    /// is requested, possibly within a packet. Of `pipe#interface`, only that interface is read.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn follow(path: &Path, stop: &Stop) -> Result<Self, Error> {
        let (file, interface) = split_interface(path);
        Self::begin(path, Pipe::open(&file, stop)?, Selection::new(interface))
    }

    fn begin(
        path: &Path,
        bytes: impl Read + Send + 'static,
        selection: Selection,
    ) -> Result<Self, Error> {
        let not_capture = |reason: String| Error::NotACapture { path: path.to_owned(), reason };
        let peeked = source::peek(bytes);
        let peeked = peeked.map_err(|cause| Error::Read { path: path.to_owned(), cause })?;
        let (bytes, kind) = peeked.ok_or_else(|| source::empty(path))?;
        let whole: Bytes = Box::new(Chunks(bytes));
        let (bytes, kind) =
            source::decompressed(whole, kind).map_err(|e| not_capture(io_reason(&e)))?;
        if let Some(reason) = source::unsupported(kind) {
            return Err(not_capture(reason.into()));
        }
        let mut interfaces = Interfaces { selection, ..Interfaces::default() };
        let format = if kind == Kind::Pcapng {
            Format::Next(PcapNgReader::new(bytes).map_err(|e| not_capture(reason(&e)))?)
        } else {
            // A file of this format has one interface without a description.
            interfaces.add(Interface::default());
            let bytes = source::with_max_snap_length(bytes);
            let bytes = bytes.map_err(|cause| Error::Read { path: path.to_owned(), cause })?;
            Format::Classic(PcapReader::new(bytes).map_err(|e| not_capture(reason(&e)))?)
        };
        let (bytes, copied) = (Vec::new(), None);
        Ok(Self { path: path.to_owned(), format, packets: 0, interfaces, bytes, copied })
    }

    /// Copies the file's header, and all that is read after this call.
    ///
    /// # Errors
    /// The header cannot be copied.
    pub(super) fn begin_copy(&mut self) -> Result<(), Error> {
        let copied = match &self.format {
            Format::Next(reader) => Copied::of_section(reader.section().clone()),
            Format::Classic(reader) => Copied::of_classic(reader.header()),
        };
        let copied =
            copied.map_err(|reason| Error::NotACapture { path: self.path.clone(), reason })?;
        self.copied = Some(copied);
        Ok(())
    }

    /// What was read since the copy began and is not taken from it yet.
    pub(super) fn copied(&mut self) -> Option<&mut Copied> {
        self.copied.as_mut()
    }

    /// Whether the file is a classic pcap.
    #[must_use]
    pub fn is_classic(&self) -> bool {
        matches!(self.format, Format::Classic(_))
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next packet, or `None` at the end of the file.
    ///
    /// # Errors
    /// The file is truncated or corrupt. Nothing more can be read.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let packets = self.packets;
        let path = &self.path;
        let failed = |failure| match failure {
            Failure::Damaged(reason) => Error::Damaged { path: path.clone(), packets, reason },
            Failure::LinkType(link) => Error::LinkType { path: path.clone(), link: name(link) },
            Failure::WithoutTime => Error::WithoutTimes { path: path.clone() },
        };
        let next = match &mut self.format {
            Format::Next(reader) => {
                let copied = self.copied.as_mut();
                next_of_pcapng(reader, &mut self.interfaces, &mut self.bytes, copied)
            }
            Format::Classic(reader) => {
                next_of_classic(reader, &mut self.interfaces, self.copied.as_mut())
            }
        };
        let next = match next {
            Ok(next) => next,
            Err(failure) => {
                // No packet of unknown content is copied.
                self.copied.iter_mut().for_each(Copied::leave_out);
                return Err(failed(failure));
            }
        };
        if next.is_none()
            && let Some(reason) = self.interfaces.selection.missing(&self.interfaces.all)
        {
            return Err(Error::NoInterfaceInFile { path: self.path.clone(), reason });
        }
        self.packets += u64::from(next.is_some());
        Ok(next)
    }

    /// The interfaces, as far as the file has been read. Their final errors and losses are at the end of the file.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces.all
    }

    /// Losses of the capture after the last packet read.
    #[must_use]
    pub fn take_missed(&mut self) -> Vec<CaptureLoss> {
        mem::take(&mut self.interfaces.missed)
    }

    /// Packets missing in the file, as far as it has been read; none if it does not say so of an interface that has
    /// packets, as a classic pcap.
    #[must_use]
    pub fn capture_lost(&self) -> Option<u64> {
        lost_by_all(&self.selected().collect::<Vec<_>>())
    }

    /// The interfaces whose packets are read.
    pub(super) fn selected(&self) -> impl Iterator<Item = &Interface> {
        self.interfaces.selected()
    }
}

/// Packets missing in all files with these interfaces; none if it is unknown for one that has packets.
pub(super) fn lost_by_all(all: &[&Interface]) -> Option<u64> {
    // A set of files has the interface several times, and the last one counts all packets since the start.
    let is_last = |(index, interface): &(usize, &&Interface)| {
        let later = all.get(index + 1..).unwrap_or_default();
        !later.iter().any(|later| interface.continues_in(later))
    };
    let last = || all.iter().enumerate().filter(is_last).map(|(_, interface)| *interface);
    let is_stated = last().filter(|it| it.packets > 0).all(|it| it.capture_lost().is_some());
    let lost = last().filter_map(Interface::capture_lost);
    is_stated.then(|| lost.fold(0, u64::saturating_add))
}

/// Why a packet cannot be read.
enum Failure {
    Damaged(String),
    LinkType(DataLink),
    WithoutTime,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Damaged(reason)
    }
}

impl Interfaces {
    fn add(&mut self, interface: Interface) {
        self.selection.add(self.all.len() - self.section, &interface);
        self.all.push(interface);
    }

    /// Those whose packets are read.
    fn selected(&self) -> impl Iterator<Item = &Interface> {
        let all = self.all.iter().enumerate();
        all.filter(|(index, _)| self.selection.has(*index)).map(|(_, interface)| interface)
    }

    /// Index of interface `id` of the section.
    fn index(&self, id: u32) -> Result<usize, String> {
        let index = self.section + id as usize;
        if index < self.all.len() {
            Ok(index)
        } else {
            Err("a packet of an unknown interface".into())
        }
    }
}

/// Copies the packet into `bytes`, because the library's borrow cannot be returned from a loop.
fn next_of_pcapng<'a>(
    reader: &mut PcapNgReader<Bytes>,
    interfaces: &mut Interfaces,
    bytes: &'a mut Vec<u8>,
    mut copied: Option<&mut Copied>,
) -> Result<Option<Packet<'a>>, Failure> {
    loop {
        let Some(block) = next_block(reader, copied.as_deref_mut()) else { return Ok(None) };
        let (block, state) = block?;
        match block {
            Block::SectionHeader(_) => interfaces.section = interfaces.all.len(),
            Block::InterfaceDescription(block) => {
                interfaces.add(Interface::from_description(&block));
            }
            Block::InterfaceStatistics(block) => {
                let index = interfaces.index(block.interface_id)?;
                let missed = interfaces.all[index].read_statistics(&block);
                let is_selected = interfaces.selection.has(index);
                interfaces.missed.extend(missed.filter(|_| is_selected));
            }
            Block::EnhancedPacket(packet) => {
                let index = interfaces.index(packet.interface_id)?;
                if !interfaces.selection.has(index) {
                    leave_out(copied.as_deref_mut());
                    continue;
                }
                let description = &state.interfaces()[packet.interface_id as usize];
                bytes.clear();
                bytes.extend_from_slice(&packet.data);
                return Ok(Some(Packet {
                    interface: index,
                    time: from_epoch(packet.timestamp)?,
                    error: interfaces.all[index].count(packet_comments(&packet)),
                    link: link(description.linktype)?,
                    bytes: Cow::Borrowed(bytes),
                    length: packet.original_len,
                    missed: mem::take(&mut interfaces.missed),
                }));
            }
            Block::Packet(packet) => {
                let id = u32::from(packet.interface_id);
                let index = interfaces.index(id)?;
                if !interfaces.selection.has(index) {
                    leave_out(copied.as_deref_mut());
                    continue;
                }
                let description = &state.interfaces()[id as usize];
                let time = from_epoch(packet.timestamp)?;
                let interface = &mut interfaces.all[index];
                let missed = interface.read_drop_count(packet.drop_count, time);
                interfaces.missed.extend(missed);
                bytes.clear();
                bytes.extend_from_slice(&packet.data);
                return Ok(Some(Packet {
                    interface: index,
                    time,
                    error: interface.count(obsolete_packet_comments(&packet)),
                    link: link(description.linktype)?,
                    bytes: Cow::Borrowed(bytes),
                    length: packet.original_len,
                    missed: mem::take(&mut interfaces.missed),
                }));
            }
            // They belong to the first interface of the section.
            Block::SimplePacket(_) => {
                let index = interfaces.index(0)?;
                leave_out(copied.as_deref_mut());
                if interfaces.selection.has(index) {
                    return Err(Failure::WithoutTime);
                }
            }
            // Blocks without packets, such as names of hosts.
            _ => {}
        }
    }
}

fn leave_out(copied: Option<&mut Copied>) {
    if let Some(copied) = copied {
        copied.leave_out();
    }
}

/// The next block, which is also copied, if anything is.
fn next_block<'a>(
    reader: &'a mut PcapNgReader<Bytes>,
    copied: Option<&mut Copied>,
) -> Option<Result<(Block<'a>, &'a PcapNgState), String>> {
    let Some(copied) = copied else {
        return Some(reader.next_block()?.map_err(|e| reason(&e)));
    };
    let block = reader.next_raw_block()?.map_err(|e| reason(&e));
    Some(block.and_then(|(raw, state)| {
        let block = raw.clone().try_into_block(state).map_err(|e| reason(&e))?;
        copied.block(&raw, &block)?;
        Ok((block, state))
    }))
}

/// Tolerates what tcpdump and tshark tolerate: a fraction of a second or more, which is added, and a length on the wire
/// below the captured one, which is at least that long.
fn next_of_classic<'a>(
    reader: &'a mut PcapReader<Bytes>,
    interfaces: &mut Interfaces,
    copied: Option<&mut Copied>,
) -> Result<Option<Packet<'a>>, Failure> {
    let PcapHeader { datalink, snaplen, ts_resolution, .. } = reader.header();
    let link = link(datalink)?;
    let is_selected = interfaces.selection.has(0);
    let Some(packet) = reader.next_raw_packet().filter(|_| is_selected) else { return Ok(None) };
    let packet = packet.map_err(|e| reason(&e))?;
    if packet.incl_len > snaplen {
        let error = PcapValidationError::IncludedLenTooBig(packet.incl_len, snaplen);
        return Err(reason(&error).into());
    }
    if let Some(copied) = copied {
        copied.record(&packet);
    }
    let RawPcapPacket { ts_sec, ts_frac, incl_len, orig_len, data } = packet;
    let fraction = match ts_resolution {
        PcapTsResolution::MicroSecond => Duration::from_micros(ts_frac.into()),
        PcapTsResolution::NanoSecond => Duration::from_nanos(ts_frac.into()),
    };
    interfaces.all[0].packets += 1;
    Ok(Some(Packet {
        interface: 0,
        time: from_epoch(Duration::from_secs(ts_sec.into()) + fraction)?,
        error: None,
        link,
        length: orig_len.max(incl_len),
        bytes: data,
        missed: Vec::new(),
    }))
}

fn link(link: DataLink) -> Result<LinkType, Failure> {
    LinkType::of_number(link.into()).ok_or(Failure::LinkType(link))
}

/// The name of a link type that is not supported, or its number.
fn name(link: DataLink) -> String {
    match DataLink::from(u32::from(link) & 0xffff) {
        DataLink::Unknown(number) => number.to_string(),
        known => format!("{known:?} ({})", u32::from(known)),
    }
}

/// The reason as text; the library keeps the operating system's error as the source.
pub(super) fn reason(error: &dyn std::error::Error) -> String {
    match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        Some(error) => io_reason(error),
        None => error.to_string(),
    }
}

fn io_reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        "it ends in the middle of a block".into()
    } else {
        error.to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A block of pcapng: its type, its length, its content, and its length again.
    fn block(kind: u32, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len() + 12).unwrap().to_le_bytes();
        [&kind.to_le_bytes()[..], &length, content, &length].concat()
    }

    /// A section with two interfaces of Ethernet, and these blocks.
    fn section(blocks: &[Vec<u8>]) -> Vec<u8> {
        let start = [0x1a2b_3c4d_u32, 1, u32::MAX, u32::MAX].map(u32::to_le_bytes);
        let interface = block(1, [1_u32, 0].map(u32::to_le_bytes).as_flattened());
        [block(0x0a0d_0d0a, start.as_flattened()), interface.clone(), interface, blocks.concat()]
            .concat()
    }

    /// An obsolete Packet Block at this time in microseconds. It has 4 of 60 bytes.
    fn packet_block(interface: u32, drop_count: u32, micros: u32) -> Vec<u8> {
        let head = [interface | drop_count << 16, 0, micros, 4, 60].map(u32::to_le_bytes);
        block(2, &[head.as_flattened(), b"abcd"].concat())
    }

    fn simple_packet_block() -> Vec<u8> {
        block(3, &[4_u32.to_le_bytes(), *b"abcd"].concat())
    }

    fn reader(blocks: &[Vec<u8>], interface: &str) -> (tempfile::TempDir, Reader) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packets.pcapng");
        fs::write(&path, section(blocks)).unwrap();
        let reader = Reader::open(&folder.path().join(format!("packets.pcapng{interface}")));
        (folder, reader.unwrap())
    }

    #[test]
    fn obsolete_packet_blocks_are_packets() {
        let blocks = [packet_block(0, 0, 7), packet_block(1, 0xffff, 8), packet_block(0, 3, 9)];
        let (_folder, mut reader) = reader(&blocks, "");
        let mut packets = Vec::new();
        while let Some(packet) = reader.next_packet().unwrap() {
            let Packet { interface, time, link, ref bytes, length, .. } = packet;
            assert_eq!((link, &bytes[..], length), (LinkType::Ethernet, &b"abcd"[..], 60));
            packets.push((interface, time.as_nanos(), packet.missed));
        }
        let [from, until] = [7000, 9000].map(Time::from_nanos);
        let missed = vec![CaptureLoss { from, until, packets: 3 }];
        assert_eq!(packets, [(0, 7000, vec![]), (1, 8000, vec![]), (0, 9000, missed)]);
        let counts = reader.interfaces().iter().map(|it| (it.packets, it.capture_lost()));
        assert!(counts.eq([(2, Some(3)), (1, None)]));
    }

    #[test]
    fn packets_without_time_stamps_are_refused() {
        let blocks = [packet_block(1, 0, 7), simple_packet_block(), packet_block(1, 0, 8)];
        let (_folder, mut all) = reader(&blocks, "");
        assert!(all.next_packet().unwrap().is_some());
        let error = all.next_packet().unwrap_err();
        assert!(matches!(error, Error::WithoutTimes { .. }), "{error}");
        assert!(error.to_string().contains("Simple Packet Blocks"), "{error}");

        // They belong to the first interface.
        let (_folder, mut second) = reader(&blocks, "#1");
        assert!((0..2).all(|_| second.next_packet().unwrap().is_some()));
        assert!(second.next_packet().unwrap().is_none());
    }

    #[test]
    fn number_selects_an_interface_of_each_section() {
        let second = section(&[packet_block(0, 0, 8), packet_block(1, 0, 9)]);
        let (folder, mut reader) = reader(&[packet_block(1, 0, 7), second], "#1");
        let times = |reader: &mut Reader| {
            let mut times = Vec::new();
            while let Some(packet) = reader.next_packet().unwrap() {
                times.push(packet.time.as_nanos());
            }
            times
        };
        assert_eq!(times(&mut reader), [7000, 9000]);
        let path = folder.path().join("packets.pcapng#1");
        let mut pipe = Reader::follow(&path, &Stop::new().unwrap()).unwrap();
        assert_eq!(times(&mut pipe), [7000, 9000]);
    }
}
