//! Counter values of the kernel's stamps: the inverse conversion for many stamps.

use super::ClockService;
use crate::vdso::KernelClock;
use crate::vdso::history::{CounterAt, LineInverse, Lines};
use crate::{Domain, RawStamp, Stamp};

/// Lines to a clock of the kernel, with the inverse of the newest one.
struct Inverse {
    newest: LineInverse,
    lines: Lines,
}

impl Inverse {
    fn counter_at(&self, nanos: i64) -> CounterAt {
        // Stamps that are converted soon after they were taken are on the newest line.
        match self.newest.counter(nanos) {
            Some(value) => CounterAt::Value(value),
            None => self.lines.counter_at(nanos),
        }
    }
}

/// An inverse that is read when the first stamp of its clock is found.
#[derive(Default)]
struct LazyInverse(Option<Option<Inverse>>);

impl LazyInverse {
    fn get(&mut self, read: impl FnOnce() -> Option<Lines>) -> Option<&Inverse> {
        let inverse = || {
            let lines = read()?;
            Some(Inverse { newest: lines.newest_inverse(), lines })
        };
        self.0.get_or_insert_with(inverse).as_ref()
    }
}

impl ClockService {
    /// Replaces the raw values of stamps that the kernel took ([`Domain::Realtime`], [`Domain::Monotonic`]) by those of
    /// the counter at the same time, within 5 ns. The differences of counter values are independent of steps and slews
    /// of the system clock ([`Timeline::difference`](crate::Timeline::difference) of these domains covers them). Call
    /// it after the stamps were taken. The times stay as they are. This allocates no memory.
    ///
    /// A stamp keeps its raw value if [`Self::is_exact`] is false, if it is older than the last seconds, or if the clock
    /// was stepped or slewed by more than 5 ns around it: its error then includes that change.
    pub fn to_counter(&self, stamps: &mut [Stamp]) {
        if !self.is_exact() {
            return;
        }
        let (mut realtime, mut monotonic) = (LazyInverse::default(), LazyInverse::default());
        for stamp in stamps {
            let inverse = match stamp.raw.domain {
                Domain::Realtime => realtime.get(|| self.newest.lines_to(KernelClock::Realtime)),
                Domain::Monotonic => monotonic.get(|| self.newest.lines_to(KernelClock::Monotonic)),
                Domain::Counter | Domain::Nic => None,
            };
            match inverse.map(|inverse| inverse.counter_at(stamp.raw.value.cast_signed())) {
                Some(CounterAt::Value(value)) => {
                    stamp.raw = RawStamp { domain: Domain::Counter, value };
                }
                Some(CounterAt::Uncertain(error)) => stamp.error = stamp.error.max(error),
                Some(CounterAt::Unknown) | None => {}
            }
        }
    }

    /// The counter's value at the time of one stamp of the kernel, as [`Self::to_counter`]; none if it is not known.
    #[must_use]
    pub fn counter_value(&self, stamp: RawStamp) -> Option<u64> {
        let mut stamps = [self.timeline(stamp.domain).convert(stamp.value)];
        self.to_counter(&mut stamps);
        let [Stamp { raw, .. }] = stamps;
        (raw.domain == Domain::Counter).then_some(raw.value)
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_sys::clock::{ClockId, now};

    use super::*;
    use crate::{Counter, Span};

    #[test]
    fn counter_values_of_kernel_stamps_convert_back() {
        let service = ClockService::start(Counter::select()).unwrap();
        if !service.is_exact() {
            return println!("skipped here: {:?}", service.no_exact_conversion());
        }
        let clocks =
            [(Domain::Realtime, ClockId::Realtime), (Domain::Monotonic, ClockId::Monotonic)];
        for (domain, clock) in clocks {
            for _ in 0..10_000 {
                let before = service.counter().read_ordered();
                let value = now(clock).unsigned_abs();
                let after = service.counter().read_ordered();
                let mut stamps = [service.timeline(domain).convert(value)];
                let utc = stamps[0].utc;
                service.to_counter(&mut stamps);
                let [stamp] = stamps;
                assert_eq!(stamp.raw.domain, Domain::Counter);
                // The value may be rounded down to a nanosecond.
                let step =
                    service.timeline(Domain::Counter).difference().ticks(Span::from_nanos(6));
                assert!((before - step..=after + step).contains(&stamp.raw.value));
                let again = service.convert(stamp.raw.value).utc;
                assert!((again - utc).abs() <= Span::from_nanos(6), "{again:?} {utc:?}");
            }
        }
    }

    #[test]
    fn stamps_without_kernel_lines_keep_their_raw_values() {
        let service = ClockService::start_by_anchors(Counter::select()).unwrap();
        let stamp = service.timeline(Domain::Realtime).convert(1_790_000_000_000_000_000);
        let mut stamps = [stamp];
        service.to_counter(&mut stamps);
        assert_eq!(stamps, [stamp]);
    }
}
