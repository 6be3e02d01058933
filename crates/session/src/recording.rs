//! Recording of a capture: an optional file, and totals.

use std::path::PathBuf;
use std::sync::Arc;

use wirestamp_capture::file::{AnchorLog, Writer};
use wirestamp_capture::{CaptureLoss, CapturedPacket, Error, Ledger, Sink};
use wirestamp_clock::{ClockService, DifferenceClock, Domain, Span, Stamp};

use crate::figures::{AnchorCount, Figures};
use crate::live::LiveFigures;

/// Packets between updates of the clock's rate on a link that is never idle.
const CLOCK_UPDATE_PACKETS: u64 = 4096;

/// Error below which a stamp's error includes no step: smaller changes of the system clock count as slews.
const MIN_STEP: Span = Span::from_nanos(1_000);

/// A capture's packets, counted and written.
pub struct Recording<'a> {
    clock: &'a ClockService,
    domain: Domain,
    /// Domain of the raw values of most stamps ([`ClockService::raw_domain`]).
    raw_domain: Domain,
    steps_before: u32,
    writer: Option<Writer>,
    /// The file of anchors, and the domain of the raw values that they convert.
    anchors: Option<(AnchorLog, Domain)>,
    /// Why the file of anchors ended early. The recording of packets continues.
    anchors_failed: Option<Error>,
    figures: Figures,
    /// Live figures for other threads.
    live: Option<Arc<LiveFigures>>,
}

impl<'a> Recording<'a> {
    /// A recording of stamps of `domain`, in a file too if there is a writer.
    pub fn new(clock: &'a ClockService, domain: Domain, writer: Option<Writer>) -> Self {
        let steps_before = clock.timeline(domain).steps();
        let figures = Figures::default();
        Self {
            clock,
            domain,
            raw_domain: clock.raw_domain(domain),
            steps_before,
            writer,
            anchors: None,
            anchors_failed: None,
            figures,
            live: None,
        }
    }

    /// Records the clock's anchors too, including those of the last minute.
    #[must_use]
    pub fn keep_anchors(self, log: AnchorLog) -> Self {
        Self { anchors: Some((log, self.clock.raw_domain(self.domain))), ..self }
    }

    /// Publishes the totals in `live`, if there is one, after each packet.
    #[must_use]
    pub fn show_in(self, live: Option<Arc<LiveFigures>>) -> Self {
        Self { live, ..self }
    }

    /// The files so far, the newest last ([`Writer::paths`]).
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        self.writer.as_ref().map_or(&[], Writer::paths)
    }

    /// Ends the file, if there is one, with the capture's ledger. The figures are complete even if the file is not. The
    /// file is complete even if the anchor file is not.
    pub fn finish(mut self, ledger: &Ledger) -> (Figures, Result<(), Error>) {
        self.refresh();
        if let Some((log, domain)) = self.anchors.as_mut().filter(|_| self.anchors_failed.is_none())
        {
            self.anchors_failed = log.finish(&self.clock.timeline(*domain)).err();
        }
        let steps = self.clock.timeline(self.domain).steps();
        self.figures.clock_steps = steps.saturating_sub(self.steps_before);
        self.figures.anchors = self
            .anchors
            .as_ref()
            .map(|(log, _)| AnchorCount { written: log.written(), gaps: log.gaps() });
        self.figures.files = self.writer.as_ref().map_or_else(Vec::new, |w| w.paths().to_vec());
        // Packets that could not be written were captured, but are not in the file.
        self.figures.packets = ledger.delivered;
        let lost = self.writer.as_ref().map_or(0, Writer::lost_bytes);
        self.figures.bytes = self.figures.bytes.saturating_sub(lost);
        let written = self.writer.map_or(Ok(()), |writer| writer.finish(ledger));
        (self.figures, written.and(self.anchors_failed.map_or(Ok(()), Err)))
    }

    /// Clock of the recording.
    pub(crate) fn clock(&self) -> &'a ClockService {
        self.clock
    }

    /// Converter of the time between two recorded stamps, at the current rate.
    pub(crate) fn difference_clock(&self) -> DifferenceClock {
        self.clock.timeline(self.domain).difference()
    }

    /// Updates rate and error from the clock.
    fn refresh(&mut self) {
        self.raw_domain = self.clock.raw_domain(self.domain);
        let timeline = self.clock.timeline(self.domain);
        self.figures.interarrival_ns.set_difference_clock(timeline.difference());
        if let Some((log, domain)) = self.anchors.as_mut().filter(|_| self.anchors_failed.is_none())
        {
            self.anchors_failed = log.update(&self.clock.timeline(*domain)).err();
        }
    }

    /// Whether a step of the system clock changes the difference of this stamp to others, and is not in its error.
    fn is_unbounded(&self, stamp: &Stamp) -> bool {
        let domain = stamp.raw.domain;
        (domain == Domain::Realtime || domain != self.raw_domain) && stamp.error < MIN_STEP
    }
}

