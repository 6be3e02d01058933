//! Reads capture files: pcapng, and classic pcap in microseconds or nanoseconds.

use std::borrow::Cow;
use std::io::{self, Read};
use std::mem;
use std::path::{Path, PathBuf};

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::LinkType;

use super::interface::Interface;
use super::pipe::Pipe;
use super::source::{self, Chunks, Kind};
use super::times::from_epoch;
use crate::{CaptureLoss, Error, Stop};

/// A packet of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The interface, as its place in [`Reader::interfaces`].
    pub interface: usize,
    /// The stamp in the file.
    pub time: Time<Utc>,
    /// How far off that can be, if the file says it.
    pub error: Option<Span>,
    /// What the bytes begin with.
    pub link: LinkType,
    /// The captured bytes.
    pub bytes: Cow<'a, [u8]>,
    /// The packet's length on the wire.
    pub length: u32,
    /// What the capture lost, and when, as far as the file says it between the packet before this one
    /// and this one. In our files it stands before the first packet that was stamped after it. Where
    /// statistics stand only at the end of a file, as in those of dumpcap, they do not say when: then
    /// [`Reader::capture_lost`] is all that is known.
    pub missed: Vec<CaptureLoss>,
}

/// An open capture file.
pub struct Reader {
    path: PathBuf,
    format: Format,
    packets: u64,
    interfaces: Interfaces,
    /// The bytes of the packet that was read last.
    bytes: Vec<u8>,
}

enum Format {
    Next(PcapNgReader<Bytes>),
    Classic(PcapReader<Bytes>),
}

/// A file, decompressed if need be. Both readers keep 8 MB of it at the most, whatever lengths it
/// claims.
type Bytes = Box<dyn Read + Send>;

/// The interfaces of all sections so far.
#[derive(Default)]
struct Interfaces {
    all: Vec<Interface>,
    /// Where those of the section begin: it numbers them from 0.
    section: usize,
    /// What they missed, as far as nobody has been told.
    missed: Vec<CaptureLoss>,
}

impl Reader {
    /// Opens the file at `path`, or standard input for `-`. One that is compressed with zstd is read
    /// as if it were not.
    ///
    /// # Errors
    /// When it cannot be read, or is not a capture file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::begin(path, source::file_or_input(path)?)
    }

    /// Opens the pipe at `path`, to read a capture as it is written. It ends when the writer is done,
    /// and where the stop is requested, possibly in the middle of a packet.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn follow(path: &Path, stop: &Stop) -> Result<Self, Error> {
        Self::begin(path, Pipe::open(path, stop)?)
    }

    fn begin(path: &Path, bytes: impl Read + Send + 'static) -> Result<Self, Error> {
        let strange = |reason: String| Error::NotACapture { path: path.to_owned(), reason };
        let begun = source::peek(bytes);
        let begun = begun.map_err(|cause| Error::Read { path: path.to_owned(), cause })?;
        let (bytes, kind) = begun.ok_or_else(|| source::empty(path))?;
        let (bytes, kind): (Bytes, _) = if kind == Kind::Zstd {
            let (bytes, kind) = source::decompress(bytes).map_err(|e| strange(cut_short(&e)))?;
            (Box::new(bytes), kind)
        } else {
            (Box::new(Chunks(bytes)), kind)
        };
        if let Some(reason) = source::obstacle(kind) {
            return Err(strange(reason.into()));
        }
        let mut interfaces = Interfaces::default();
        let format = if kind == Kind::Pcapng {
            Format::Next(PcapNgReader::new(bytes).map_err(|e| strange(reason(&e)))?)
        } else {
            // A file of this format is one interface that it does not describe.
            interfaces.all.push(Interface::default());
            Format::Classic(PcapReader::new(bytes).map_err(|e| strange(reason(&e)))?)
        };
        Ok(Self { path: path.to_owned(), format, packets: 0, interfaces, bytes: Vec::new() })
    }

    /// The path that it was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next packet, or `None` at the end of the file.
    ///
    /// # Errors
    /// When the file is cut short or makes no sense from here on; there is nothing to be read
    /// after that.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let packets = self.packets;
        let path = &self.path;
        let damaged = |reason| Error::Damaged { path: path.clone(), packets, reason };
        let next = match &mut self.format {
            Format::Next(reader) => next_of_pcapng(reader, &mut self.interfaces, &mut self.bytes),
            Format::Classic(reader) => next_of_classic(reader, &mut self.interfaces),
        };
        let next = next.map_err(damaged)?;
        self.packets += u64::from(next.is_some());
        Ok(next)
    }

    /// What the file has said so far of its interfaces. The last word on their errors and losses
    /// stands at the end of the file.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces.all
    }

    /// What the capture lost, and when, as far as the file says it behind the packet that was read
    /// last.
    #[must_use]
    pub fn take_missed(&mut self) -> Vec<CaptureLoss> {
        mem::take(&mut self.interfaces.missed)
    }

    /// Packets that should have been in the file and, as it says so far, are not.
    #[must_use]
    pub fn capture_lost(&self) -> u64 {
        self.interfaces().iter().map(Interface::capture_lost).fold(0, u64::saturating_add)
    }
}

