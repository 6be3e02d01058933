//! Anchors: joint reads of one clock and the system's clocks, with an error bound.

use wirestamp_sys::clock::{ClockId, now};

use crate::ratio::{Rate, approx, ceil_nanos};
use crate::{Counter, Domain, MonotonicRaw, Span, Time, Utc};

/// Number of bracketed reads; the tightest is kept. One read takes about 100 ns, and an interrupt disturbs one or two
/// in a row. So some of eight reads are undisturbed, unless the machine is stalled throughout.
const READS: usize = 8;

/// Clocks that a calibrator reads: the clock to be calibrated and the two reference clocks.
///
/// The calibrator reads no other clock, so that it also runs in simulation. A reading takes place at some instant
/// between the call and the return.
pub trait Clocks {
    /// Value of the clock to be calibrated, in ticks, ordered against the other two readings.
    fn raw(&mut self) -> u64;
    /// Value of `CLOCK_REALTIME`.
    fn utc(&mut self) -> Time<Utc>;
    /// Value of `CLOCK_MONOTONIC_RAW`.
    fn monotonic_raw(&mut self) -> Time<MonotonicRaw>;
}

/// One instant on three clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Value of the calibrated clock, in ticks.
    pub raw: u64,
    /// `CLOCK_REALTIME` when the calibrated clock had the value `raw`.
    pub utc: Time<Utc>,
    /// `CLOCK_MONOTONIC_RAW` at the same instant.
    pub monotonic_raw: Time<MonotonicRaw>,
    /// Bound of the error of `utc` and of `monotonic_raw`: half the width of the bracket around them plus the
    /// granularity of the calibrated clock, rounded up. A bound, not an estimate, because the readings were taken
    /// inside their brackets.
    pub error: Span,
}

/// An anchor with its epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) anchor: Anchor,
    /// Number of steps before this anchor.
    pub(crate) epoch: u32,
}

/// Readings of the two reference clocks, each between two readings of the calibrated clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bracket {
    first: u64,
    utc: Time<Utc>,
    second: u64,
    monotonic_raw: Time<MonotonicRaw>,
    third: u64,
}

impl Bracket {
    /// The tightest of several reads; `None` if the calibrated clock ran backwards in all of them.
    pub(crate) fn read(clocks: &mut impl Clocks) -> Option<Self> {
        (0..READS)
            .map(|_| Self::read_once(clocks))
            .filter(|read| read.first <= read.second && read.second <= read.third)
            .min_by_key(|read| read.half_width())
    }

    fn read_once(clocks: &mut impl Clocks) -> Self {
        // Order matters: the fields of a struct expression are evaluated in source order.
        Self {
            first: clocks.raw(),
            utc: clocks.utc(),
            second: clocks.raw(),
            monotonic_raw: clocks.monotonic_raw(),
            third: clocks.raw(),
        }
    }

    /// Half the width of the wider bracket, in ticks, rounded up.
    pub(crate) fn half_width(&self) -> u64 {
        (self.second - self.first).max(self.third - self.second).div_ceil(2)
    }

    /// Ticks, and nanoseconds of `CLOCK_MONOTONIC_RAW`, from `earlier` to `self`.
    pub(crate) fn since(&self, earlier: &Self) -> (u64, Span) {
        let ticks = midpoint(self.second, self.third)
            .saturating_sub(midpoint(earlier.second, earlier.third));
        (ticks, self.monotonic_raw - earlier.monotonic_raw)
    }

    /// The anchor at the middle of the UTC bracket. The other reading is moved there by the clock's rate.
    pub(crate) fn anchor(&self, rate: Rate, granularity: Span) -> Anchor {
        let raw = midpoint(self.first, self.second);
        let ticks = approx(midpoint(self.second, self.third) - raw);
        let carried = ticks * rate.nanos_per_tick;
        let half_width = approx(self.half_width()) * (rate.nanos_per_tick + rate.error);
        // One nanosecond more, because the reference clocks are read and moved in whole nanoseconds.
        let error = half_width + ticks * rate.error + 1.0;
        Anchor {
            raw,
            utc: self.utc,
            monotonic_raw: self.monotonic_raw - Span::from_nanos(ceil_nanos(carried - 0.5)),
            error: Span::from_nanos(ceil_nanos(error)) + granularity,
        }
    }
}

