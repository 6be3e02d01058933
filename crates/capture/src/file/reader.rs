//! Reads capture files: pcapng, and classic pcap in microseconds or nanoseconds.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::LinkType;

use super::Provenance;
use crate::Error;

/// First bytes of a pcapng section header, the same in both byte orders.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A packet of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The stamp in the file.
    pub time: Time<Utc>,
    /// What the bytes begin with.
    pub link: LinkType,
    /// The captured bytes.
    pub bytes: Cow<'a, [u8]>,
    /// The packet's length on the wire.
    pub length: u32,
}

/// An open capture file.
pub struct Reader {
    path: PathBuf,
    format: Format,
    packets: u64,
    provenance: Option<Provenance>,
    lost: u64,
}

enum Format {
    Next(PcapNgReader<File>),
    Classic(PcapReader<File>),
}

impl Reader {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read, or is not a capture file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let strange = |reason: String| Error::NotACapture { path: path.to_owned(), reason };
        let (file, is_pcapng) = open(path)?;
        let format = if is_pcapng {
            Format::Next(PcapNgReader::new(file).map_err(|e| strange(reason(&e)))?)
        } else {
            Format::Classic(PcapReader::new(file).map_err(|e| strange(reason(&e)))?)
        };
        Ok(Self { path: path.to_owned(), format, packets: 0, provenance: None, lost: 0 })
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
            Format::Next(reader) => next_of_pcapng(reader, &mut self.provenance, &mut self.lost),
            Format::Classic(reader) => next_of_classic(reader),
        };
        let next = next.map_err(damaged)?;
        self.packets += u64::from(next.is_some());
        Ok(next)
    }

    /// What the file has said so far of the clock behind its stamps. The last word on the error
    /// stands at the end of the file.
    #[must_use]
    pub fn provenance(&self) -> Option<&Provenance> {
        self.provenance.as_ref()
    }

    /// Packets that the file says, so far, the capturing system dropped.
    #[must_use]
    pub fn capture_lost(&self) -> u64 {
        self.lost
    }
}

/// Opens the file at `path`, and says whether it is pcapng.
pub(super) fn open(path: &Path) -> Result<(File, bool), Error> {
    let failed = |cause| Error::Read { path: path.to_owned(), cause };
    let mut file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let mut magic = Vec::new();
    file.by_ref().take(4).read_to_end(&mut magic).map_err(failed)?;
    if magic.is_empty() {
        return Err(Error::NotACapture { path: path.to_owned(), reason: "it is empty".into() });
    }
    file.rewind().map_err(failed)?;
    Ok((file, magic == PCAPNG))
}

fn next_of_pcapng<'a>(
    reader: &'a mut PcapNgReader<File>,
    provenance: &mut Option<Provenance>,
    lost: &mut u64,
) -> Result<Option<Packet<'a>>, String> {
    loop {
        let Some(block) = reader.next_block() else { return Ok(None) };
        let (block, state) = block.map_err(|e| reason(&e))?;
        match block {
            Block::InterfaceDescription(block) => note(provenance, interface_comments(&block)),
            Block::InterfaceStatistics(block) => {
                *lost += dropped(&block);
                note(provenance, statistics_comments(&block));
            }
            Block::EnhancedPacket(packet) => {
                let id = packet.interface_id as usize;
                let interface =
                    state.interfaces().get(id).ok_or("a packet of an interface not described")?;
                return Ok(Some(Packet {
                    time: time(packet.timestamp)?,
                    link: link(interface.linktype)?,
                    bytes: Cow::Owned(packet.data.into_owned()),
                    length: packet.original_len,
                }));
            }
            _ => {}
        }
    }
}

fn next_of_classic(reader: &mut PcapReader<File>) -> Result<Option<Packet<'_>>, String> {
    let link = link(reader.header().datalink)?;
    let Some(packet) = reader.next_packet() else { return Ok(None) };
    let packet = packet.map_err(|e| reason(&e))?;
    Ok(Some(Packet {
        time: time(packet.timestamp())?,
        link,
        length: packet.orig_len(),
        bytes: packet.into_data(),
    }))
}

fn note<'a>(provenance: &mut Option<Provenance>, mut comments: impl Iterator<Item = &'a str>) {
    if let Some(found) = comments.find_map(Provenance::from_comment) {
        *provenance = Some(found);
    }
}

pub(super) fn interface_comments<'a>(
    block: &'a InterfaceDescriptionBlock<'_>,
) -> impl Iterator<Item = &'a str> {
    block.options.iter().filter_map(|option| match option {
        InterfaceDescriptionOption::Common(CommonOption::Comment(text)) => Some(&**text),
        _ => None,
    })
}

fn statistics_comments<'a>(
    block: &'a InterfaceStatisticsBlock<'_>,
) -> impl Iterator<Item = &'a str> {
    block.options.iter().filter_map(|option| match option {
        InterfaceStatisticsOption::Common(CommonOption::Comment(text)) => Some(&**text),
        _ => None,
    })
}

fn dropped(block: &InterfaceStatisticsBlock<'_>) -> u64 {
    let count = |option: &InterfaceStatisticsOption<'_>| match option {
        InterfaceStatisticsOption::IsbOsDrop(count) => *count,
        _ => 0,
    };
    block.options.iter().map(count).fold(0, u64::saturating_add)
}

pub(super) fn time(since_epoch: Duration) -> Result<Time<Utc>, String> {
    i64::try_from(since_epoch.as_nanos())
        .map(Time::from_nanos)
        .map_err(|_| format!("a packet from {} s after 1970", since_epoch.as_secs()))
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
        Some(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it ends in the middle of a block".into()
        }
        Some(error) => error.to_string(),
        None => error.to_string(),
    }
}
