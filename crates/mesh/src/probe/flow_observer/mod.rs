//! Observer of a task that follows flows.

mod changes;

use crate::protocol::{self, MachineClock};
use tracing::warn;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::CaptureLoss;
use wirestamp_metrics::flow::{FlowConfig, FlowMonitor, FlowPacket};

use super::observer::{ObservedPacket, Observer};
use crate::spool::Batch;
use changes::{FlowChange, ReportedFlows};

/// How often changed flows are reported.
const INTERVAL: Span = Span::from_secs(5);

/// Max flows followed at a time. Beyond that, the flows that are idle longest are evicted.
const MAX_FLOWS: usize = 4096;

/// Max flows per batch, so that a batch is never too large to deliver.
const FLOWS_PER_BATCH: usize = 512;

/// Max time between reports, even without new packets: archive files wait for the end of their hour.
const MAX_SILENCE: Span = Span::from_secs(3600);

/// Follows each flow and reports its statistics.
pub(super) struct FlowObserver {
    monitor: FlowMonitor,
    /// Start of the observation.
    begin: Time<Utc>,
    reported_until: Time<Utc>,
    reported: ReportedFlows,
    /// Flows evicted so far.
    evicted: u64,
}

impl FlowObserver {
    /// Observes from `begin` on.
    pub(super) fn new(begin: Time<Utc>) -> Self {
        let config = FlowConfig { flows: MAX_FLOWS, ..FlowConfig::default() };
        let (monitor, reported) = (FlowMonitor::new(config), ReportedFlows::default());
        Self { monitor, begin, reported_until: begin, reported, evicted: 0 }
    }

    /// Changed flows, when all packets before `until` were processed.
    fn take(&mut self, until: Time<Utc>) -> Vec<Batch> {
        let (changes, from) = (self.changes(), std::mem::replace(&mut self.reported_until, until));
        let is_due = from.interval_begin(MAX_SILENCE) != until.interval_begin(MAX_SILENCE);
        if changes.is_empty() && !is_due {
            return Vec::new();
        }
        batches(changes, from, until)
    }

    fn changes(&mut self) -> Vec<FlowChange> {
        self.warn_of_evicted();
        self.reported.update(&self.monitor.flows().collect::<Vec<_>>())
    }

    fn warn_of_evicted(&mut self) {
        let evicted = self.monitor.evicted.flows;
        let newly = evicted - std::mem::replace(&mut self.evicted, evicted);
        if newly > 0 {
            warn!(
                "{newly} flows were evicted: more than {MAX_FLOWS} are active; use a filter to observe fewer"
            );
        }
    }
}

/// Encodes changed flows. Each batch carries the time up to which all flows are complete, by their last packets.
fn batches(changes: Vec<FlowChange>, from: Time<Utc>, until: Time<Utc>) -> Vec<Batch> {
    let (mut batches, mut changes) = (Vec::new(), changes.into_iter().peekable());
    loop {
        let now: Vec<_> = changes.by_ref().take(FLOWS_PER_BATCH).collect();
        let next = changes.peek().map(|it| Time::from_nanos(it.last_ns));
        let complete_until = next.map_or(until, |next| next.min(until));
        let items = now.iter().map(|it| it.packets).sum();
        let reports = now.into_iter().map(|it| it.report).collect();
        let body = protocol::Flows { reports, complete_until }.encode();
        batches.push(Batch { items, times: from.as_nanos()..=until.as_nanos(), body });
        if next.is_none() {
            return batches;
        }
    }
}

impl Observer for FlowObserver {
    fn packet(&mut self, packet: &ObservedPacket<'_>) {
        let time = packet.stamp.utc;
        if let (true, Some(of)) = (time >= self.begin, packet.packet()) {
            let (length, encapsulation) = (packet.length, packet.encapsulation());
            self.monitor.observe(&FlowPacket { packet: of, length, time, encapsulation });
        }
    }

