//! Overhead of a stamp in the softIRQ, packet by packet: `bpf/checkpoints.bpf.c`.

use libbpf_rs::RingBufferBuilder;

use super::SoftirqStamp;
use super::attached::{Attached, attach};
use crate::Error;

/// Bytes of a `struct checkpoints`.
const RECORD_BYTES: usize = 40;

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
    /// Interrupts that the core served between the first checkpoint and the last, as far as the kernel has trace points
    /// for them.
    pub interrupts: u64,
}

impl Checkpoints {
    /// Reads a record; none if the counter could not be read, or the record is not one.
    fn read(record: &[u8]) -> Option<Self> {
        let record: &[u8; RECORD_BYTES] = record.try_into().ok()?;
        let mut words = record.chunks_exact(8).map(|word| word.try_into().map(u64::from_ne_bytes));
        let mut next = || words.next()?.ok();
        let points = Self {
            before_first: next()?,
            between: next()?,
            after_second: next()?,
            end: next()?,
            interrupts: next()?,
        };
        let Self { before_first, between, after_second, end, .. } = points;
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
pub struct PacketMeasurement(Attached);

impl PacketMeasurement {
    /// Starts to measure `stamp` for each packet of `frame_bytes` that arrives at `interface` of this thread's network
    /// namespace.
    ///
    /// # Errors
    /// The counter cannot be read by a tracing program, or the kernel does not load the program, usually for lack of
    /// privileges.
    pub fn start(interface: &str, frame_bytes: u16, stamp: SoftirqStamp) -> Result<Self, Error> {
        let program = match stamp {
            SoftirqStamp::Kernel => "measure_kernel",
            SoftirqStamp::Counter => "measure_counter",
        };
        attach(interface, frame_bytes, program, true).map(Self)
    }

    /// Ends the measurement. Packets beyond the first 100,000 are not measured.
    ///
    /// # Errors
    /// The ring buffer cannot be read.
    pub fn finish(self) -> Result<MeasuredPackets, Error> {
        let Attached { links, measured } = self.0;
        drop(links);
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
        let record = |[a, b, c, d]: [i64; 4]| [a, b, c, d, 1].map(i64::to_ne_bytes).concat();
        let points =
            Checkpoints { before_first: 5, between: 9, after_second: 11, end: 13, interrupts: 1 };
        assert_eq!(Checkpoints::read(&record([5, 9, 11, 13])), Some(points));
        assert_eq!(Checkpoints::read(&record([5, 9, 11, -2])), None);
        assert_eq!(Checkpoints::read(&record([5, -2, 11, 13])), None);
        assert_eq!(Checkpoints::read(&record([9, 5, 11, 13])), None);
        assert_eq!(Checkpoints::read(&[0; 39]), None);
    }
}
