//! Converts the stamps of a capture again, with the anchors that were taken before and after them.
//!
//! The file is read twice: once to see what becomes of each packet, before anything is written,
//! and once to write it again; both times as far as it reached when the first reading began, since
//! it may still be growing. Of the new file only the times differ, the errors that our comments
//! state, and the section's length, which is left open.

mod output;
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

/// A packet before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The time that the file had.
    pub before: Time<Utc>,
    /// How far off it could be, as said while it was captured.
    pub error_before: Span,
    /// The time that it gets.
    pub after: Time<Utc>,
    /// How far off that can be.
    pub error_after: Span,
}

/// What becomes of the packets. Serialises with these names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Restamped {
    /// Packets in the file.
    pub packets: u64,
    /// Those that get a new time; the others keep the one they had.
    pub restamped: u64,
    /// Those without a raw value.
    pub without_raw: u64,
    /// Those that another clock stamped than the one of the anchors.
    pub other_clock: u64,
    /// Those that no anchors surround, and that the nearest ones would not improve.
    pub outside: u64,
    /// Those with a new time of which it is not known that they were stamped in the boot that the
    /// anchors were taken in: the clock has the same name, and one of the two boots is unknown.
    pub by_name: u64,
}

/// Is told the share of the capture that was read, 0 to 1, in each of the two readings, and may
/// break it off.
pub type Watch<'w> = dyn FnMut(f64) -> ControlFlow<()> + 'w;

/// So many blocks are read between two looks at the watch.
const WATCHED: u64 = 1024;

/// A capture that is about to be written again.
pub struct Restamp<'a> {
    path: PathBuf,
    file: Arc<File>,
    /// The bytes of it that are read.
    length: u64,
    anchors: &'a AnchorFile,
    /// The raw values from the first anchor to the last.
    surrounded: RangeInclusive<u64>,
    /// Those of all sections.
    interfaces: Vec<Interface>,
    counts: Restamped,
}

/// A reading of the capture.
type Blocks = PcapNgReader<Take<Arc<File>>>;

/// What is known of an interface of the file.
struct Interface {
    provenance: Option<Provenance>,
    /// Whether its packets may have been stamped by the clock that the anchors are of.
    may_match: bool,
    /// Whether only the clock's name says so.
    by_name: bool,
    nanoseconds: bool,
    restamped: u64,
    /// The largest error of its stamps as they will be.
    error_ns: i64,
}

/// Why a packet keeps its time.
enum Kept {
    WithoutRaw,
    OtherClock,
    Outside,
}

impl<'a> Restamp<'a> {
    /// Reads the capture at `path`, and tells `each` of every packet that gets a new time.
    ///
    /// # Errors
    /// When it cannot be read, is no pcapng, is damaged, or holds no packet that `anchors` can speak
    /// of, or `watch` breaks off; the error says why.
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
            surrounded: surrounded(anchors),
            interfaces: Vec::new(),
            counts: Restamped::default(),
        };
        match kind {
            Kind::Pcapng => {}
            Kind::Zstd => {
                return Err(restamp.refuse("it is compressed; `zstd -d` undoes that"));
            }
            Kind::Gzip => {
                return Err(restamp.refuse("it is compressed; `gunzip` undoes that"));
            }
            Kind::Classic | Kind::Other => {
                let reason = "it is no pcapng, and nothing else has room for raw values";
                return Err(restamp.refuse(reason));
            }
        }
        restamp.read(watch, each)?;
        Ok(restamp)
    }

    /// What becomes of the packets.
    #[must_use]
    pub fn counts(&self) -> Restamped {
        self.counts
    }

    /// The stamp that a packet gets, and its raw value as the file has it.
    ///
    /// Beyond the first and last anchors nothing more may be known than when the packet was fresh;
    /// there the new stamp has to be as good as the old one, as it mostly is for the packets that
    /// came between the last anchor and the end of the capture.
    fn convert<'b>(
        &self,
        packet: &'b EnhancedPacketBlock<'_>,
        interface: &Interface,
    ) -> Result<(RawValue<'b>, Stamp), Kept> {
        let raw =
            packet_comments(packet).find_map(RawValue::from_comment).ok_or(Kept::WithoutRaw)?;
        if !interface.may_match || raw.clock != self.anchors.clock() {
            return Err(Kept::OtherClock);
        }
        let stamp = self.anchors.timeline().convert(raw.raw);
        let surrounded = self.surrounded.contains(&raw.raw);
        let as_good = stamp.error.as_nanos() <= raw.error_ns;
        if (surrounded || as_good) && stamp.error < Span::MAX {
            Ok((raw, stamp))
        } else {
            Err(Kept::Outside)
        }
    }

    fn refuse(&self, reason: impl Into<String>) -> Error {
        Error::Restamp { path: self.path.clone(), reason: reason.into() }
    }

    /// Begins a reading of the capture.
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

    /// The error if `watch` breaks off.
    fn look(&self, watch: &mut Watch<'_>, blocks: &Blocks) -> Result<(), Error> {
        match watch(self.share(blocks)) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(self.refuse("it was stopped before the end")),
        }
    }

    fn damaged(&self, packets: u64, reason: &str) -> Error {
        self.refuse(format!(
            "it is damaged after packet {packets} ({reason}); if it is still being captured, wait \
             for the end, and otherwise copy what is whole with `editcap {} whole.pcapng`",
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

fn surrounded(anchors: &AnchorFile) -> RangeInclusive<u64> {
    let raw = || anchors.timeline().anchors().map(|anchor| anchor.raw);
    raw().min().unwrap_or(0)..=raw().max().unwrap_or(0)
}
