//! One point of a task that follows flows.

use tracing::warn;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Missed;
use wirestamp_metrics::flow::{FlowConfig, FlowMonitor, FlowPacket, FlowReport};
use wirestamp_protocol::{self as protocol, MachineClock};

use super::look::{Look, Passing};
use crate::spool::Batch;

/// How often is told of flows that had packets.
const INTERVAL: Span = Span::from_secs(5);

/// Flows that are followed at a time. With more of them, those that are idle for longest are let go.
const FLOWS: usize = 4096;

/// Flows of a batch, so that none is too large to be delivered.
const OF_A_BATCH: usize = 512;

/// Follows each flow, and tells how it has fared.
pub(super) struct Flows {
    monitor: FlowMonitor,
    /// Since when it looks.
    begin: Time<Utc>,
    told_until: Time<Utc>,
    /// The time of the latest packet that was told of.
    told_of: i64,
    /// Flows that had been let go by then.
    let_go: u64,
}

impl Flows {
    /// Looks from a time on.
    pub(super) fn new(begin: Time<Utc>) -> Self {
        let config = FlowConfig { flows: FLOWS, ..FlowConfig::default() };
        let monitor = FlowMonitor::new(config);
        Self { monitor, begin, told_until: begin, told_of: i64::MIN, let_go: 0 }
    }

    /// Those flows that had packets since this was asked last.
    fn take(&mut self, until: Time<Utc>) -> Vec<Batch> {
        let from = std::mem::replace(&mut self.told_until, until);
        let reports: Vec<_> =
            self.monitor.flows().filter(|report| report.last_ns > self.told_of).collect();
        let latest = reports.iter().map(|report| report.last_ns).max();
        self.told_of = latest.unwrap_or(self.told_of);
        self.tell_of_those_let_go();
        let batch = |reports: &[FlowReport]| {
            // What is a report can be written.
            let texts = reports.iter().filter_map(|it| serde_json::to_string(it).ok());
            let flows = protocol::Flows { reports: texts.collect(), complete_until: until };
            Batch {
                items: reports.iter().map(|it| it.packets).sum(),
                times: from.as_nanos()..=until.as_nanos(),
                body: flows.encode(),
            }
        };
        reports.chunks(OF_A_BATCH).map(batch).collect()
    }

    fn tell_of_those_let_go(&mut self) {
        let let_go = self.monitor.given_up().flows;
        let newly = let_go - std::mem::replace(&mut self.let_go, let_go);
        if newly > 0 {
            warn!("{newly} flows were let go for want of room; a filter leaves others out");
        }
    }
}

impl Look for Flows {
    fn packet(&mut self, packet: &Passing<'_>) {
        let time = packet.stamp.utc;
        if let (true, Some(of)) = (time >= self.begin, packet.packet()) {
            self.monitor.observe(&FlowPacket { packet: of, length: packet.length, time });
        }
    }

    fn missed(&mut self, missed: Missed) {
        if missed.until >= self.begin {
            self.monitor.missed(Missed { from: missed.from.max(self.begin), ..missed });
        }
    }

    fn batches(&mut self, until: Time<Utc>, _: MachineClock) -> Vec<Batch> {
        if until - self.told_until >= INTERVAL { self.take(until) } else { Vec::new() }
    }

    fn end(mut self: Box<Self>, until: Time<Utc>, _: MachineClock) -> Vec<Batch> {
        if until > self.told_until { self.take(until) } else { Vec::new() }
    }

    fn close(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> (Vec<Batch>, Time<Utc>) {
        let end = self.told_until.max(until);
        (self.end(until, clock), end)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use wirestamp_capture::Captured;
    use wirestamp_clock::{Domain, RawStamp, Stamp};

    use super::*;

    const CLOCK: MachineClock = MachineClock { machine: [1; 16], error: None };

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    /// A packet of UDP from a port.
    fn look(flows: &mut Flows, port: u16, millis: i64) {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 1, 0x40, 0, 64, 17]);
        frame[26..34].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        frame[36..40].copy_from_slice(&[0, 9, 0, 26]);
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        let stamp = Stamp { raw, utc: at(millis), error: Span::ZERO };
        flows.packet(&Passing::new(&Captured { stamp, kernel: None, bytes: &frame, length: 60 }));
    }

    /// Ports and packets of the flows that were told of.
    fn told(batches: &[Batch]) -> Vec<(u64, u64)> {
        let flows =
            batches.iter().flat_map(|it| protocol::Flows::decode(&it.body).unwrap().reports);
        let mut told: Vec<_> = flows
            .map(|text| {
                let flow: Value = serde_json::from_str(&text).unwrap();
                (flow["sport"].as_u64().unwrap(), flow["packets"].as_u64().unwrap())
            })
            .collect();
        told.sort_unstable();
        told
    }

    #[test]
    fn flows_are_told_of_as_long_as_they_have_packets() {
        let mut flows = Flows::new(at(1000));
        // The first passed before it looked.
        for (port, millis) in [(1, 999), (1, 1000), (2, 2000), (1, 3000)] {
            look(&mut flows, port, millis);
        }
        assert_eq!(flows.batches(at(5_999), CLOCK), []);
        let first = flows.batches(at(6_000), CLOCK);
        assert_eq!(told(&first), [(1, 2), (2, 1)]);
        assert_eq!((first[0].items, &first[0].times), (3, &(1_000_000_000..=6_000_000_000)));
        assert_eq!(flows.batches(at(21_000), CLOCK), []);
        look(&mut flows, 2, 22_000);
        assert_eq!(told(&Box::new(flows).close(at(23_000), CLOCK).0), [(2, 2)]);
    }

    #[test]
    fn many_flows_make_several_batches() {
        let mut flows = Flows::new(at(0));
        for port in 1..=600 {
            look(&mut flows, port, 1);
        }
        let batches = flows.batches(at(10_000), CLOCK);
        assert_eq!((batches.len(), told(&batches).len()), (2, 600));
    }
}
