//! Converts the stamps of a capture again, with surrounding anchors.
//!
//! The file is read twice: first to classify each packet before anything is written, then to write the new file.
//! Both passes end where the file ended at the start, because it may still grow. The new file differs only in
//! times, in the errors in wirestamp's comments, and in the section's length, which is left open.

mod survey;
mod write;

use std::fs::File;
use std::io::{Read, Seek, Take};
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use serde::Serialize;
use wirestamp_clock::{AnchorFile, Span, Stamp, Time, Utc};

use super::interface::{description_comments, packet_comments};
use super::source::{self, Kind};
use super::{Provenance, RawValue, reader};
use crate::Error;

/// A packet before and after the conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Time in the file.
    pub before: Time<Utc>,
    /// Error of that time, from the capture.
    pub error_before: Span,
    /// New time.
    pub after: Time<Utc>,
    /// Error of the new time.
    pub error_after: Span,
}

/// Packet counts of a conversion, by outcome. Serialised with these names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restamped {
    /// Packets in the file.
    pub packets: u64,
    /// Packets with a new time; the others keep theirs.
    pub restamped: u64,
    /// Packets without a raw value.
    pub without_raw: u64,
    /// Packets stamped by another clock than that of the anchors.
    pub other_clock: u64,
    /// Packets outside the anchors whose error the nearest anchors would increase.
    pub outside: u64,
    /// Packets with a new time whose boot is not verified: the clock has the same name, and one of the two boots is
    /// unknown.
    pub by_name: u64,
}

/// Receives the share of the capture read, 0 to 1, in each of the two passes, and may abort.
pub type Watch<'w> = dyn FnMut(f64) -> ControlFlow<()> + 'w;

/// Blocks between two progress reports.
const PROGRESS_INTERVAL: u64 = 1024;

/// A surveyed capture, ready to be written.
pub struct Restamp<'a> {
    path: PathBuf,
    file: Arc<File>,
    /// Bytes of the file that are read.
    length: u64,
    anchors: &'a AnchorFile,
    /// Raw values that the anchors, or the kernel's lines beside them, cover.
    covered: RangeInclusive<u64>,
    /// The interfaces of all sections.
    interfaces: Vec<Interface>,
    counts: Restamped,
}

/// A pass over the capture.
type Blocks = PcapNgReader<Take<Arc<File>>>;

/// An interface of the file.
struct Interface {
    provenance: Option<Provenance>,
    /// Whether its packets may have been stamped by the clock of the anchors.
    may_match: bool,
    /// Whether only the clock's name matches.
    by_name: bool,
    nanoseconds: bool,
    restamped: u64,
    /// Max error of its stamps after the conversion.
    error_ns: i64,
}

/// Why a packet keeps its time.
enum Unchanged {
    WithoutRaw,
    OtherClock,
    Outside,
}

impl<'a> Restamp<'a> {
    /// Reads the capture at `path`, and passes every packet that gets a new time to `each`.
    ///
    /// # Errors
    /// It cannot be read, is not pcapng, is damaged, has no packet that `anchors` cover, or `watch` aborts; the
    /// error reports which.
    pub fn survey(
        path: &Path,
        anchors: &'a AnchorFile,
        watch: &mut Watch<'_>,
        each: &mut dyn FnMut(&Conversion),
    ) -> Result<Self, Error> {
        let (file, kind) = source::open(path)?;
        let metadata = file.metadata();
        let length = metadata.map_err(|cause| Error::Read { path: path.to_owned(), cause })?.len();
        let mut restamp = Self {
            path: path.to_owned(),
            file: Arc::new(file),
            length,
            anchors,
            covered: anchors.covered(),
            interfaces: Vec::new(),
            counts: Restamped::default(),
        };
        match kind {
            Kind::Pcapng => {}
            Kind::Zstd => {
                return Err(restamp.error("it is compressed; decompress it with `zstd -d`"));
            }
            Kind::Gzip => {
                return Err(restamp.error("it is compressed; decompress it with `gunzip`"));
            }
            Kind::Xz => {
                return Err(restamp.error("it is compressed; decompress it with `xz -d`"));
            }
            Kind::Classic | Kind::Other => {
                let reason = "it is not pcapng, and other formats have no raw values";
                return Err(restamp.error(reason));
            }
        }
        restamp.read(watch, each)?;
        Ok(restamp)
    }

    /// The packet counts.
    #[must_use]
    pub fn counts(&self) -> Restamped {
        self.counts
    }

    /// The new stamp of a packet, with its raw value in the file.
    ///
    /// Outside the first and last anchors, a new stamp is used only if its error is not larger than the original
    /// error. That is usual for packets between the last anchor and the end of the capture.
    fn convert<'b>(
        &self,
        packet: &'b EnhancedPacketBlock<'_>,
        interface: &Interface,
    ) -> Result<(RawValue<'b>, Stamp), Unchanged> {
        let raw = packet_comments(packet)
            .find_map(RawValue::from_comment)
            .ok_or(Unchanged::WithoutRaw)?;
        if !interface.may_match || raw.clock != self.anchors.clock() {
            return Err(Unchanged::OtherClock);
        }
        let stamp = self.anchors.timeline().convert(raw.raw);
        let covered = self.covered.contains(&raw.raw);
        let as_good = stamp.error.as_nanos() <= raw.error_ns;
        if (covered || as_good) && stamp.error < Span::MAX {
            Ok((raw, stamp))
        } else {
            Err(Unchanged::Outside)
        }
    }

    fn error(&self, reason: impl Into<String>) -> Error {
        Error::Restamp { path: self.path.clone(), reason: reason.into() }
    }

    /// Starts a pass over the capture.
    fn begin(&self) -> Result<Blocks, Error> {
        let mut file = Arc::clone(&self.file);
        file.rewind().map_err(|cause| Error::Read { path: self.path.clone(), cause })?;
        PcapNgReader::new(file.take(self.length)).map_err(|error| {
            let reason = reader::reason(&error);
            Error::NotACapture { path: self.path.clone(), reason }
        })
    }

    /// The share of the capture that `blocks` has read.
    #[expect(clippy::cast_precision_loss, reason = "exact up to 8 PiB, and a share for people")]
    fn share(&self, blocks: &Blocks) -> f64 {
        blocks.bytes_parsed() as f64 / self.length as f64
    }

    /// The error if `watch` aborts.
    fn report_progress(&self, watch: &mut Watch<'_>, blocks: &Blocks) -> Result<(), Error> {
        match watch(self.share(blocks)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(self.error("it was stopped before the end")),
        }
    }

    fn damaged(&self, packets: u64, reason: &str) -> Error {
        self.error(format!(
            "it is damaged after packet {packets}: {reason}; if the capture is still running, wait for \
             its end, otherwise copy the valid part with `editcap {} whole.pcapng`",
            self.path.display()
        ))
    }
}

impl Interface {
    fn of(block: &InterfaceDescriptionBlock<'_>, anchors: &AnchorFile) -> Self {
        use pcap_file::pcapng::blocks::interface_description::InterfaceTsResolution;
        let provenance = description_comments(block).find_map(Provenance::from_comment);
        let boot_id = provenance.as_ref().map_or("", |provenance| &provenance.boot_id);
        let unknown = boot_id.is_empty() || anchors.boot_id().is_empty();
        Self {
            by_name: unknown,
            may_match: unknown || boot_id == anchors.boot_id(),
            nanoseconds: block.ts_resolution() == InterfaceTsResolution::NANO,
            provenance,
            restamped: 0,
            error_ns: 0,
        }
    }
}
