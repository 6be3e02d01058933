//! Causes of long overheads in the softIRQ, from the same records.

use serde::Serialize;

use super::in_softirq::{SoftirqStamped, Which};
use super::packets::Packets;
use super::paper::{Method, Traffic};
use crate::experiment::Runs;
use crate::probe::CACHES_NS;
use wirestamp_report::format::length;

/// An overhead is long if it is more than this many times the median.
const LONG: f64 = 2.0;

/// The long overheads of one method with one pattern, by cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct LongOverheads {
    /// How packets were stamped.
    pub(super) method: Method,
    /// The traffic.
    pub(super) pattern: Traffic,
    /// Which stamp of a packet.
    pub(super) stamp: Which,
    /// Time between the checkpoints from which it counts as long, in nanoseconds.
    pub(super) longer_than_ns: f64,
    /// All packets, and those with a long overhead.
    pub(super) packets: u64,
    pub(super) long: u64,
    /// Long ones during which the core served an interrupt.
    pub(super) interrupted: u64,
    /// Others of at most [`CACHES_NS`]. ktime in a program does not wait for the clock's update
    /// (`ktime_get_mono_fast_ns`), so that misses of caches and of the address translation remain.
    pub(super) caches: u64,
    /// Others, longer than that. No program of this machine can interrupt the softIRQ, so that the hypervisor remains.
    pub(super) hypervisor: u64,
}

impl LongOverheads {
    /// Of every method and pattern, and both stamps; without those whose causes were not recorded.
    pub(super) fn of_all(runs: &Runs<SoftirqStamped>) -> Vec<Self> {
        let cells = runs.design.cells();
        let cells = cells.iter().enumerate();
        let both = |(index, cell)| [Which::First, Which::Second].map(|which| (index, cell, which));
        cells
            .flat_map(both)
            .filter_map(|(index, cell, which)| {
                let packets: Vec<_> = runs.of_cell(index).flatten().copied().collect();
                Self::of(Packets::of(cell), which, &packets)
            })
            .collect()
    }

    fn of(
        (method, pattern): (Method, Traffic),
        stamp: Which,
        packets: &[SoftirqStamped],
    ) -> Option<Self> {
        let longer_than_ns = LONG * median(packets, stamp)?;
        let mut found = Self {
            method,
            pattern,
            stamp,
            longer_than_ns,
            packets: length(packets),
            long: 0,
            interrupted: 0,
            caches: 0,
            hypervisor: 0,
        };
        for packet in packets.iter().filter(|packet| packet.around(stamp) > longer_than_ns) {
            found.long += 1;
            let cause = match packet.interrupts? {
                0 if packet.around(stamp) <= CACHES_NS => &mut found.caches,
                0 => &mut found.hypervisor,
                _ => &mut found.interrupted,
            };
            *cause += 1;
        }
        packets.iter().all(|packet| packet.interrupts.is_some()).then_some(found)
    }
}

fn median(packets: &[SoftirqStamped], which: Which) -> Option<f64> {
    let mut times: Vec<f64> = packets.iter().map(|packet| packet.around(which)).collect();
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(first_ns: f64, interrupts: u64) -> SoftirqStamped {
        SoftirqStamped {
            packet: 0,
            first_ns,
            second_ns: 10.0,
            checkpoint_ns: 5.0,
            interrupts: Some(interrupts),
        }
    }

    #[test]
    fn long_overheads_are_counted_by_cause() {
        let usual = std::iter::repeat_n(packet(50.0, 1), 10);
        let long = [packet(900.0, 1), packet(5e6, 0), packet(110.0, 0)];
        let packets: Vec<_> = usual.chain(long).collect();
        let of = |which| LongOverheads::of((Method::Raw, Traffic::Call), which, &packets).unwrap();
        let first = of(Which::First);
        assert_eq!((first.packets, first.long), (13, 3));
        assert_eq!([first.hypervisor, first.interrupted, first.caches], [1, 1, 1]);
        assert_eq!(of(Which::Second).long, 0);
    }

    #[test]
    fn causes_that_were_not_recorded_are_not_invented() {
        let packets = [SoftirqStamped { interrupts: None, ..packet(50.0, 0) }];
        let of = |packets| LongOverheads::of((Method::Raw, Traffic::Call), Which::First, packets);
        assert_eq!(of(&packets), None);
        assert_eq!(of(&[]), None);
    }
}
