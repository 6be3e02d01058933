//! Errors of an MPEG transport stream: ETSI TR 101 290 (V1.4.1) sections 5.2.1 and 5.2.2.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the stream |
//! | `sync.rs` | synchronisation |
//! | `part.rs`, `due.rs` | the packets of one PID; what has to come again |
//! | `tables.rs` | programs, elementary streams, and errors of the tables |
//! | `accuracy.rs` | accuracy of clock references |
//! | `delivery.rs` | media delivery index |
//! | `report.rs`, `unknown.rs` | the report; why values are unknown |

mod accuracy;
mod delivery;
mod due;
mod part;
mod report;
mod sync;
mod tables;
#[cfg(test)]
mod tests;
mod unknown;

use std::collections::BTreeMap;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::transport_stream::{
    NULL_PID, PACKET_BYTES, TsPacket, begins_packet, is_marked_damaged, is_transport_stream,
};

use super::loss_times::LossTimes;
use accuracy::ClockAccuracy;
pub use delivery::TransportDeliveryReport;
use delivery::{Arrival, Delivery};
use part::{Continuity, Part};
pub use report::TransportStreamReport;
use sync::{SyncChange, Synchronisation};
use tables::{ASSOCIATION_PID, ConditionalAccess, is_table_pid};
pub use unknown::UnknownTransportStreamValue;

/// Min datagrams in a row that prove that a flow is a transport stream.
const MIN_DATAGRAMS: u64 = 4;
/// Max PIDs that are observed.
const MAX_PARTS: usize = 256;

/// Time between two checks of what is missing.
const CHECK_INTERVAL: Span = Span::from_millis(50);

/// A stream that is observed, in bounded memory.
#[derive(Clone, Debug)]
pub(super) struct TransportStream {
    /// Max time without a packet of a PID to which a program map refers.
    period: Span,
    datagrams: u64,
    /// Whether a datagram was not captured completely.
    is_cut: bool,
    counts: TransportStreamReport,
    sync: Synchronisation,
    parts: BTreeMap<u16, Part>,
    access: ConditionalAccess,
    accuracy: ClockAccuracy,
    delivery: Delivery,
    /// Packets missing by the continuity counters, modulo 16 for each break.
    lost: u64,
    /// When it was last checked what is missing.
    checked: Option<Time<Utc>>,
}

impl TransportStream {
    /// A stream without packets. See [`FlowConfig`](super::FlowConfig) for the period.
    pub(super) fn new(period: Span) -> Self {
        Self {
            period,
            datagrams: 0,
            is_cut: false,
            counts: TransportStreamReport::default(),
            sync: Synchronisation::default(),
            parts: BTreeMap::new(),
            access: ConditionalAccess::default(),
            accuracy: ClockAccuracy::default(),
            delivery: Delivery::new(),
            lost: 0,
            checked: None,
        }
    }

    /// Records the payload of the next datagram of the flow: its captured bytes, and its length on the wire. A datagram with
    /// other content is ignored, or begins the recognition again.
    pub(super) fn record(
        &mut self,
        payload: &[u8],
        length: usize,
        time: Time<Utc>,
        losses: &LossTimes,
    ) {
        let is_known = self.datagrams >= MIN_DATAGRAMS;
        if payload.len() < length {
            self.is_cut |= is_known;
            return;
        }
        if !is_known && !is_transport_stream(payload) {
            *self = Self::new(self.period);
            return;
        }
        if is_known && (payload.is_empty() || !payload.len().is_multiple_of(PACKET_BYTES)) {
            return;
        }
        self.datagrams += 1;
        self.check(time);
        let lost_before = self.lost;
        payload.chunks(PACKET_BYTES).for_each(|bytes| self.record_packet(bytes, time));
        let arrival = Arrival {
            time,
            bytes: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            lost: self.lost - lost_before,
            rate: self.accuracy.rate().ok(),
        };
        self.delivery.record(arrival, losses);
    }

