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

    /// The counter value of a stamp that was taken before the counter value `now`, up to which the newest line is in
    /// force.
    fn counter_at(&self, nanos: i64, now: u64) -> CounterAt {
        // Most stamps are on the newest line. A later time is of an older line, before the clock was set back.
        match self.newest.counter(nanos).filter(|value| *value <= now) {
            Some(value) => CounterAt::Value(value),
            None => self.lines.counter_at(nanos, now),
        }
    }

    /// Replaces the raw values of stamps of one domain.
    fn replace(&self, stamps: &mut [Stamp], now: u64) {
        for stamp in stamps {
            match self.counter_at(stamp.raw.value.cast_signed(), now) {
                CounterAt::Value(value) => {
                    stamp.raw = RawStamp { domain: Domain::Counter, value };
                }
                CounterAt::Uncertain(error) => stamp.error = stamp.error.max(error),
                CounterAt::Unknown => {}
            }
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
    /// A stamp keeps its raw value if [`ClockService::is_exact`](crate::ClockService::is_exact) is false, or if it is
    /// older than the last seconds. It also keeps it if the clock was stepped or slewed by more than 5 ns around it, or
    /// was set back and showed this time twice in the last seconds: its error then includes that change.
    pub fn replace(&mut self, stamps: &mut [Stamp]) {
        for stamps in stamps.chunk_by_mut(|a, b| a.raw.domain == b.raw.domain) {
            if let Some((inverse, now)) = self.inverse_of(stamps[0].raw.domain) {
                inverse.replace(stamps, now);
            }
        }
    }

    /// The inverse conversion of a domain, and a counter value up to which its newest line is in force.
    fn inverse_of(&mut self, domain: Domain) -> Option<(&Inverse, u64)> {
        let kept = match domain {
            Domain::Realtime => &mut self.realtime,
            Domain::Monotonic => &mut self.monotonic,
            Domain::Counter | Domain::Nic => return None,
        };
        // Read before the sequence number, which then shows that the kept line is in force up to this value.
        let now = self.newest.conversion.as_ref()?.counter_now();
        let sequence = self.newest.sequence_if_exact()?;
        if kept.as_ref().is_none_or(|kept| kept.sequence != sequence) {
            let lines = self.newest.lines_to(KernelClock::of_domain(domain)?)?;
            *kept = Some(Inverse::new(sequence, lines));
        }
        kept.as_ref().map(|inverse| (inverse, now))
    }
}

impl LatestTimelines {
    /// The counter's value at the time of one stamp of the kernel.
    pub(super) fn counter_value(&self, stamp: RawStamp) -> Option<u64> {
        let sequence = self.sequence_if_exact()?;
        let lines = self.lines_to(KernelClock::of_domain(stamp.domain)?)?;
        let (now, nanos) = (lines.until(), stamp.value.cast_signed());
        match Inverse::new(sequence, lines).counter_at(nanos, now) {
            CounterAt::Value(value) => Some(value),
            CounterAt::Uncertain(_) | CounterAt::Unknown => None,
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
    use crate::vdso::KernelLine;
    use crate::vdso::history::LineHistory;
    use crate::{ClockService, Counter, Span, Timeline};

    const MILLI: u64 = 1_000_000;

    /// The stamp of the time `millis`, after `Inverse::replace`.
    fn replaced(inverse: &Inverse, millis: u64, now: u64) -> Stamp {
        let mut stamps = [Timeline::realtime().convert(millis * MILLI)];
        inverse.replace(&mut stamps, now * MILLI);
        stamps[0]
    }

    /// Whether the stamp has the counter's value of this time, up to rounding.
    fn is_at(stamp: Stamp, millis: u64) -> bool {
        stamp.raw.domain == Domain::Counter && stamp.raw.value.abs_diff(millis * MILLI) <= 2
    }

    #[test]
    fn stamp_before_a_backward_step_gets_no_value_in_the_future() {
        // The clock is 90 s ahead of the counter, then 89 s: it is set back between 20.00 s and 20.02 s.
        let mut history = LineHistory::default();
        let before = KernelLine::nominal(10_000 * MILLI, 100_000 * MILLI);
        let after = KernelLine::nominal(20_010 * MILLI, 109_010 * MILLI);
        history.observe(before, 10_000 * MILLI);
        history.observe(before, 20_000 * MILLI);
        history.observe(after, 20_020 * MILLI);
        let inverse = Inverse::new(0, history.lines().unwrap());
        let stamp = |millis, now| replaced(&inverse, millis, now);
        assert!(is_at(stamp(109_990, 20_050), 19_990), "20 ms before the step");
        assert!(is_at(stamp(110_300, 21_500), 21_300), "never shown before the step");
        for (millis, now) in [(109_040, 20_050), (109_990, 21_500)] {
            let repeated = stamp(millis, now);
            assert_eq!(repeated.raw.domain, Domain::Realtime, "{millis}");
            assert_eq!(repeated.error, Span::from_nanos(1_000_000_000), "{millis}");
        }

        history.observe(after, 30_000 * MILLI);
        let inverse = Inverse::new(0, history.lines().unwrap());
        assert!(is_at(replaced(&inverse, 109_990, 30_000), 20_990), "some seconds later");
    }

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
