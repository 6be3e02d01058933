//! Two running captures that meet at one correlator.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use wirestamp_capture::file::Writer;
use wirestamp_capture::{Captured, Error, Ledger, Sink};
use wirestamp_clock::{ClockService, Domain, Stamp};
use wirestamp_metrics::{
    Config, Correlator, Distribution, InterArrival, Observation, Outcome, Point,
};
use wirestamp_packet::{IdentityKey, LinkType, Packet};

/// Where the observations of two points on this machine meet. `record` is told of every outcome.
pub struct Meeting<R> {
    state: Mutex<(Correlator, R)>,
}

impl<R: FnMut(Outcome) + Send> Meeting<R> {
    /// A meeting of two points that have seen nothing yet.
    pub fn new(config: Config, record: R) -> Self {
        Self { state: Mutex::new((Correlator::new(config), record)) }
    }

    /// Decides what is still open.
    pub fn finish(self) {
        let (correlator, mut record) =
            self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        correlator.finish(&mut record);
    }

    /// A poisoned lock means that the other tap's thread has panicked, which ends the run anyway.
    fn lock(&self) -> MutexGuard<'_, (Correlator, R)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One observation point: identifies the packets of a capture and brings them to the meeting.
pub struct Tap<'a, R> {
    point: Point,
    meeting: &'a Meeting<R>,
    clock: &'a ClockService,
    domain: Domain,
    writer: Option<Writer>,
    report: TapReport,
}

/// What one tap saw.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TapReport {
    /// Packets with no identity: not IP, or cut too short. They take no part in the measurement.
    pub unidentified: u64,
    /// Times between packets.
    pub interarrival_ns: InterArrival,
    /// How much later than the kernel's own stamp the raw one was taken; empty where the stamp is
    /// the kernel's.
    pub acquisition_lag_ns: Distribution,
}

impl<'a, R: FnMut(Outcome) + Send> Tap<'a, R> {
    /// A tap for a capture whose stamps are of `domain`. With a writer, it also goes to a file.
    pub fn new(
        point: Point,
        meeting: &'a Meeting<R>,
        clock: &'a ClockService,
        domain: Domain,
        writer: Option<Writer>,
    ) -> Self {
        Self { point, meeting, clock, domain, writer, report: TapReport::default() }
    }

    /// Ends the file, if there is one, with the capture's ledger.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self, ledger: &Ledger) -> Result<TapReport, Error> {
        if let Some(writer) = self.writer {
            writer.finish(ledger)?;
        }
        Ok(self.report)
    }

    /// Takes delays from the raw stamps, with the rate as it is known by now.
    fn refresh(&mut self) {
        let clock = self.clock.timeline(self.domain).difference();
        self.report.interarrival_ns.set_difference_clock(clock);
        self.meeting.lock().0.set_difference_clock(clock);
    }
}

impl<R: FnMut(Outcome) + Send> Sink for Tap<'_, R> {
    fn packet(&mut self, packet: &Captured<'_>) -> Result<(), Error> {
        if let Some(writer) = &mut self.writer {
            writer.packet(packet)?;
        }
        self.report.interarrival_ns.record(packet.stamp);
        if let Some(kernel) = packet.kernel {
            self.report.acquisition_lag_ns.record(packet.stamp.utc - kernel);
        }
        let stamp = packet.stamp;
        match observe(LinkType::Ethernet, packet.bytes, packet.length, stamp) {
            Some(observation) => {
                let (correlator, record) = &mut *self.meeting.lock();
                correlator.observe(self.point, observation, record);
            }
            None => self.report.unidentified += 1,
        }
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.refresh();
        self.writer.as_mut().map_or(Ok(()), Writer::pause)
    }
}

/// The observation of a packet, if it can be recognised elsewhere.
pub(crate) fn observe(
    link: LinkType,
    bytes: &[u8],
    length: u32,
    stamp: Stamp,
) -> Option<Observation> {
    let packet = Packet::parse(link, bytes).ok()?;
    let id = packet.identity(IdentityKey::default())?;
    Some(Observation { id, flow: packet.flow(), length, stamp })
}
