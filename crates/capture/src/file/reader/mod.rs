//! Reads capture files: pcapng, and classic pcap in microseconds or nanoseconds.

mod classic;
mod failure;
mod interfaces;
mod packet;
mod pcapng;

#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::mem;
use std::path::{Path, PathBuf};

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;

pub(super) use self::failure::reason;
pub use self::packet::Packet;

use self::failure::{Failure, io_reason, name};
use self::interfaces::Interfaces;
use super::copied::Copied;
use super::folder;
use super::interface::Interface;
use super::pipe::Pipe;
use super::selection::{Selection, split_interface};
use super::source::{self, Bytes, Chunks, Kind};
use crate::{CaptureLoss, Error, Stop};

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
            Failure::NotSupported(reason) => {
                let cause = io::Error::new(io::ErrorKind::Unsupported, reason);
                Error::Read { path: path.clone(), cause }
            }
            Failure::LinkType(link) => Error::LinkType { path: path.clone(), link: name(link) },
            Failure::WithoutTime => Error::WithoutTimes { path: path.clone() },
        };
        let next = match &mut self.format {
            Format::Next(reader) => {
                let copied = self.copied.as_mut();
                pcapng::next_packet(reader, &mut self.interfaces, &mut self.bytes, copied)
            }
            Format::Classic(reader) => {
                classic::next_packet(reader, &mut self.interfaces, self.copied.as_mut())
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
