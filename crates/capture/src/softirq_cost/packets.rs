//! Overhead of a stamp in the softIRQ, packet by packet: `bpf/checkpoints.bpf.c`.

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{ErrorExt, Link, MapHandle, RingBufferBuilder};
use wirestamp_clock::Counter;

use crate::Error;
use crate::bpf_program::{counter_events, namespace, opened};
use crate::capabilities::{Obstacle, counter_event};
use crate::interface::Interface;
use crate::skeletons::checkpoints::CheckpointsSkelBuilder;

/// Bytes of an Ethernet header, which the kernel has removed before the tracepoint.
const ETHERNET_HEADER: u32 = 14;

/// Bytes of a `struct checkpoints`.
const RECORD_BYTES: usize = 32;

/// A stamp that a tracing program takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftirqStamp {
    /// The kernel's clock: `bpf_ktime_get_ns`.
    Kernel,
    /// The counter: `bpf_perf_event_read` of the PMU `msr`.
    Counter,
}

impl SoftirqStamp {
    const fn program(self) -> &'static str {
        match self {
            Self::Kernel => "measure_kernel",
            Self::Counter => "measure_counter",
        }
    }
}

/// The checkpoints around two stamps of one packet, by the other clock: ticks of the counter around stamps of the kernel,
/// nanoseconds of `CLOCK_MONOTONIC` around stamps of the counter. Only differences are meaningful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoints {
    /// Before the first stamp, whose code and data are not in the caches yet.
    pub before_first: u64,
    /// After the first stamp and before the second.
    pub between: u64,
    /// After the second stamp.
    pub after_second: u64,
    /// One more, without a stamp in between: the cost of a checkpoint.
    pub end: u64,
}

impl Checkpoints {
    /// Reads a record; none if the counter could not be read, or the record is not one.
    fn read(record: &[u8]) -> Option<Self> {
        let record: &[u8; RECORD_BYTES] = record.try_into().ok()?;
        let mut words = record.chunks_exact(8).map(|word| word.try_into().map(u64::from_ne_bytes));
        let mut next = || words.next()?.ok();
        let points =
            Self { before_first: next()?, between: next()?, after_second: next()?, end: next()? };
        let Self { before_first, between, after_second, end } = points;
        // Errors are negative: as unsigned numbers they are larger than any count.
        let is_valid = i64::try_from(end).is_ok() && before_first <= between;
        (is_valid && between <= after_second && after_second <= end).then_some(points)
    }
}

/// Result of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredPackets {
    /// The measured packets, in the order of arrival.
    pub packets: Vec<Checkpoints>,
    /// Packets whose record is not valid, because the core's event had stopped.
    pub invalid: u64,
}

/// Measures the stamps of packets until it is finished.
pub struct PacketMeasurement {
    link: Link,
    measured: MapHandle,
}

impl PacketMeasurement {
    /// Starts to measure `stamp` for each packet of `frame_bytes` that arrives at `interface` of this thread's network
    /// namespace.
    ///
    /// # Errors
    /// The counter cannot be read by a tracing program, or the kernel does not load the program, usually for lack of
    /// privileges.
    pub fn start(interface: &str, frame_bytes: u16, stamp: SoftirqStamp) -> Result<Self, Error> {
        let interface = Interface::find(interface)?;
        let failed = |reason: String| {
            let (what, interface) = ("the tracing program", interface.name.clone());
            Error::Program { what, interface, reason }
        };
        let refused = |error: libbpf_rs::Error| failed(format!("{error:#}"));
        let counter = Counter::select();
        counter_event(counter).map_err(|obstacle: Obstacle| failed(obstacle.to_string()))?;
        let mut object = MaybeUninit::uninit();
        let mut open = opened(CheckpointsSkelBuilder::default(), &mut object).map_err(refused)?;
        if let Some(constants) = open.maps.rodata_data.as_mut() {
            constants.interface = interface.index;
            constants.length = u32::from(frame_bytes).saturating_sub(ETHERNET_HEADER);
            constants.namespace = namespace().map_err(|error| failed(error.to_string()))?;
        }
        for mut program in open.open_object_mut().progs_mut() {
            program.set_autoload(program.name() == stamp.program());
        }
        counter_events::choose(open.open_object_mut(), true).map_err(refused)?;
        let skeleton = open.load().map_err(refused)?;
        counter_events::install(skeleton.object(), counter)
            .context("cannot read the counter")
            .map_err(refused)?;
        let measured = MapHandle::try_from(&skeleton.maps.measured).map_err(refused)?;
        let mut programs = skeleton.object().progs_mut();
        let program = programs.find(|program| program.name() == stamp.program());
        let program = program.ok_or_else(|| failed("it is missing".to_owned()))?;
        let link = program.attach_trace().map_err(refused)?;
        Ok(Self { link, measured })
    }

    /// Ends the measurement. Packets beyond the first 100,000 are not measured.
    ///
    /// # Errors
    /// The ring buffer cannot be read.
    pub fn finish(self) -> Result<MeasuredPackets, Error> {
        let Self { link, measured } = self;
        drop(link);
        let failed = |error: libbpf_rs::Error| Error::TestRun { reason: format!("{error:#}") };
        let mut result = MeasuredPackets::default();
        let mut builder = RingBufferBuilder::new();
        let take = |record: &[u8]| {
            match Checkpoints::read(record) {
                Some(points) => result.packets.push(points),
                None => result.invalid += 1,
            }
            0
        };
        builder.add(&measured, take).map_err(failed)?;
        builder.build().and_then(|ring| ring.consume()).map_err(failed)?;
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_errors_refused() {
        let record = |points: [i64; 4]| points.map(i64::to_ne_bytes).concat();
        let points = Checkpoints { before_first: 5, between: 9, after_second: 11, end: 13 };
        assert_eq!(Checkpoints::read(&record([5, 9, 11, 13])), Some(points));
        assert_eq!(Checkpoints::read(&record([5, 9, 11, -2])), None);
        assert_eq!(Checkpoints::read(&record([5, -2, 11, 13])), None);
        assert_eq!(Checkpoints::read(&record([9, 5, 11, 13])), None);
        assert_eq!(Checkpoints::read(&[0; 31]), None);
    }
}