    fn missed(&mut self, missed: CaptureLoss) {
        if missed.until >= self.begin {
            self.monitor.missed(CaptureLoss { from: missed.from.max(self.begin), ..missed });
        }
    }

    fn batches(&mut self, until: Time<Utc>, _: MachineClock) -> Vec<Batch> {
        if until - self.reported_until >= INTERVAL { self.take(until) } else { Vec::new() }
    }

    /// Reports even without changed flows: the archive waits for the end of the last hour.
    fn end(mut self: Box<Self>, until: Time<Utc>, _: MachineClock) -> Vec<Batch> {
        if until <= self.reported_until {
            return Vec::new();
        }
        batches(self.changes(), self.reported_until, until)
    }

    fn close(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> (Vec<Batch>, Time<Utc>) {
        let end = self.reported_until.max(until);
        (self.end(until, clock), end)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use wirestamp_capture::CapturedPacket;
    use wirestamp_clock::{Domain, RawStamp, Stamp};
    use wirestamp_packet::LinkType;

    use super::*;

    const CLOCK: MachineClock = MachineClock { machine: [1; 16], error: None };

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    /// Observes a UDP packet from `port`.
    fn look(flows: &mut FlowObserver, port: u16, millis: i64) {
        look_at(flows, port, &[0; 12], millis);
    }

    fn look_at(flows: &mut FlowObserver, port: u16, payload: &[u8; 12], millis: i64) {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 17]);
        frame[26..34].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[36..40].copy_from_slice(&[0, 9, 0, 20]);
        frame[42..54].copy_from_slice(payload);
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        let stamp = Stamp { raw, utc: at(millis), error: Span::ZERO };
        flows.packet(&ObservedPacket::new(
            &CapturedPacket { stamp, kernel: None, bytes: &frame, length: 60 },
            LinkType::Ethernet,
        ));
    }

    /// Observes a packet of an RTP stream; one every 20 ms.
    fn look_at_rtp(flows: &mut FlowObserver, number: u8, millis: i64) {
        look_at(flows, 7, &[0x80, 8, 0, number, 0, 0, number, 160, 1, 2, 3, 4], millis);
    }

    fn decoded(batches: &[Batch]) -> impl Iterator<Item = Value> {
        let flows =
            batches.iter().flat_map(|it| protocol::Flows::decode(&it.body).unwrap().reports);
        flows.map(|text| serde_json::from_str(&text).unwrap())
    }

    /// Ports and packets of the reported flows.
    fn reported(batches: &[Batch]) -> Vec<(u64, u64)> {
        let mut reported: Vec<_> = decoded(batches)
            .map(|flow| (flow["sport"].as_u64().unwrap(), flow["packets"].as_u64().unwrap()))
            .collect();
        reported.sort_unstable();
        reported
    }

    /// Packets of the flows by begin (ms) and SSRC, after all reports.
    fn known(batches: &[Batch]) -> Vec<(i64, Option<u64>, u64)> {
        let mut known = std::collections::BTreeMap::new();
        for flow in decoded(batches) {
            let key = (flow["first_ns"].as_i64().unwrap() / 1_000_000, flow["ssrc"].as_u64());
            known.insert(key, flow["packets"].as_u64().unwrap());
        }
        known.retain(|_, packets| *packets > 0);
        known.into_iter().map(|((begin, ssrc), packets)| (begin, ssrc, packets)).collect()
    }

    #[test]
    fn flows_are_reported_while_they_have_packets() {
        let mut flows = FlowObserver::new(at(1000));
        // The first packet passed before the observer began.
        for (port, millis) in [(1, 999), (1, 1000), (2, 2000), (1, 3000)] {
            look(&mut flows, port, millis);
        }
        assert_eq!(flows.batches(at(5_999), CLOCK), []);
        let first = flows.batches(at(6_000), CLOCK);
        assert_eq!(reported(&first), [(1, 2), (2, 1)]);
        assert_eq!((first[0].items, &first[0].times), (3, &(1_000_000_000..=6_000_000_000)));
        assert_eq!(flows.batches(at(21_000), CLOCK), []);
        look(&mut flows, 2, 22_000);
        assert_eq!(reported(&Box::new(flows).close(at(23_000), CLOCK).0), [(2, 2)]);
    }

