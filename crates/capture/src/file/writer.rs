//! Writes a capture to a file, or to a set of them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, iter};

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

/// Writes the capture of an interface, or of several.
pub struct Writer {
    set: FileSet,
    format: Format,
    interfaces: Vec<WrittenInterface>,
    /// Clock domain whose raw values are written, and the name of its clock.
    raw: Option<(Domain, String)>,
    file: OpenFile,
    /// Paths of the set's files, the newest last.
    paths: Vec<PathBuf>,
    started: Duration,
    flushed: Instant,
    /// Whether each packet is written at once, and the error of the last one if that failed.
    flushes_packets: bool,
    flush_failed: Option<Error>,
}

/// An interface in the files of a writer.
struct WrittenInterface {
    facts: Facts,
    /// Provenance in the interface block.
    provenance: Provenance,
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
        Self::for_interfaces(destination, vec![(facts.clone(), provenance)])
    }

    /// Creates the first file at `destination`, with several interfaces, which are numbered from 0 in this order.
    ///
    /// # Errors
    /// The file cannot be created or written, or its format has no room for several interfaces.
    pub fn for_interfaces(
        destination: &Destination,
        interfaces: Vec<(Facts, Provenance)>,
    ) -> Result<Self, Error> {
        let (format, started) = (destination.format, now());
        let interfaces: Vec<_> = interfaces.into_iter().map(WrittenInterface::new).collect();
        let set = FileSet::new(&destination.path, destination.rotation, started);
        let path = name(&set, &destination.path)?;
        let file = OpenFile::create(path.clone(), format, destination.zstd, &interfaces)?;
        Ok(Self {
            set,
            format,
            interfaces,
            raw: None,
            file,
            paths: vec![path],
            started: since_epoch(started),
            flushed: Instant::now(),
            flushes_packets: false,
            flush_failed: None,
        })
    }

    /// Also writes the raw value of each packet whose raw value is one of `domain`, that of the clock `name`, in a
    /// comment ([`RawValue`]), if the format has room.
    #[must_use]
    pub fn keep_raw(self, domain: Domain, name: &str) -> Self {
        Self { raw: Some((domain, name.to_owned())), ..self }
    }

    /// Writes each packet to the file at once if `flushes`, instead of together with the packets that arrive with it.
    #[must_use]
    pub fn flush_packets(self, flushes: bool) -> Self {
        Self { flushes_packets: flushes, ..self }
    }

    /// The files written, the oldest first. An overwritten file counts as new.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Bytes on the wire of the packets counted by [`Sink::lost`].
    #[must_use]
    pub fn lost_bytes(&self) -> u64 {
        self.lost_of(0).1
    }

    /// Packets of an interface that were accepted and could not be written, and their bytes on the wire.
    #[must_use]
    pub fn lost_of(&self, interface: usize) -> (u64, u64) {
        let mut lost = self.interfaces.get(interface).map_or(LostPackets::default(), |it| it.lost);
        lost.add(self.file.buffer.lost(interface));
        (lost.packets, lost.bytes)
    }

    /// Writes the ledger and the final error, and flushes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self, ledger: &Ledger) -> Result<(), Error> {
        self.finish_all(&[*ledger])
    }

    /// Writes the ledgers of all interfaces and their final errors, and flushes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish_all(mut self, ledgers: &[Ledger]) -> Result<(), Error> {
        self.end_file(ledgers)
    }

    /// Ends the file. Only the last file of a set has `ledgers`.
    fn end_file(&mut self, ledgers: &[Ledger]) -> Result<(), Error> {
        let OpenFile { encoder, buffer, .. } = &mut self.file;
        let mut end = || {
            for ((number, interface), ledger) in
                (0..).zip(&self.interfaces).zip(ledgers.iter().map(Some).chain(iter::repeat(None)))
            {
                let summary = Statistics {
                    started: self.started,
                    ended: since_epoch(now().max(interface.last)),
                    delivered: ledger.map_or(interface.packets, |ledger| ledger.delivered),
                    ledger,
                    provenance: &Provenance {
                        error_ns: interface.error_ns,
                        ..interface.provenance.clone()
                    },
                };
                encoder.end(buffer.pending(), number, &summary)?;
            }
            buffer.flush()
        };
        end().map_err(|cause| self.failed(cause))
    }

    /// Ends the file, and continues in the next one of the set.
    fn start_next_file(&mut self) -> Result<(), Error> {
        self.end_file(&[])?;
        let path = name(&self.set, &self.file.path)?;
        let zstd = self.file.buffer.compresses();
        let next = OpenFile::create(path.clone(), self.format, zstd, &self.interfaces)?;
        for (number, interface) in self.interfaces.iter_mut().enumerate() {
            interface.lost.add(self.file.buffer.lost(number));
        }
        self.file = next;
        self.paths.retain(|earlier| *earlier != path);
        self.paths.push(path);
        for number in 0..self.interfaces.len() {
            if self.interfaces.get(number).is_some_and(|interface| interface.missed > 0) {
                self.write_missed(number, now())?;
            }
        }
        Ok(())
    }

    /// Writes the number of an interface's packets missed up to `time`.
    fn write_missed(&mut self, interface: usize, time: Time<Utc>) -> Result<(), Error> {
        let missed = self.interfaces.get(interface).map_or(0, |interface| interface.missed);
        let OpenFile { path, encoder, buffer } = &mut self.file;
        encoder
            .lost_by(buffer.pending(), id(interface), since_epoch(time), missed)
            .map_err(|cause| Error::Write { path: path.clone(), cause })
    }

    /// Returns the error of a packet that was accepted and not written, once. Flushes if the buffer is full.
    fn make_room(&mut self) -> Result<(), Error> {
        self.flush_failed.take().map_or(Ok(()), Err)?;
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
        let packets: u64 = self.interfaces.iter().map(|interface| interface.packets).sum();
        let lost: u64 = (0..self.interfaces.len()).map(|number| self.lost_of(number).0).sum();
        let written = packets.saturating_sub(lost);
        Error::writing(self.file.path.clone(), written, cause)
    }

    /// Writes a packet of an interface.
    ///
    /// # Errors
    /// As for [`Sink::packet`]; or there is no such interface.
    pub fn packet_of(
        &mut self,
        interface: usize,
        packet: &CapturedPacket<'_>,
    ) -> Result<(), Error> {
        // Before the packet is buffered: otherwise a failure would count it as lost twice.
        self.make_room()?;
        if self.set.rotate(packet.stamp.utc, self.file.buffer.length()) {
            self.start_next_file()?;
        }
        let Some(of) = self.interfaces.get_mut(interface) else {
            return Err(self.failed(io::ErrorKind::InvalidInput.into()));
        };
        let error_ns = packet.stamp.error.as_nanos();
        // A packet that the network card did not stamp has a value of another clock, which the anchors of the
        // card's clock do not cover.
        let comment = match &self.raw {
            Some((domain, name)) if *domain == packet.stamp.raw.domain => {
                Some(PacketComment::Raw(RawValue::of(&packet.stamp, name)))
            }
            _ => {
                let exceeds = error_ns > of.provenance.error_ns;
                exceeds.then_some(PacketComment::Error { error_ns })
            }
        };
        of.packets += 1;
        of.last = packet.stamp.utc;
        of.error_ns = of.error_ns.max(error_ns);
        let OpenFile { encoder, buffer, .. } = &mut self.file;
        encoder.packet(buffer.pending(), id(interface), packet, comment.as_ref());
        if self.flushes_packets {
            // The packet is counted as lost by the buffer. An error now would count it twice.
            self.flush_failed = self.flush().err();
        }
        Ok(())
    }

    /// Writes the total of an interface's missed packets at the start and at the end of the interval. A reader computes the
    /// loss as the difference.
    ///
    /// # Errors
    /// As for [`Sink::packet`].
    pub fn missed_of(&mut self, interface: usize, missed: &CaptureLoss) -> Result<(), Error> {
        self.make_room()?;
        self.write_missed(interface, missed.from)?;
        if let Some(of) = self.interfaces.get_mut(interface) {
            of.missed = of.missed.saturating_add(missed.packets);
        }
        self.write_missed(interface, missed.until)
    }
}

