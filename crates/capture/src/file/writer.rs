//! Writes a capture to a file, or to a set of them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wirestamp_clock::{Domain, Time, Utc};

use super::buffer::{Buffer, LostPackets, ZstdFrames};
use super::format::Encoder;
use super::pcapng::Statistics;
use super::raw::{PacketComment, RawValue};
use super::set::FileSet;
use super::times::{now, since_epoch};
use super::{Destination, Format, Provenance};
use crate::{CaptureLoss, CapturedPacket, Error, Facts, Ledger, Sink};

/// With compression, a pause ends a zstd frame only if it is this old: frames of few packets compress badly.
const FRAME_AGE: Duration = Duration::from_secs(1);

/// Writes a capture.
pub struct Writer {
    set: FileSet,
    format: Format,
    facts: Facts,
    /// Provenance in the interface block.
    provenance: Provenance,
    /// Clock domain whose raw values are written, and the name of its clock.
    raw: Option<(Domain, String)>,
    file: OpenFile,
    /// Paths of the set's files, the newest last.
    paths: Vec<PathBuf>,
    started: Duration,
    flushed: Instant,
    /// Packets written, the last one's time, and the max error of a stamp.
    packets: u64,
    last: Time<Utc>,
    error_ns: i64,
    /// Packets that the capture lost before they reached the writer.
    missed: u64,
    /// Packets of earlier files that could not be written.
    lost: LostPackets,
}

/// The current file.
struct OpenFile {
    path: PathBuf,
    encoder: Encoder,
    buffer: Buffer,
}

impl Writer {
    /// Creates the pcapng file at `path`, or uses standard output for `-`, and writes its header. `provenance` has
    /// the error of stamps at the start of the capture.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn create(path: &Path, facts: &Facts, provenance: Provenance) -> Result<Self, Error> {
        Self::to(&Destination::new(path), facts, provenance)
    }

    /// Creates the first file at `destination` and writes its header, as [`Self::create`] does.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub fn to(
        destination: &Destination,
        facts: &Facts,
        provenance: Provenance,
    ) -> Result<Self, Error> {
        let (format, provenance, started) = (destination.format, provenance.with_margin(), now());
        let set = FileSet::new(&destination.path, destination.rotation, started);
        let path = name(&set, &destination.path)?;
        let file = OpenFile::create(path.clone(), format, destination.zstd, facts, &provenance)?;
        Ok(Self {
            set,
            format,
            facts: facts.clone(),
            provenance,
            raw: None,
            file,
            paths: vec![path],
            started: since_epoch(started),
            flushed: Instant::now(),
            packets: 0,
            last: Time::from_nanos(0),
            error_ns: 0,
            missed: 0,
            lost: LostPackets::default(),
        })
    }

    /// Also writes the raw value of each packet whose raw value is one of `domain`, that of the clock `name`, in a
    /// comment ([`RawValue`]), if the format has room.
    #[must_use]
    pub fn keep_raw(self, domain: Domain, name: &str) -> Self {
        Self { raw: Some((domain, name.to_owned())), ..self }
    }

    /// The files written, the oldest first. An overwritten file counts as new.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Bytes on the wire of the packets counted by [`Sink::lost`].
    #[must_use]
    pub fn lost_bytes(&self) -> u64 {
        self.all_lost().bytes
    }

    fn all_lost(&self) -> LostPackets {
        let mut lost = self.lost;
        lost.add(self.file.buffer.lost());
        lost
    }

    /// Writes the ledger and the final error, and flushes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self, ledger: &Ledger) -> Result<(), Error> {
        self.end_file(Some(ledger))
    }

    /// Ends the file.
    fn end_file(&mut self, ledger: Option<&Ledger>) -> Result<(), Error> {
        let summary = Statistics {
            started: self.started,
            ended: since_epoch(now().max(self.last)),
            delivered: ledger.map_or(self.packets, |ledger| ledger.delivered),
            ledger,
            provenance: &Provenance { error_ns: self.error_ns, ..self.provenance.clone() },
        };
        let OpenFile { encoder, buffer, .. } = &mut self.file;
        let ended = encoder.end(buffer.pending(), &summary).and_then(|()| buffer.flush());
        ended.map_err(|cause| self.failed(cause))
    }

    /// Ends the file, and continues in the next one of the set.
    fn start_next_file(&mut self) -> Result<(), Error> {
        self.end_file(None)?;
        let path = name(&self.set, &self.file.path)?;
        let zstd = self.file.buffer.compresses();
        let next =
            OpenFile::create(path.clone(), self.format, zstd, &self.facts, &self.provenance)?;
        self.lost.add(self.file.buffer.lost());
        self.file = next;
        self.paths.retain(|earlier| *earlier != path);
        self.paths.push(path);
        if self.missed == 0 { Ok(()) } else { self.write_missed(now()) }
    }

    /// Writes the number of packets missed up to `time`.
    fn write_missed(&mut self, time: Time<Utc>) -> Result<(), Error> {
        let OpenFile { path, encoder, buffer } = &mut self.file;
        encoder
            .lost_by(buffer.pending(), since_epoch(time), self.missed)
            .map_err(|cause| Error::Write { path: path.clone(), cause })
    }

    /// Flushes if the buffer is full.
    fn make_room(&mut self) -> Result<(), Error> {
        if self.file.buffer.is_full() {
            self.flushed = Instant::now();
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.buffer.flush().map_err(|cause| self.failed(cause))
    }

    /// The error for packets that could not be written, and are already counted as lost.
    fn failed(&self, cause: io::Error) -> Error {
        let written = self.packets.saturating_sub(self.all_lost().packets);
        Error::writing(self.file.path.clone(), written, cause)
    }
}

