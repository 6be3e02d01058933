//! Writes pcapng with nanoseconds. The file is whole after every flush, whatever happens next:
//! blocks leave in one piece, and one that a full disk cut short is taken back.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
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
use wirestamp_clock::{Time, Utc};

use super::Provenance;
use crate::{Captured, Error, Facts, Ledger, Sink};

/// Blocks are collected up to this size before they are written.
const BUFFER_BYTES: usize = 256 * 1024;

/// A pcapng file that is being written.
pub struct Writer {
    blocks: PcapNgWriter<Buffer>,
    path: PathBuf,
    provenance: Provenance,
    last: Duration,
}

impl Writer {
    /// Creates the file at `path`, or takes standard output for `-`, and writes its head.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn create(path: &Path, facts: &Facts, provenance: Provenance) -> Result<Self, Error> {
        let failed = |cause| Error::Write { path: path.to_owned(), cause };
        let buffer = if path == Path::new("-") {
            Buffer::new(Box::new(io::stdout()), None)
        } else {
            let file = File::create(path).map_err(failed)?;
            let handle = file.try_clone().map_err(failed)?;
            // A FIFO or a device cannot be cut back, and is not meant to be.
            let regular = handle.metadata().is_ok_and(|metadata| metadata.is_file());
            Buffer::new(Box::new(file), regular.then_some(handle))
        };
        let section = SectionHeaderBlock {
            endianness: Endianness::native(),
            options: vec![SectionHeaderOption::UserApplication(
                concat!("wirestamp ", env!("CARGO_PKG_VERSION")).into(),
            )],
            ..SectionHeaderBlock::default()
        };
        let blocks = PcapNgWriter::with_section_header(buffer, section)
            .map_err(|error| failed(io::Error::other(error)))?;
        let mut writer = Self { blocks, path: path.to_owned(), provenance, last: Duration::ZERO };
        writer.interface(facts)?;
        writer.flush()?;
        Ok(writer)
    }

    fn interface(&mut self, facts: &Facts) -> Result<(), Error> {
        use InterfaceDescriptionOption as Opt;
        let said = format!("stamped {} with {}", facts.taken, facts.clock);
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: facts.snaplen,
            options: vec![
                Opt::IfName(Cow::Borrowed(&facts.interface)),
                Opt::IfDescription(said.into()),
                Opt::IfTsResol(InterfaceTsResolution::NANO),
                Opt::Common(CommonOption::Comment(self.provenance.to_comment().into())),
            ],
        };
        self.block(block)
    }

    /// Writes the ledger and the final error, and flushes.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self, ledger: &Ledger) -> Result<(), Error> {
        use InterfaceStatisticsOption as Opt;
        let block = InterfaceStatisticsBlock {
            interface_id: 0,
            timestamp: self.last,
            options: vec![
                Opt::IsbIfDrop(ledger.interface_dropped),
                Opt::IsbFilterAccept(ledger.seen - ledger.filtered.min(ledger.seen)),
                Opt::IsbOsDrop(ledger.kernel_dropped),
                Opt::IsbUsrDeliv(ledger.delivered),
                Opt::Common(CommonOption::Comment(self.provenance.to_comment().into())),
            ],
        };
        self.block(block)?;
        self.flush()
    }

    fn block<'a>(&mut self, block: impl PcapNgBlock<'a>) -> Result<(), Error> {
        let written = self.blocks.write_pcapng_block(block);
        written.map(drop).map_err(|error| self.failed(io::Error::other(error)))
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.blocks.get_mut().flush().map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: io::Error) -> Error {
        Error::Write { path: self.path.clone(), cause }
    }
}

impl Sink for Writer {
    fn packet(&mut self, packet: &Captured<'_>) -> Result<(), Error> {
        self.last = since_epoch(packet.stamp.utc);
        self.provenance.error_ns = self.provenance.error_ns.max(packet.stamp.error.as_nanos());
        self.block(EnhancedPacketBlock {
            interface_id: 0,
            timestamp: self.last,
            original_len: packet.length,
            data: Cow::Borrowed(packet.bytes),
            options: Vec::new(),
        })?;
        if self.blocks.get_ref().pending.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.flush()
    }
}

/// pcapng counts from 1970 and has no time before it.
fn since_epoch(utc: Time<Utc>) -> Duration {
    Duration::from_nanos(u64::try_from(utc.as_nanos()).unwrap_or(0))
}

/// Collects whole blocks, and lets them out only as such.
struct Buffer {
    out: Box<dyn Write + Send>,
    /// The same file, where it is one that can be cut back.
    file: Option<File>,
    pending: Vec<u8>,
    /// Bytes of whole blocks in the file.
    written: u64,
}

impl Buffer {
    fn new(out: Box<dyn Write + Send>, file: Option<File>) -> Self {
        Self { out, file, pending: Vec::with_capacity(2 * BUFFER_BYTES), written: 0 }
    }
}

// `Write`, because that is what the library encodes blocks into.
impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut done = 0;
        let result = self.write_out(&mut done);
        if result.is_err() {
            done = whole_blocks(&self.pending, done);
            if let Some(file) = &mut self.file {
                // Where even this fails the file ends in part of a block, which readers report.
                let end = self.written + done as u64;
                let _ = file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end)));
            }
        }
        self.written += done as u64;
        self.pending.clear();
        result
    }
}

impl Buffer {
    /// Writes what is pending; `done` counts the bytes that went out, also when the rest cannot.
    fn write_out(&mut self, done: &mut usize) -> io::Result<()> {
        while *done < self.pending.len() {
            match self.out.write(&self.pending[*done..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => *done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.flush()
    }
}

/// How many of the first `written` bytes of a run of blocks are whole ones. A block's second word
/// is its length.
fn whole_blocks(blocks: &[u8], written: usize) -> usize {
    let mut end = 0;
    while let Some(length) = blocks.get(end + 4..end + 8) {
        let length = u32::from_ne_bytes([length[0], length[1], length[2], length[3]]) as usize;
        if length == 0 || end + length > written {
            break;
        }
        end += length;
    }
    end
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A block of `length` bytes, as far as its length field is concerned.
    fn block(length: u32) -> Vec<u8> {
        let mut block = vec![0; length as usize];
        block[4..8].copy_from_slice(&length.to_ne_bytes());
        block
    }

    #[test]
    fn only_whole_blocks_count_as_written() {
        let blocks = [block(12), block(32), block(16)].concat();
        assert_eq!(whole_blocks(&blocks, 60), 60);
        assert_eq!(whole_blocks(&blocks, 59), 44);
        assert_eq!(whole_blocks(&blocks, 12), 12);
        assert_eq!(whole_blocks(&blocks, 11), 0);
        assert_eq!(whole_blocks(&[], 0), 0);
    }

    #[test]
    fn a_block_that_does_not_fit_is_taken_back() {
        /// Has room for so many bytes, like a disk that fills.
        struct Disk(File, usize);
        impl Write for Disk {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let fit = bytes.len().min(self.1);
                self.1 -= fit;
                if fit == 0 {
                    Err(io::ErrorKind::StorageFull.into())
                } else {
                    self.0.write(&bytes[..fit])
                }
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let file = tempfile::tempfile().unwrap();
        let disk = Disk(file.try_clone().unwrap(), 50);
        let mut buffer = Buffer::new(Box::new(disk), Some(file.try_clone().unwrap()));
        buffer.write_all(&block(24)).unwrap();
        buffer.flush().unwrap();
        buffer.write_all(&[block(20), block(20)].concat()).unwrap();
        let error = buffer.flush().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.metadata().unwrap().len(), 44);
    }
}