impl Sink for Recording<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        if self.figures.packets.is_multiple_of(CLOCK_UPDATE_PACKETS) {
            self.refresh();
        }
        if let Some(writer) = &mut self.writer {
            writer.packet(packet)?;
        }
        let is_unbounded = self.is_unbounded(&packet.stamp);
        let figures = &mut self.figures;
        figures.steps_unbounded |= is_unbounded;
        figures.packets += 1;
        figures.bytes += u64::from(packet.length);
        figures.interarrival_ns.record(packet.stamp);
        figures.error_ns = figures.error_ns.max(Some(packet.stamp.error.as_nanos()));
        if let Some(kernel) = packet.kernel {
            figures.acquisition_lag_ns.record(packet.stamp.utc - kernel);
        }
        if let Some(live) = &self.live {
            live.show(figures, &packet.stamp);
        }
        Ok(())
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.missed(missed))
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.refresh();
        self.writer.as_mut().map_or(Ok(()), Writer::pause)
    }

    fn end(&mut self) -> Result<(), Error> {
        self.writer.as_mut().map_or(Ok(()), Writer::end)
    }

    fn lost(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::lost)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::path::Path;
    use std::{env, fs, io, process};

    use wirestamp_capture::Facts;
    use wirestamp_capture::file::{Provenance, Reader};
    use wirestamp_clock::Counter;

    use super::*;

    fn facts() -> Facts {
        Facts {
            link: wirestamp_packet::LinkType::Ethernet,
            interface: "tap-a".into(),
            method: "ring",
            stamp: "raw",
            taken: "by the acquisition thread",
            clock: "tsc".into(),
            granularity_ns: 10,
            snaplen: 262_144,
            cores: Vec::new(),
            filter: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn failed_anchor_file_keeps_packets_and_is_reported_at_end() {
        let clock = ClockService::start(Counter::select()).unwrap();
        let facts = facts();
        let provenance = Provenance::of(&facts, 0);
        let (reader, pipe) = io::pipe().unwrap();
        let anchors = PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
        let anchors = AnchorLog::create(&anchors, "tsc", &provenance).unwrap();
        drop(reader);
        let path = env::temp_dir().join(format!("wirestamp-recording-{}", process::id()));
        let writer = Writer::create(&path, &facts, provenance).unwrap();
        let mut recording =
            Recording::new(&clock, Domain::Counter, Some(writer)).keep_anchors(anchors);
        let stamp = clock.timeline(Domain::Counter).convert(Counter::select().read());
        for _ in 0..=CLOCK_UPDATE_PACKETS {
            let packet = CapturedPacket { stamp, kernel: None, bytes: &[7; 60], length: 60 };
            recording.packet(&packet).unwrap();
        }
        recording.pause().unwrap();
        let ledger = Ledger { delivered: CLOCK_UPDATE_PACKETS + 1, ..Ledger::default() };
        let (figures, outcome) = recording.finish(&ledger);
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("after 0 anchors: ") && !error.is_broken_pipe());
        assert_eq!(figures.anchors.map(|anchors| anchors.written), Some(0));
        assert_eq!(packets(&path), figures.packets);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn packets_that_were_taken_and_could_not_be_written_are_in_neither_figure() {
        let clock = ClockService::start(Counter::select()).unwrap();
        let (reader, pipe) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
        let writer = Writer::create(&path, &facts(), Provenance::of(&facts(), 0)).unwrap();
        let mut recording = Recording::new(&clock, Domain::Counter, Some(writer));
        let stamp = clock.timeline(Domain::Counter).convert(Counter::select().read());
        let packet = |length| CapturedPacket { stamp, kernel: None, bytes: &[7; 60], length };
        recording.packet(&packet(1514)).unwrap();
        recording.pause().unwrap();
        [60, 90].iter().for_each(|&length| recording.packet(&packet(length)).unwrap());
        drop(reader);
        assert!(recording.end().unwrap_err().is_broken_pipe());
        let ledger = Ledger { delivered: 3 - recording.lost(), ..Ledger::default() };
        let (figures, _) = recording.finish(&ledger);
        assert_eq!((figures.packets, figures.bytes), (1, 1514));
    }

    #[test]
    fn kernel_stamp_without_step_in_its_error_is_noticed() {
        let clock = ClockService::start(Counter::select()).unwrap();
        let exact = clock.timeline(Domain::Realtime).convert(1_790_000_000_000_000_000);
        let around_a_step = Stamp { error: Span::from_nanos(1_000_000), ..exact };
        let mut with_counter = exact;
        with_counter.raw.domain = Domain::Counter;
        let recorded = |domain, stamp| {
            let mut recording = Recording::new(&clock, domain, None);
            let packet = CapturedPacket { stamp, kernel: None, bytes: &[7; 60], length: 60 };
            recording.packet(&packet).unwrap();
            recording.finish(&Ledger::default()).0.steps_unbounded
        };
        assert!(recorded(Domain::Realtime, exact));
        assert!(!recorded(Domain::Realtime, around_a_step));
        assert!(!recorded(Domain::Counter, with_counter));
    }

    fn packets(path: &Path) -> u64 {
        let mut reader = Reader::open(path).unwrap();
        let mut packets = 0;
        while reader.next_packet().unwrap().is_some() {
            packets += 1;
        }
        packets
    }
}
