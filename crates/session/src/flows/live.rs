//! The flows of a running capture.

use std::sync::{Mutex, MutexGuard, PoisonError};

use wirestamp_capture::{Capture, CaptureLoss, CapturedPacket, Error, Sink, Stop};
use wirestamp_metrics::flow::{FlowConfig, FlowReport};
use wirestamp_packet::LinkType;

use super::table::Flows;
use crate::pair_session::TapReport;
use crate::recording::Recording;

/// Flows reported per lock: one to two milliseconds.
const AT_ONCE: usize = 128;

/// Flows that one thread fills and another reads.
#[derive(Debug)]
pub struct SharedFlows {
    flows: Mutex<Flows>,
}

impl SharedFlows {
    /// An empty table.
    #[must_use]
    pub fn new(config: FlowConfig) -> Self {
        Flows::new(config).into()
    }

    /// Locks the flows. The capture waits while the guard is held.
    ///
    /// A poisoned lock means that the capture's thread has panicked, which ends the run anyway.
    pub fn lock(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the RTP streams that have ended ([`FlowMonitor::ended`]). The flows are locked in parts.
    ///
    /// [`FlowMonitor::ended`]: wirestamp_metrics::flow::FlowMonitor::ended
    pub fn count_ended(&self) {
        let mut counted = 0;
        loop {
            let mut flows = self.lock();
            flows.monitor.count_ended(counted, AT_ONCE);
            counted += AT_ONCE;
            if counted >= flows.monitor.flow_count() {
                return;
            }
        }
    }

    /// Reports of all flows, unordered. The flows are locked in parts, so the capture rarely waits. Later reports may
    /// therefore include some newer packets.
    pub fn reports(&self) -> Vec<FlowReport> {
        let (mut reports, mut reported) = (Vec::new(), 0);
        loop {
            let mut flows = self.lock();
            reports.extend(flows.monitor.some_flows(reported, AT_ONCE));
            reported += AT_ONCE;
            if reported >= flows.monitor.flow_count() {
                return reports;
            }
        }
    }
}

impl From<Flows> for SharedFlows {
    fn from(flows: Flows) -> Self {
        Self { flows: Mutex::new(flows) }
    }
}

/// Adds the packets of a capture to the flows.
pub struct FlowTap<'a> {
    flows: &'a SharedFlows,
    recording: Recording<'a>,
    link: LinkType,
}

impl<'a> FlowTap<'a> {
    /// A tap that also records its packets.
    #[must_use]
    pub fn new(flows: &'a SharedFlows, recording: Recording<'a>) -> Self {
        Self { flows, recording, link: LinkType::Ethernet }
    }

    /// Runs the capture to its end.
    ///
    /// # Errors
    /// When the capture ends early, or its file cannot be finished.
    pub fn capture(mut self, capture: Capture, stop: &Stop) -> Result<TapReport, Error> {
        let facts = capture.facts().clone();
        self.link = facts.link;
        let clock = self.recording.clock();
        let (ledger, outcome) = capture.run(clock, stop, &mut self);
        let unidentified = self.flows.lock().not_ip;
        let (figures, written) = self.recording.finish(&ledger);
        outcome.and(written)?;
        Ok(TapReport { facts, balanced: ledger.balances(), ledger, figures, unidentified })
    }
}

impl Sink for FlowTap<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.recording.packet(packet)?;
        let time = packet.stamp.utc;
        self.flows.lock().observe(self.link, packet.bytes, packet.length, time);
        Ok(())
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.flows.lock().missed(missed);
        self.recording.missed(missed)
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.recording.pause()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.recording.end()
    }

    fn lost(&self) -> u64 {
        self.recording.lost()
    }
}
