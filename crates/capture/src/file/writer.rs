//! Writes a capture to a file, or to a set of them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wirestamp_clock::{Domain, Time, Utc};

use super::buffer::{Buffer, Lost, ZstdFrames};
use super::format::Encoder;
use super::pcapng::Statistics;
use super::raw::{PacketComment, RawValue};
use super::set::FileSet;
use super::times::{now, since_epoch};
use super::{Destination, Format, Provenance};
use crate::{CaptureLoss, CapturedPacket, Error, Facts, Ledger, Sink};

/// With compression, a pause ends a frame only so long after the last one: frames of few packets
/// are hardly smaller than those.
const FRAME_AGE: Duration = Duration::from_secs(1);

/// A capture that is being written.
pub struct Writer {
    set: FileSet,
    format: Format,
    facts: Facts,
    /// As the interface block says it.
    provenance: Provenance,
    /// The clock whose raw values are kept.
    keeps_raw: Option<Domain>,
    file: Open,
    /// The paths of the set's files, the newest last.
    paths: Vec<PathBuf>,
    begun: Duration,
    flushed: Instant,
    /// Packets written, the last one's time, and the largest error of a stamp.
    packets: u64,
    last: Time<Utc>,
    error_ns: i64,
    /// Packets that the capture lost before they got here.
    missed: u64,
    /// What of earlier files could not be written.
    lost: Lost,
}

/// The file that is written to.
struct Open {
    path: PathBuf,
    encoder: Encoder,
    buffer: Buffer,
}

impl Writer {
    /// Creates the pcapng file at `path`, or takes standard output for `-`, and writes its head.
    /// `provenance` says how far off the stamps are as the capture begins.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn create(path: &Path, facts: &Facts, provenance: Provenance) -> Result<Self, Error> {
        Self::to(&Destination::new(path), facts, provenance)
    }

    /// Creates the first file at `destination` and writes its head, as [`Self::create`] does.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn to(
        destination: &Destination,
        facts: &Facts,
        provenance: Provenance,
    ) -> Result<Self, Error> {
        let (format, provenance, begun) = (destination.format, provenance.with_room(), now());
        let set = FileSet::new(&destination.path, destination.rotation, begun);
        let path = name(&set, &destination.path)?;
        let file = Open::create(path.clone(), format, destination.zstd, facts, &provenance)?;
        Ok(Self {
            set,
            format,
            facts: facts.clone(),
            provenance,
            keeps_raw: None,
            file,
            paths: vec![path],
            begun: since_epoch(begun),
            flushed: Instant::now(),
            packets: 0,
            last: Time::from_nanos(0),
            error_ns: 0,
            missed: 0,
            lost: Lost::default(),
        })
    }

    /// Writes the raw value of each packet too that the clock of `domain` has stamped, in a comment
    /// ([`RawValue`]), where the format has room.
    #[must_use]
    pub fn keep_raw(self, domain: Domain) -> Self {
        Self { keeps_raw: Some(domain), ..self }
    }

    /// The files that have been written, the oldest first. One that was overwritten counts as new.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Bytes on the wire of the packets that are counted by [`Sink::lost`].
    #[must_use]
    pub fn lost_bytes(&self) -> u64 {
        self.all_lost().bytes
    }

    fn all_lost(&self) -> Lost {
        let mut lost = self.lost;
        lost.add(self.file.buffer.lost());
        lost
    }

    /// Writes the ledger and the final error, and flushes.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self, ledger: &Ledger) -> Result<(), Error> {
        self.conclude(Some(ledger))
    }

    /// Ends the file.
    fn conclude(&mut self, ledger: Option<&Ledger>) -> Result<(), Error> {
        let said = Statistics {
            begun: self.begun,
            ended: since_epoch(now().max(self.last)),
            delivered: ledger.map_or(self.packets, |ledger| ledger.delivered),
            ledger,
            provenance: &Provenance { error_ns: self.error_ns, ..self.provenance.clone() },
        };
        let Open { encoder, buffer, .. } = &mut self.file;
        let ended = encoder.end(buffer.pending(), &said).and_then(|()| buffer.flush());
        ended.map_err(|cause| self.failed(cause))
    }

    /// Ends the file, and goes on in the next one of the set.
    fn go_on(&mut self) -> Result<(), Error> {
        self.conclude(None)?;
        let path = name(&self.set, &self.file.path)?;
        let zstd = self.file.buffer.compresses();
        let next = Open::create(path.clone(), self.format, zstd, &self.facts, &self.provenance)?;
        self.lost.add(self.file.buffer.lost());
        self.file = next;
        self.paths.retain(|earlier| *earlier != path);
        self.paths.push(path);
        if self.missed == 0 { Ok(()) } else { self.note_missed(now()) }
    }

    /// Writes how many packets had been missed by `time`.
    fn note_missed(&mut self, time: Time<Utc>) -> Result<(), Error> {
        let Open { path, encoder, buffer } = &mut self.file;
        encoder
            .lost_by(buffer.pending(), since_epoch(time), self.missed)
            .map_err(|cause| Error::Write { path: path.clone(), cause })
    }

    /// Makes room for what comes next.
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

    /// The error for what could not be written to the file, and is counted as lost by now.
    fn failed(&self, cause: io::Error) -> Error {
        let written = self.packets.saturating_sub(self.all_lost().packets);
        Error::writing(self.file.path.clone(), written, cause)
    }
}

impl Sink for Writer {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        // Before the packet is taken, so that it is not lost twice where that fails.
        self.make_room()?;
        if self.set.turn(packet.stamp.utc, self.file.buffer.length()) {
            self.go_on()?;
        }
        let error_ns = packet.stamp.error.as_nanos();
        // A packet that the network card did not stamp has a value of another clock, which anchors of
        // the card's clock say nothing of.
        let said = if self.keeps_raw == Some(packet.stamp.raw.domain) {
            Some(PacketComment::Raw(RawValue::of(&packet.stamp, &self.provenance.clock)))
        } else {
            let exceeds = error_ns > self.provenance.error_ns;
            exceeds.then_some(PacketComment::Error { error_ns })
        };
        let Open { encoder, buffer, .. } = &mut self.file;
        encoder.packet(buffer.pending(), packet, said.as_ref());
        self.packets += 1;
        self.last = packet.stamp.utc;
        self.error_ns = self.error_ns.max(error_ns);
        Ok(())
    }

    /// Writes how many packets had been missed at both ends of the stretch, so that a reader finds
    /// their difference between them.
    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.make_room()?;
        self.note_missed(missed.from)?;
        self.missed = self.missed.saturating_add(missed.packets);
        self.note_missed(missed.until)
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

impl Open {
    /// Creates the file at `path` and writes its head.
    fn create(
        path: PathBuf,
        format: Format,
        zstd: bool,
        facts: &Facts,
        provenance: &Provenance,
    ) -> Result<Self, Error> {
        let create = || {
            let frames = zstd.then(ZstdFrames::new).transpose()?;
            let mut buffer = Buffer::create(&path, format.first_of(), frames)?;
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

/// The name of the set's file; `path` is that which an error tells.
fn name(set: &FileSet, path: &Path) -> Result<PathBuf, Error> {
    set.name().map_err(|cause| Error::Write { path: path.to_owned(), cause })
}
