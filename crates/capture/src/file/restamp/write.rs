//! The second pass: writes the new file.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::{
    ENHANCED_PACKET_BLOCK, INTERFACE_DESCRIPTION_BLOCK, INTERFACE_STATISTIC_BLOCK,
    SECTION_HEADER_BLOCK,
};
use pcap_file::pcapng::{Block, PcapNgWriter, RawBlock};

use super::{PROGRESS_INTERVAL, Restamp, Watch};
use crate::Error;
use crate::file::buffer::BUFFER_BYTES;
use crate::file::copied::open_ended;
use crate::file::output::Output;
use crate::file::times::since_epoch;
use crate::file::{Provenance, RawValue, reader};

impl Restamp<'_> {
    /// Writes the capture with the new times to `output`, or to standard output for `-`. A regular file is written
    /// as `output.partial` and renamed when it is complete, replacing an existing file; after an error it is
    /// removed.
    ///
    /// # Errors
    /// It cannot be written, the capture changed since the first pass, or `watch` aborts.
    pub fn write(&self, output: &Path, watch: &mut Watch<'_>) -> Result<(), Error> {
        let failed = |cause| self.not_written(output, cause);
        let mut blocks = self.begin()?;
        let mut output = Output::create(output).map_err(failed)?;
        // Its length is open: comments change their size.
        let section = open_ended(blocks.section().clone());
        let pending = Vec::with_capacity(2 * BUFFER_BYTES);
        let mut writer = PcapNgWriter::with_section_header(pending, section)
            .map_err(|error| failed(io::Error::other(error)))?;
        let mut numbering = Numbering::default();
        for number in 0_u64.. {
            if number.is_multiple_of(PROGRESS_INTERVAL) {
                self.report_progress(watch, &blocks)?;
            }
            let Some(block) = blocks.next_raw_block() else { break };
            let (raw, state) = block.map_err(|error| self.changed(&reader::reason(&error)))?;
            let written = if is_unchanged(&raw) {
                writer.write_raw_block(&raw)
            } else {
                let block = raw.try_into_block(state);
                let block = block.map_err(|error| self.changed(&error.to_string()))?;
                writer.write_block(&self.rewritten(block, &mut numbering))
            };
            written.map_err(|error| failed(io::Error::other(error)))?;
            if writer.get_ref().len() >= BUFFER_BYTES {
                output.write(writer.get_mut()).map_err(failed)?;
            }
        }
        if blocks.bytes_parsed() < self.length {
            return Err(self.changed("it has become shorter"));
        }
        output.write(writer.get_mut()).map_err(failed)?;
        output.finish().map_err(failed)
    }

    fn changed(&self, reason: &str) -> Error {
        self.error(format!("it changed while it was read ({reason}); run the command again"))
    }

    /// The error for an `output` that cannot be written, and is therefore removed.
    fn not_written(&self, output: &Path, cause: io::Error) -> Error {
        match cause.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => self.error(format!(
                "no room for {} ({cause}); free some space and run the command again",
                output.display()
            )),
            _ => Error::Write { path: output.to_owned(), cause },
        }
    }

    /// A block of the new file.
    fn rewritten<'b>(&self, block: Block<'b>, numbering: &mut Numbering) -> Block<'b> {
        match block {
            Block::SectionHeader(section) => {
                numbering.begin_section();
                Block::SectionHeader(open_ended(section))
            }
            Block::InterfaceDescription(mut block) => {
                let number = numbering.describe();
                for option in &mut block.options {
                    if let InterfaceDescriptionOption::Common(CommonOption::Comment(text)) = option
                    {
                        self.correct(number, text);
                    }
                }
                Block::InterfaceDescription(block)
            }
            Block::InterfaceStatistics(mut block) => {
                for option in &mut block.options {
                    if let InterfaceStatisticsOption::Common(CommonOption::Comment(text)) = option {
                        self.correct(numbering.of(block.interface_id), text);
                    }
                }
                Block::InterfaceStatistics(block)
            }
            Block::EnhancedPacket(packet) => {
                let number = numbering.of(packet.interface_id);
                Block::EnhancedPacket(self.restamp_packet(number, packet))
            }
            other => other,
        }
    }

    fn restamp_packet<'b>(
        &self,
        number: usize,
        mut packet: EnhancedPacketBlock<'b>,
    ) -> EnhancedPacketBlock<'b> {
        let Some(interface) = self.interfaces.get(number) else { return packet };
        let Ok((raw, stamp)) = self.convert(&packet, interface) else { return packet };
        let comment = RawValue { error_ns: stamp.error.as_nanos(), ..raw }.to_comment();
        packet.timestamp = since_epoch(stamp.utc);
        let ours = packet.options.iter_mut().find_map(|option| match option {
            EnhancedPacketOption::Common(CommonOption::Comment(text)) => {
                RawValue::from_comment(text).is_some().then_some(text)
            }
            _ => None,
        });
        if let Some(text) = ours {
            *text = Cow::Owned(comment);
        }
        packet
    }

    /// Updates the error in a comment on interface `number`.
    fn correct(&self, number: usize, comment: &mut Cow<'_, str>) {
        let Some(interface) = self.interfaces.get(number) else { return };
        if interface.restamped == 0 {
            return;
        }
        if let Some(provenance) = Provenance::from_comment(comment) {
            let error_ns = interface.error_ns;
            let provenance = Provenance { error_ns, restamped: true, ..provenance };
            *comment = Cow::Owned(provenance.to_comment());
        }
    }
}

/// Maps interface numbers, which start with each section, to numbers that start with the file.
#[derive(Default)]
struct Numbering {
    section: usize,
    described: usize,
}

impl Numbering {
    fn begin_section(&mut self) {
        self.section = self.described;
    }

    /// The number of the next interface.
    fn describe(&mut self) -> usize {
        self.described += 1;
        self.described - 1
    }

    fn of(&self, id: u32) -> usize {
        self.section + id as usize
    }
}

/// Whether a block is copied unchanged.
fn is_unchanged(block: &RawBlock<'_>) -> bool {
    !matches!(
        block.type_,
        SECTION_HEADER_BLOCK
            | INTERFACE_DESCRIPTION_BLOCK
            | INTERFACE_STATISTIC_BLOCK
            | ENHANCED_PACKET_BLOCK
    )
}