impl Interfaces {
    /// The place of interface `id` of the section.
    fn place(&self, id: u32) -> Result<usize, String> {
        let place = self.section + id as usize;
        if place < self.all.len() {
            Ok(place)
        } else {
            Err("a packet of an interface not described".into())
        }
    }
}

/// Copies the packet into `bytes`, because the library's own cannot be lent on from within a loop.
fn next_of_pcapng<'a>(
    reader: &mut PcapNgReader<Bytes>,
    interfaces: &mut Interfaces,
    bytes: &'a mut Vec<u8>,
) -> Result<Option<Packet<'a>>, String> {
    loop {
        let Some(block) = reader.next_block() else { return Ok(None) };
        let (block, state) = block.map_err(|e| reason(&e))?;
        match block {
            Block::SectionHeader(_) => interfaces.section = interfaces.all.len(),
            Block::InterfaceDescription(block) => {
                interfaces.all.push(Interface::described(&block));
            }
            Block::InterfaceStatistics(block) => {
                let place = interfaces.place(block.interface_id)?;
                let missed = interfaces.all[place].note(&block);
                interfaces.missed.extend(missed);
            }
            Block::EnhancedPacket(packet) => {
                let place = interfaces.place(packet.interface_id)?;
                let described = &state.interfaces()[packet.interface_id as usize];
                bytes.clear();
                bytes.extend_from_slice(&packet.data);
                return Ok(Some(Packet {
                    interface: place,
                    time: from_epoch(packet.timestamp)?,
                    error: interfaces.all[place].count(&packet),
                    link: link(described.linktype)?,
                    bytes: Cow::Borrowed(bytes),
                    length: packet.original_len,
                    missed: mem::take(&mut interfaces.missed),
                }));
            }
            _ => {}
        }
    }
}

fn next_of_classic<'a>(
    reader: &'a mut PcapReader<Bytes>,
    interfaces: &mut Interfaces,
) -> Result<Option<Packet<'a>>, String> {
    let link = link(reader.header().datalink)?;
    let Some(packet) = reader.next_packet() else { return Ok(None) };
    let packet = packet.map_err(|e| reason(&e))?;
    interfaces.all[0].packets += 1;
    Ok(Some(Packet {
        interface: 0,
        time: from_epoch(packet.timestamp())?,
        error: None,
        link,
        length: packet.orig_len(),
        bytes: packet.into_data(),
        missed: Vec::new(),
    }))
}

fn link(link: DataLink) -> Result<LinkType, String> {
    match link {
        DataLink::ETHERNET => Ok(LinkType::Ethernet),
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Ok(LinkType::Ip),
        other => Err(format!(
            "packets of link type {other:?}, of which only Ethernet and IP are understood"
        )),
    }
}

/// The reason in words; the library keeps what the operating system said as the source.
pub(super) fn reason(error: &dyn std::error::Error) -> String {
    match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        Some(error) => cut_short(error),
        None => error.to_string(),
    }
}

fn cut_short(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        "it ends in the middle of a block".into()
    } else {
        error.to_string()
    }
}
