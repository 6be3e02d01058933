//! The intervals between the events of each packet.

use std::collections::{BTreeMap, HashMap};

use super::{IntervalKind, Intervals};
use crate::overhead::series;
use crate::probe::PacketEvent;
use wirestamp_report::format::real;

/// Events of a packet, in their order.
pub(super) const CHECKPOINTS: [&str; 3] =
    ["net:netif_rx_entry", "net:netif_rx", "net:netif_receive_skb"];

/// Lengths of intervals through the queue are rounded to this many nanoseconds.
const QUEUE_STEP_NS: f64 = 10.0;

/// Intervals of the packets of a run, in the order of the packets. Those of packets without an event are missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Passages {
    /// Length in nanoseconds, and the core of the last event.
    before_queue: Vec<(f64, u32)>,
    queue: Vec<(f64, u32)>,
}

impl Passages {
    /// From the events of all cores; `unit_ns` is the unit of their stamps in nanoseconds.
    pub(super) fn of(mut events: Vec<PacketEvent>, unit_ns: f64) -> Self {
        // Events of one core are in order already.
        events.sort_by_key(|event| event.raw);
        // The last event of the packet in each buffer.
        let mut last: HashMap<u64, PacketEvent> = HashMap::new();
        let mut passages = Self::default();
        for event in events {
            let Some(before) = last.insert(event.buffer, event) else { continue };
            let interval = (real(event.raw.saturating_sub(before.raw)) * unit_ns, event.core);
            match (before.event, event.event) {
                (0, 1) => passages.before_queue.push(interval),
                (1, 2) => passages.queue.push(interval),
                // Another packet in the same buffer, or a lost event.
                _ => {}
            }
        }
        passages
    }

    /// The intervals, counted by length and core.
    pub(super) fn intervals(&self) -> Vec<Intervals> {
        let before = counted(IntervalKind::BeforeQueue, &self.before_queue, |ns| ns);
        let rounded = |ns: f64| (ns / QUEUE_STEP_NS).round() * QUEUE_STEP_NS;
        before.into_iter().chain(counted(IntervalKind::Queue, &self.queue, rounded)).collect()
    }
}

fn counted(
    interval: IntervalKind,
    lengths: &[(f64, u32)],
    rounded: impl Fn(f64) -> f64,
) -> Vec<Intervals> {
    let series: Vec<f64> = lengths.iter().map(|(ns, _)| *ns).collect();
    let autocorrelation = series::autocorrelation(&series, 1).and_then(|it| it.first().copied());
    let mut counts: BTreeMap<(u64, u32), u64> = BTreeMap::new();
    for (ns, core) in lengths {
        // The bits of numbers that are not negative sort as the numbers do.
        *counts.entry((rounded(*ns).to_bits(), *core)).or_default() += 1;
    }
    let row = |((bits, core), packets)| {
        let ns = f64::from_bits(bits);
        Intervals { interval, core, ns, packets, autocorrelation }
    };
    counts.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event: usize, buffer: u64, raw: u64, core: u32) -> PacketEvent {
        PacketEvent { event, buffer, raw, core }
    }

    #[test]
    fn intervals_of_packets_that_share_a_buffer_are_kept_apart() {
        // Core 0 receives two packets in the same buffer, core 1 processes them. The events of core 1 come last.
        let events = vec![
            event(0, 7, 100, 0),
            event(1, 7, 150, 0),
            event(0, 7, 1_100, 0),
            event(1, 7, 1_160, 0),
            event(2, 7, 400, 1),
            event(2, 7, 1_404, 1),
        ];
        let intervals = Passages::of(events, 0.5).intervals();
        let rows: Vec<_> =
            intervals.iter().map(|it| (it.interval, it.core, it.ns, it.packets)).collect();
        assert_eq!(
            rows,
            [
                (IntervalKind::BeforeQueue, 0, 25.0, 1),
                (IntervalKind::BeforeQueue, 0, 30.0, 1),
                (IntervalKind::Queue, 1, 120.0, 1),
                (IntervalKind::Queue, 1, 130.0, 1),
            ]
        );
    }

    #[test]
    fn lost_events_give_no_interval() {
        let events = vec![event(0, 7, 100, 0), event(2, 7, 400, 0), event(1, 8, 500, 0)];
        assert_eq!(Passages::of(events, 1.0).intervals(), []);
    }
}