fn midpoint(low: u64, high: u64) -> u64 {
    low + (high - low) / 2
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClocks {
    target: Target,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Counter(Counter),
    Monotonic,
}

impl SystemClocks {
    /// For the calibration of a counter.
    pub(crate) const fn counter(counter: Counter) -> Self {
        Self { target: Target::Counter(counter) }
    }

    /// For the calibration of `CLOCK_MONOTONIC`, as a counter of nanoseconds.
    pub(crate) const fn monotonic() -> Self {
        Self { target: Target::Monotonic }
    }

    /// Domain of the stamps that [`Clocks::raw`] reads.
    pub(crate) const fn domain(self) -> Domain {
        match self.target {
            Target::Counter(counter) => counter.domain(),
            Target::Monotonic => Domain::Monotonic,
        }
    }

    /// Fills `reads` with consecutive unordered readings of the clock to be calibrated, as packets are stamped.
    pub(crate) fn read_fast(self, reads: &mut [u64]) {
        match self.target {
            Target::Counter(counter) => reads.fill_with(|| counter.read()),
            Target::Monotonic => reads.fill_with(monotonic),
        }
    }
}

fn monotonic() -> u64 {
    u64::try_from(now(ClockId::Monotonic)).unwrap_or(0)
}

impl Clocks for SystemClocks {
    fn raw(&mut self) -> u64 {
        match self.target {
            Target::Counter(counter) => counter.read_ordered(),
            Target::Monotonic => monotonic(),
        }
    }

    fn utc(&mut self) -> Time<Utc> {
        Time::from_nanos(now(ClockId::Realtime))
    }

    fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
        Time::from_nanos(now(ClockId::MonotonicRaw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Rate = Rate { nanos_per_tick: 1.0, error: 0.0 };

    /// Clocks at 1 GHz with equal values. Each read takes the next of `delays` and happens in its middle.
    struct UniformClocks<D> {
        now: u64,
        delays: D,
    }

    impl<D: Iterator<Item = u64>> UniformClocks<D> {
        fn read(&mut self) -> u64 {
            let delay = self.delays.next().unwrap();
            self.now += delay;
            self.now - delay / 2
        }
    }

    impl<D: Iterator<Item = u64>> Clocks for UniformClocks<D> {
        fn raw(&mut self) -> u64 {
            self.read()
        }
        fn utc(&mut self) -> Time<Utc> {
            Time::from_nanos(self.read().cast_signed())
        }
        fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
            Time::from_nanos(self.read().cast_signed())
        }
    }

    #[test]
    fn reference_clocks_are_within_the_anchors_error() {
        for [first, utc, second, monotonic_raw, third] in
            [[20, 40, 20, 40, 20], [10, 90, 10, 20, 30], [30, 20, 80, 100, 10]]
        {
            let delays = [first, utc, second, monotonic_raw, third].into_iter().cycle();
            let bracket = Bracket::read(&mut UniformClocks { now: 1_000, delays }).unwrap();
            let anchor = bracket.anchor(EXACT, Span::from_nanos(1));
            let raw = anchor.raw.cast_signed();
            assert!((raw - anchor.utc.as_nanos()).abs() <= anchor.error.as_nanos());
            assert!((raw - anchor.monotonic_raw.as_nanos()).abs() <= anchor.error.as_nanos());
        }
    }

    #[test]
    fn tightest_of_all_reads_is_used() {
        let slow = [500_u64; 5].into_iter();
        let tight = [20; 5];
        let delays = slow.clone().chain(slow.clone()).chain(tight).chain(slow.cycle());
        let bracket = Bracket::read(&mut UniformClocks { now: 1_000, delays }).unwrap();
        assert_eq!(bracket.anchor(EXACT, Span::ZERO).error, Span::from_nanos(21));
    }
}