    #[test]
    fn flow_is_reported_again_when_a_loss_in_its_time_becomes_known() {
        let mut flows = FlowObserver::new(at(0));
        [1000, 2000].into_iter().for_each(|millis| look(&mut flows, 1, millis));
        let first = flows.batches(at(5_000), CLOCK);
        assert_eq!(decoded(&first).next().unwrap()["capture_missed"], 0);
        flows.missed(CaptureLoss { packets: 4, from: at(1500), until: at(1600) });
        let second = flows.batches(at(10_000), CLOCK);
        assert_eq!(decoded(&second).next().unwrap()["capture_missed"], 4);
        assert_eq!(flows.batches(at(15_000), CLOCK), []);
    }

    #[test]
    fn packets_recognised_as_rtp_are_reported_once() {
        let ssrc = Some(0x0102_0304);
        let mut flows = FlowObserver::new(at(0));
        // Three packets are not enough to recognise a stream.
        (0..3).for_each(|it| look_at_rtp(&mut flows, it, 4940 + 20 * i64::from(it)));
        let mut batches = flows.batches(at(5000), CLOCK);
        assert_eq!(known(&batches), [(4940, None, 3)]);
        (3..9).for_each(|it| look_at_rtp(&mut flows, it, 4940 + 20 * i64::from(it)));
        batches.extend(flows.batches(at(10_000), CLOCK));
        assert_eq!(known(&batches), [(4940, ssrc, 9)]);
        // A packet that is not RTP belongs to the plain flow.
        look(&mut flows, 7, 11_000);
        batches.extend(flows.batches(at(15_000), CLOCK));
        assert_eq!(known(&batches), [(4940, ssrc, 9), (11_000, None, 1)]);
    }

    #[test]
    fn other_packets_of_rtp_flow_stay_reported() {
        let mut flows = FlowObserver::new(at(0));
        look(&mut flows, 7, 4900);
        (0..3).for_each(|it| look_at_rtp(&mut flows, it, 4940 + 20 * i64::from(it)));
        let mut batches = flows.batches(at(5000), CLOCK);
        assert_eq!(known(&batches), [(4900, None, 4)]);
        look_at_rtp(&mut flows, 3, 5000);
        batches.extend(flows.batches(at(10_000), CLOCK));
        assert_eq!(known(&batches), [(4900, None, 1), (4940, Some(0x0102_0304), 4)]);
    }

    fn complete_until(batches: &[Batch]) -> Vec<i64> {
        let flows = batches.iter().map(|it| protocol::Flows::decode(&it.body).unwrap());
        flows.map(|it| it.complete_until.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn many_flows_are_split_into_batches() {
        let mut flows = FlowObserver::new(at(0));
        for port in 1..=600 {
            look(&mut flows, port, port.into());
        }
        let batches = flows.batches(at(10_000), CLOCK);
        assert_eq!((batches.len(), reported(&batches).len()), (2, 600));
        assert_eq!(complete_until(&batches), [513, 10_000]);
    }

    #[test]
    fn idle_observer_reports_its_progress() {
        let hour = 3_600_000;
        let mut flows = FlowObserver::new(at(hour - 12_000));
        look(&mut flows, 1, hour - 9000);
        assert_eq!(complete_until(&flows.batches(at(hour - 7000), CLOCK)), [hour - 7000]);
        assert_eq!(flows.batches(at(hour - 2000), CLOCK), []);
        assert_eq!(complete_until(&flows.batches(at(hour + 3000), CLOCK)), [hour + 3000]);
        assert_eq!(flows.batches(at(hour + 8000), CLOCK), []);
        let last = Box::new(flows).close(at(7_300_000), CLOCK).0;
        assert_eq!((complete_until(&last), reported(&last)), (vec![7_300_000], vec![]));
    }
}
