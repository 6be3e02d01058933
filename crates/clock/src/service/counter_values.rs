//! Counter values of the kernel's stamps: the inverse conversion for many stamps.

use std::sync::Arc;

use super::calibration::LatestTimelines;
use crate::vdso::KernelClock;
use crate::vdso::history::{CounterAt, LineInverse, Lines};
use crate::{Domain, RawStamp, Stamp};

/// Replaces raw values of stamps that the kernel took by those of the counter at the same time. It keeps the inverse of
/// the kernel's current line until the kernel replaces that line, some hundred times a second.
#[derive(Debug)]
pub struct CounterValues {
    newest: Arc<LatestTimelines>,
    realtime: Option<Inverse>,
    monotonic: Option<Inverse>,
}

/// The lines to a clock of the kernel, with the inverse of the newest one.
#[derive(Debug)]
struct Inverse {
    /// The page's sequence number before the lines were read. While it is the same, the newest line is in force.
    sequence: u32,
    newest: LineInverse,
    lines: Lines,
}

impl Inverse {
    fn new(sequence: u32, lines: Lines) -> Self {
        Self { sequence, newest: lines.newest_inverse(), lines }
    }

    fn counter_at(&self, nanos: i64) -> CounterAt {
        // Most stamps are on the newest line.
        match self.newest.counter(nanos) {
            Some(value) => CounterAt::Value(value),
            None => self.lines.counter_at(nanos),
        }
    }
}

impl CounterValues {
    pub(super) const fn new(newest: Arc<LatestTimelines>) -> Self {
        Self { newest, realtime: None, monotonic: None }
    }

    /// Replaces the raw values of stamps that the kernel took ([`Domain::Realtime`], [`Domain::Monotonic`]) by those of
    /// the counter at the same time, within 5 ns. The differences of counter values are independent of steps and slews
    /// of the system clock ([`Timeline::difference`](crate::Timeline::difference) of these domains covers them). Call
    /// it after the stamps were taken. The times stay as they are. This allocates no memory.
    ///
    /// A stamp keeps its raw value if [`ClockService::is_exact`](crate::ClockService::is_exact) is false, if it is older
    /// than the last seconds, or if the clock was stepped or slewed by more than 5 ns around it: its error then includes
    /// that change.
    pub fn replace(&mut self, stamps: &mut [Stamp]) {
        for stamps in stamps.chunk_by_mut(|a, b| a.raw.domain == b.raw.domain) {
            let Some(inverse) = self.inverse_of(stamps[0].raw.domain) else { continue };
            for stamp in stamps {
                match inverse.counter_at(stamp.raw.value.cast_signed()) {
                    CounterAt::Value(value) => {
                        stamp.raw = RawStamp { domain: Domain::Counter, value };
                    }
                    CounterAt::Uncertain(error) => stamp.error = stamp.error.max(error),
                    CounterAt::Unknown => {}
                }
            }
        }
    }

    /// The inverse conversion of a domain, up to now.
    fn inverse_of(&mut self, domain: Domain) -> Option<&Inverse> {
        let kept = match domain {
            Domain::Realtime => &mut self.realtime,
            Domain::Monotonic => &mut self.monotonic,
            Domain::Counter | Domain::Nic => return None,
        };
        let sequence = self.newest.sequence_if_exact()?;
        if kept.as_ref().is_none_or(|kept| kept.sequence != sequence) {
            let lines = self.newest.lines_to(KernelClock::of_domain(domain)?)?;
            *kept = Some(Inverse::new(sequence, lines));
        }
        kept.as_ref()
    }
}

impl LatestTimelines {
    /// The counter's value at the time of one stamp of the kernel.
    pub(super) fn counter_value(&self, stamp: RawStamp) -> Option<u64> {
        let sequence = self.sequence_if_exact()?;
        let lines = self.lines_to(KernelClock::of_domain(stamp.domain)?)?;
        let (now, nanos) = (lines.until(), stamp.value.cast_signed());
        match Inverse::new(sequence, lines).counter_at(nanos) {
            CounterAt::Value(value) if value <= now => Some(value),
            CounterAt::Value(_) | CounterAt::Uncertain(_) | CounterAt::Unknown => None,
        }
    }

    /// The sequence number of the vDSO's page, if the newest timelines are exact.
    fn sequence_if_exact(&self) -> Option<u32> {
        self.conversion.as_ref().filter(|_| self.counter.load().is_exact())?.sequence()
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_sys::clock::{ClockId, now};

    use super::*;
    use crate::{ClockService, Counter, Span};

    #[test]
    fn counter_values_of_kernel_stamps_convert_back() {
        let service = ClockService::start(Counter::select()).unwrap();
        if !service.is_exact() {
            return println!("skipped here: {:?}", service.no_exact_conversion());
        }
        let clocks =
            [(Domain::Realtime, ClockId::Realtime), (Domain::Monotonic, ClockId::Monotonic)];
        let mut counter_values = service.counter_values();
        for (domain, clock) in clocks {
            let mut converted = 0;
            for _ in 0..10_000 {
                let before = service.counter().read_ordered();
                let value = now(clock).unsigned_abs();
                let after = service.counter().read_ordered();
                let mut stamps = [service.timeline(domain).convert(value)];
                let utc = stamps[0].utc;
                counter_values.replace(&mut stamps);
                let [stamp] = stamps;
                let alone = service.counter_value(RawStamp { domain, value });
                // Around a change of the kernel's line a stamp has no counter value.
                let (Domain::Counter, Some(alone)) = (stamp.raw.domain, alone) else { continue };
                converted += 1;
                // The value may be rounded down to a nanosecond.
                let step =
                    service.timeline(Domain::Counter).difference().ticks(Span::from_nanos(6));
                assert!((before - step..=after + step).contains(&stamp.raw.value));
                assert!(alone.abs_diff(stamp.raw.value) <= step, "{alone} {stamp:?}");
                let again = service.convert(stamp.raw.value).utc;
                assert!((again - utc).abs() <= Span::from_nanos(6), "{again:?} {utc:?}");
            }
            assert!(converted > 9_000, "{converted} of 10000");
        }
    }

    #[test]
    fn stamps_without_kernel_lines_keep_their_raw_values() {
        let service = ClockService::start_by_anchors(Counter::select()).unwrap();
        let stamp = service.timeline(Domain::Realtime).convert(1_790_000_000_000_000_000);
        let mut stamps = [stamp];
        service.counter_values().replace(&mut stamps);
        assert_eq!(stamps, [stamp]);
    }
}
