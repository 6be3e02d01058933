//! Writes pcapng with nanoseconds.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
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

use super::buffer::{BUFFER_BYTES, Buffer};
use super::{Provenance, RawValue};
use crate::{Captured, Error, Facts, Ledger, Sink};

/// A pcapng file that is being written.
pub struct Writer {
    blocks: PcapNgWriter<Buffer>,
    path: PathBuf,
    provenance: Provenance,
    keeps_raw: bool,
    last: Duration,
}

impl Writer {
    /// Creates the file at `path`, or takes standard output for `-`, and writes its head.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn create(path: &Path, facts: &Facts, provenance: Provenance) -> Result<Self, Error> {
        let failed = |cause| Error::Write { path: path.to_owned(), cause };
        let buffer = Buffer::create(path).map_err(failed)?;
        let section = SectionHeaderBlock {
            endianness: Endianness::native(),
            options: vec![SectionHeaderOption::UserApplication(
                concat!("wirestamp ", env!("CARGO_PKG_VERSION")).into(),
            )],
            ..SectionHeaderBlock::default()
        };
        let blocks = PcapNgWriter::with_section_header(buffer, section)
            .map_err(|error| failed(io::Error::other(error)))?;
        let (path, last) = (path.to_owned(), Duration::ZERO);
        let mut writer = Self { blocks, path, provenance, keeps_raw: false, last };
        writer.interface(facts)?;
        writer.flush()?;
        Ok(writer)
    }

    /// Writes each packet's raw value too, in a comment ([`RawValue`]).
    #[must_use]
    pub fn keep_raw(self) -> Self {
        Self { keeps_raw: true, ..self }
    }

    fn interface(&mut self, facts: &Facts) -> Result<(), Error> {
        use InterfaceDescriptionOption as Opt;
        let said = format!("stamped with {} {}", facts.clock, facts.taken);
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
        let options = if self.keeps_raw {
            let raw = RawValue::of(&packet.stamp, &self.provenance.clock);
            vec![EnhancedPacketOption::Common(CommonOption::Comment(raw.to_comment().into()))]
        } else {
            Vec::new()
        };
        self.block(EnhancedPacketBlock {
            interface_id: 0,
            timestamp: self.last,
            original_len: packet.length,
            data: Cow::Borrowed(packet.bytes),
            options,
        })?;
        if self.blocks.get_ref().pending() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.flush()
    }

    fn lost(&self) -> u64 {
        self.blocks.get_ref().lost()
    }
}

/// pcapng counts from 1970 and has no time before it.
pub(super) fn since_epoch(utc: Time<Utc>) -> Duration {
    Duration::from_nanos(u64::try_from(utc.as_nanos()).unwrap_or(0))
}