impl Sink for Writer {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        // Before the packet is buffered: otherwise a failure would count it as lost twice.
        self.make_room()?;
        if self.set.rotate(packet.stamp.utc, self.file.buffer.length()) {
            self.start_next_file()?;
        }
        let error_ns = packet.stamp.error.as_nanos();
        // A packet that the network card did not stamp has a value of another clock, which the anchors of the
        // card's clock do not cover.
        let comment = match &self.raw {
            Some((domain, name)) if *domain == packet.stamp.raw.domain => {
                Some(PacketComment::Raw(RawValue::of(&packet.stamp, name)))
            }
            _ => {
                let exceeds = error_ns > self.provenance.error_ns;
                exceeds.then_some(PacketComment::Error { error_ns })
            }
        };
        let OpenFile { encoder, buffer, .. } = &mut self.file;
        encoder.packet(buffer.pending(), packet, comment.as_ref());
        self.packets += 1;
        self.last = packet.stamp.utc;
        self.error_ns = self.error_ns.max(error_ns);
        Ok(())
    }

    /// Writes the total of missed packets at the start and at the end of the interval. A reader computes the loss as
    /// the difference.
    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.make_room()?;
        self.write_missed(missed.from)?;
        self.missed = self.missed.saturating_add(missed.packets);
        self.write_missed(missed.until)
    }

    fn pause(&mut self) -> Result<(), Error> {
        if self.file.buffer.compresses() {
            if self.flushed.elapsed() < FRAME_AGE {
                return Ok(());
            }
            self.flushed = Instant::now();
        }
        self.flush()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.flush()
    }

    fn lost(&self) -> u64 {
        self.all_lost().packets
    }
}

impl OpenFile {
    /// Creates the file at `path` and writes its header.
    fn create(
        path: PathBuf,
        format: Format,
        zstd: bool,
        facts: &Facts,
        provenance: &Provenance,
    ) -> Result<Self, Error> {
        let create = || {
            let zstd = zstd.then(ZstdFrames::new).transpose()?;
            let mut buffer = Buffer::create(&path, format.parse_record(), zstd)?;
            let encoder = Encoder::begin(format, buffer.pending(), facts, provenance)?;
            buffer.flush()?;
            Ok((encoder, buffer))
        };
        match create() {
            Ok((encoder, buffer)) => Ok(Self { path, encoder, buffer }),
            Err(cause) => Err(Error::Write { path, cause }),
        }
    }
}

/// The name of the set's file; `path` is for errors.
fn name(set: &FileSet, path: &Path) -> Result<PathBuf, Error> {
    set.name().map_err(|cause| Error::Write { path: path.to_owned(), cause })
}