/// The sink of a writer with one interface.
impl Sink for Writer {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.packet_of(0, packet)
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.missed_of(0, missed)
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.flush_failed.take().map_or(Ok(()), Err)?;
        if self.file.buffer.compresses() {
            if self.flushed.elapsed() < FRAME_AGE {
                return Ok(());
            }
            self.flushed = Instant::now();
        }
        self.flush()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.flush_failed.take().map_or(Ok(()), Err)?;
        self.flush()
    }

    fn lost(&self) -> u64 {
        self.lost_of(0).0
    }
}

impl WrittenInterface {
    fn new((facts, provenance): (Facts, Provenance)) -> Self {
        Self {
            facts,
            provenance: provenance.with_margin(),
            packets: 0,
            last: Time::from_nanos(0),
            error_ns: 0,
            missed: 0,
            lost: LostPackets::default(),
        }
    }
}

impl OpenFile {
    /// Creates the file at `path` and writes its header.
    fn create(
        path: PathBuf,
        format: Format,
        zstd: bool,
        interfaces: &[WrittenInterface],
    ) -> Result<Self, Error> {
        let create = || {
            let zstd = zstd.then(ZstdFrames::new).transpose()?;
            let mut buffer = Buffer::create(&path, format.parse_record(), zstd)?;
            let heads = interfaces.iter().map(|it| (&it.facts, &it.provenance));
            let encoder = Encoder::begin(format, buffer.pending(), heads)?;
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

/// The number of an interface in a file.
fn id(interface: usize) -> u32 {
    u32::try_from(interface).unwrap_or(u32::MAX)
}