    /// The counts; none for other flows, and if packets were not captured completely.
    pub(super) fn report(&self, losses: &LossTimes) -> Option<TransportStreamReport> {
        let is_known = self.datagrams >= MIN_DATAGRAMS && !self.is_cut;
        let pids = self.parts.values().filter(|part| part.has_packets).count();
        let accuracy = self.accuracy.result();
        is_known.then_some(TransportStreamReport {
            pids: u64::try_from(pids).unwrap_or(u64::MAX),
            cat_errors: self.access.errors(),
            pcr_accuracy_errors: accuracy.errors.ok(),
            pcr_accuracy_checked: accuracy.checked,
            pcr_accuracy_max_ns: accuracy.max_deviation_ns,
            pcr_accuracy_unknown: accuracy.errors.err(),
            media_delivery: self.delivery.report(self.accuracy.rate(), losses),
            ..self.counts
        })
    }

    /// Counts what is missing for too long by now.
    fn check(&mut self, time: Time<Utc>) {
        let Some(checked) = self.checked else {
            self.checked = Some(time);
            self.parts.entry(ASSOCIATION_PID).or_default().expect_table(time);
            return;
        };
        if self.sync.is_lost || time - checked < CHECK_INTERVAL {
            return;
        }
        self.checked = Some(time);
        for (pid, part) in &mut self.parts {
            let missing = part.check(time, self.period, &mut self.counts);
            self.counts.pid_errors += missing.packet;
            match *pid {
                ASSOCIATION_PID => self.counts.pat_errors += missing.table,
                _ => self.counts.pmt_errors += missing.table,
            }
        }
    }

    fn record_packet(&mut self, bytes: &[u8], time: Time<Utc>) {
        self.counts.packets += 1;
        let is_correct = begins_packet(bytes);
        self.counts.sync_byte_errors += u64::from(!is_correct);
        match self.sync.record(is_correct) {
            Some(SyncChange::Lost) => {
                self.counts.sync_losses += 1;
                self.accuracy.interrupt();
                self.parts.values_mut().for_each(Part::lose);
            }
            Some(SyncChange::Acquired) => {
                self.parts.values_mut().for_each(|part| part.resume(time));
                self.parts.entry(ASSOCIATION_PID).or_default().expect_table(time);
            }
            None => {}
        }
        if !is_correct || self.sync.is_lost {
            return;
        }
        let packet = TsPacket::parse(bytes);
        if is_marked_damaged(bytes) {
            // No further errors are counted of it: any field may be wrong.
            self.counts.transport_errors += 1;
            if let Some(part) = packet.and_then(|packet| self.parts.get_mut(&packet.pid)) {
                part.interrupt();
            }
            return;
        }
        match packet {
            None => self.counts.malformed_packets += 1,
            Some(packet) if packet.pid == NULL_PID => self.counts.null_packets += 1,
            Some(packet) => self.record_content(&packet, time),
        }
    }

    /// Records a packet of a PID that is observed.
    fn record_content(&mut self, packet: &TsPacket<'_>, time: Time<Utc>) {
        let pid = packet.pid;
        if packet.scrambled {
            self.access.record_scrambled(time, self.period);
        }
        if !self.parts.contains_key(&pid) && self.parts.len() >= MAX_PARTS {
            return;
        }
        let part = self.parts.entry(pid).or_default();
        let recorded = part.record(packet, time, self.period, &mut self.counts);
        let is_map = part.listed_in.is_some();
        match recorded.continuity {
            Continuity::Continues => {}
            Continuity::Repeated => return,
            Continuity::Broken { missing } => {
                self.lost += u64::from(missing);
                self.accuracy.interrupt();
            }
        }
        if let Some(clock) = packet.clock {
            let position = self.counts.packets;
            self.accuracy.record(pid, position, clock, recorded.is_clock_continuous);
        }
        if packet.scrambled && pid == ASSOCIATION_PID {
            self.counts.pat_errors += 1;
        } else if packet.scrambled && is_map {
            self.counts.pmt_errors += 1;
        }
        if is_map || is_table_pid(pid) {
            let mut sections = std::mem::take(&mut self.parts.entry(pid).or_default().sections);
            sections.record(packet, |bytes| self.record_section(pid, bytes, time));
            self.parts.entry(pid).or_default().sections = sections;
        }
    }
}
