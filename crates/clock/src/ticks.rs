//! Points in time and spans counted in ticks, with the clock in the type.
//!
//! Deadlines, comparisons and sums do not need the length of a tick. A [`TickTime`] and a [`TickSpan`] are signed
//! 64-bit counts of the clock's own ticks, and all their operations are integer operations. Nanoseconds are computed
//! on request, by the clock's rate ([`DifferenceClock`]) or its [`Timeline`], with the best calibration of that
//! moment (the idea of the main counter in Fedotova and Siemens, "HighPerTimer").
//!
//! # Reference
//!
//! A clock's raw values are unsigned. A [`TickTime`] counts from the middle of their range, 2^63. So raw values and
//! ticks correspond one to one, in the same order. Nothing wraps or is lost, even if firmware or a hypervisor starts a
//! counter near the end of its range.
//!
//! # Overflow
//!
//! Sums and differences saturate at the ends of the range, as those of [`crate::Time`] do: 58 years in both
//! directions at 5 GHz. Two times more than 2^63 ticks apart have a difference of [`TickSpan::MAX`] or
//! [`TickSpan::MIN`], which has the right sign.
//!
//! # Two clocks
//!
//! Times of different clocks do not mix:
//!
//! ```compile_fail,E0308
//! use wirestamp_clock::{CounterTicks, MonotonicTicks, TickTime};
//! let counted: TickTime<CounterTicks> = TickTime::from_raw(1);
//! let uptime: TickTime<MonotonicTicks> = TickTime::from_raw(1);
//! let _ = counted - uptime; // expected `TickTime<CounterTicks>`
//! ```
//!
//! If the clock is known only at run time, as in a [`RawStamp`], a [`Timeline`] or a [`DifferenceClock`], the wrong
//! one is rejected with [`ClockMismatch`]. Two [`Counter`]s are not distinguished: a program chooses its counter
//! once, at the start.

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Neg, Sub};

use thiserror::Error;

use crate::{Counter, DifferenceClock, Domain, RawStamp, Span, Stamp, Timeline};

/// The clock of a [`TickTime`], as a type.
pub trait Ticking: Copy + Ord + Hash + Debug + 'static {
    /// Domain of the clock's raw values.
    const DOMAIN: Domain;
}

/// The ticks of the machine's counter ([`Domain::Counter`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterTicks {}

/// The nanoseconds of `CLOCK_MONOTONIC` ([`Domain::Monotonic`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MonotonicTicks {}

/// The nanoseconds of `CLOCK_REALTIME` ([`Domain::Realtime`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RealtimeTicks {}

impl Ticking for CounterTicks {
    const DOMAIN: Domain = Domain::Counter;
}
impl Ticking for MonotonicTicks {
    const DOMAIN: Domain = Domain::Monotonic;
}
impl Ticking for RealtimeTicks {
    const DOMAIN: Domain = Domain::Realtime;
}

/// Error: a value of one clock was used with another clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "cannot use a value of {found:?} as one of {expected:?}: the clocks differ; convert each by its own clock"
)]
pub struct ClockMismatch {
    /// The required clock.
    pub expected: Domain,
    /// The clock of the value.
    pub found: Domain,
}

impl ClockMismatch {
    fn check<C: Ticking>(found: Domain) -> Result<(), Self> {
        let expected = C::DOMAIN;
        if found == expected { Ok(()) } else { Err(Self { expected, found }) }
    }
}

/// Raw value from which a [`TickTime`] counts.
const REFERENCE: u64 = 1 << 63;

/// A point in time, in ticks of clock `C` since the middle of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TickTime<C> {
    count: i64,
    clock: PhantomData<fn() -> C>,
}

impl<C> TickTime<C> {
    /// The earliest point: the raw value 0.
    pub const MIN: Self = Self::from_count(i64::MIN);
    /// The latest point: the raw value 2^64 - 1.
    pub const MAX: Self = Self::from_count(i64::MAX);

    /// The point at which the clock reads `value`.
    #[inline]
    #[must_use]
    pub const fn from_raw(value: u64) -> Self {
        Self::from_count((value ^ REFERENCE).cast_signed())
    }

    /// Value of the clock at this point.
    #[inline]
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.count.cast_unsigned() ^ REFERENCE
    }

    /// The point `count` ticks after the reference (the raw value 2^63).
    #[inline]
    #[must_use]
    pub const fn from_count(count: i64) -> Self {
        Self { count, clock: PhantomData }
    }

    /// Ticks since the reference.
    #[inline]
    #[must_use]
    pub const fn count(self) -> i64 {
        self.count
    }
}

impl TickTime<CounterTicks> {
    /// The counter's current value, unordered as [`Counter::read`] is.
    #[inline(always)]
    #[must_use]
    pub fn now(counter: Counter) -> Self {
        Self::from_raw(counter.read())
    }
}

impl<C: Ticking> TickTime<C> {
    /// The point as a raw stamp.
    #[must_use]
    pub const fn stamp(self) -> RawStamp {
        RawStamp { domain: C::DOMAIN, value: self.raw() }
    }

    /// The point on the UTC scale, with its error bound.
    ///
    /// # Errors
    /// If the timeline is of another clock.
    pub fn to_utc(self, timeline: &Timeline) -> Result<Stamp, ClockMismatch> {
        ClockMismatch::check::<C>(timeline.domain())?;
        Ok(timeline.convert(self.raw()))
    }
}

/// The point at which the stamp was read; an error for a stamp of another clock.
impl<C: Ticking> TryFrom<RawStamp> for TickTime<C> {
    type Error = ClockMismatch;
    fn try_from(stamp: RawStamp) -> Result<Self, ClockMismatch> {
        ClockMismatch::check::<C>(stamp.domain)?;
        Ok(Self::from_raw(stamp.value))
    }
}

impl<C> Sub for TickTime<C> {
    type Output = TickSpan<C>;
    #[inline]
    fn sub(self, earlier: Self) -> TickSpan<C> {
        TickSpan::from_count(self.count.saturating_sub(earlier.count))
    }
}
impl<C> Add<TickSpan<C>> for TickTime<C> {
    type Output = Self;
    #[inline]
    fn add(self, span: TickSpan<C>) -> Self {
        Self::from_count(self.count.saturating_add(span.count))
    }
}
impl<C> AddAssign<TickSpan<C>> for TickTime<C> {
    #[inline]
    fn add_assign(&mut self, span: TickSpan<C>) {
        self.count = self.count.saturating_add(span.count);
    }
}
impl<C> Sub<TickSpan<C>> for TickTime<C> {
    type Output = Self;
    #[inline]
    fn sub(self, span: TickSpan<C>) -> Self {
        Self::from_count(self.count.saturating_sub(span.count))
    }
}

/// A signed distance in time, in ticks of clock `C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TickSpan<C> {
    count: i64,
    clock: PhantomData<fn() -> C>,
}

impl<C> TickSpan<C> {
    /// A span of zero.
    pub const ZERO: Self = Self::from_count(0);
    /// The longest negative span.
    pub const MIN: Self = Self::from_count(i64::MIN);
    /// The longest span.
    pub const MAX: Self = Self::from_count(i64::MAX);

    /// A span of `count` ticks.
    #[inline]
    #[must_use]
    pub const fn from_count(count: i64) -> Self {
        Self { count, clock: PhantomData }
    }

    /// The span in ticks.
    #[inline]
    #[must_use]
    pub const fn count(self) -> i64 {
        self.count
    }
}

impl<C: Ticking> TickSpan<C> {
    /// Ticks in `span`, to the nearest; negative for a negative span.
    ///
    /// # Errors
    /// If `rate` belongs to another clock.
    pub fn of(span: Span, rate: &DifferenceClock) -> Result<Self, ClockMismatch> {
        ClockMismatch::check::<C>(rate.domain())?;
        let count = i64::try_from(rate.ticks(span.abs())).unwrap_or(i64::MAX);
        Ok(Self::from_count(if span < Span::ZERO { -count } else { count }))
    }

    /// The span in nanoseconds, to the nearest; [`DifferenceClock::error`] bounds its error.
    ///
    /// # Errors
    /// If `rate` belongs to another clock.
    pub fn to_span(self, rate: &DifferenceClock) -> Result<Span, ClockMismatch> {
        let at = |value| RawStamp { domain: C::DOMAIN, value };
        let found = rate.domain();
        let length = rate.span(at(0), at(self.count.unsigned_abs()));
        let length = length.ok_or(ClockMismatch { expected: C::DOMAIN, found })?;
        Ok(if self.count < 0 { -length } else { length })
    }
}

impl<C> Add for TickSpan<C> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::from_count(self.count.saturating_add(other.count))
    }
}
impl<C> Sub for TickSpan<C> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::from_count(self.count.saturating_sub(other.count))
    }
}
impl<C> Neg for TickSpan<C> {
    type Output = Self;
    fn neg(self) -> Self {
        Self::from_count(self.count.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use proptest::prelude::*;

    use super::*;

    type Tick = TickTime<CounterTicks>;
    type Ticks = TickSpan<CounterTicks>;

    fn rate(hertz: u64) -> DifferenceClock {
        let ticks = NonZeroU64::new(hertz).unwrap();
        let second = NonZeroU64::new(1_000_000_000).unwrap();
        DifferenceClock::new(Domain::Counter, ticks, second, 1e-6, Span::from_nanos(10))
    }

    fn count() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), prop::sample::select(vec![i64::MIN, -1, 0, 1, i64::MAX])]
    }

    fn saturated(sum: i128) -> i64 {
        i64::try_from(sum.clamp(i64::MIN.into(), i64::MAX.into())).unwrap()
    }

    #[test]
    fn tick_range_equals_raw_range() {
        assert_eq!((Tick::MIN.raw(), Tick::MAX.raw()), (0, u64::MAX));
        assert_eq!(Tick::MAX - Tick::MIN, Ticks::MAX);
        assert_eq!(Tick::MIN - Tick::MAX, Ticks::MIN);
        assert_eq!(-Ticks::MIN, Ticks::MAX);
    }

    #[test]
    fn values_of_another_clock_are_rejected() {
        let refused = ClockMismatch { expected: Domain::Counter, found: Domain::Realtime };
        let realtime = DifferenceClock::nanoseconds(Domain::Realtime);
        assert_eq!(Ticks::of(Span::from_secs(1), &realtime), Err(refused));
        assert_eq!(Ticks::ZERO.to_span(&realtime), Err(refused));
        assert_eq!(Tick::MIN.to_utc(&Timeline::realtime()), Err(refused));
        assert_eq!(Tick::try_from(TickTime::<RealtimeTicks>::MIN.stamp()), Err(refused));
    }

    #[test]
    fn realtime_ticks_are_utc() {
        let time = TickTime::<RealtimeTicks>::from_raw(1_790_000_000_123_456_789);
        let stamp = time.to_utc(&Timeline::realtime()).unwrap();
        assert_eq!(stamp.utc.as_nanos(), 1_790_000_000_123_456_789);
        assert_eq!(stamp.raw, time.stamp());
    }

    proptest! {
        #[test]
        fn ticks_preserve_raw_values_and_order(a in any::<u64>(), b in any::<u64>()) {
            let (first, second) = (Tick::from_raw(a), Tick::from_raw(b));
            prop_assert_eq!(first.raw(), a);
            prop_assert_eq!(first.cmp(&second), a.cmp(&b));
            prop_assert_eq!((second - first).cmp(&Ticks::ZERO), b.cmp(&a), "the sign is right");
            prop_assert_eq!(Tick::try_from(first.stamp()), Ok(first));
        }

        #[test]
        fn sums_are_exact_or_saturate(a in count(), b in count()) {
            let (time, span) = (Tick::from_count(a), Ticks::from_count(b));
            let (sum, difference) = (i128::from(a) + i128::from(b), i128::from(a) - i128::from(b));
            prop_assert_eq!((time + span).count(), saturated(sum));
            prop_assert_eq!((time - span).count(), saturated(difference));
            prop_assert_eq!((time - Tick::from_count(b)).count(), saturated(difference));
            prop_assert_eq!((Ticks::from_count(a) + span).count(), saturated(sum));
            prop_assert_eq!((Ticks::from_count(a) - span).count(), saturated(difference));
            let mut assigned = time;
            assigned += span;
            prop_assert_eq!(assigned, time + span);
        }

        #[test]
        fn span_in_ticks_is_exact_or_saturates(
            ticks in count(), hertz in 1_000_000_u64..=6_000_000_000,
        ) {
            let nanos = Ticks::from_count(ticks).to_span(&rate(hertz)).unwrap().as_nanos();
            let exact = i128::from(ticks) * 1_000_000_000;
            let end = i128::from(i64::MAX) * i128::from(hertz);
            let off = i128::from(nanos) * i128::from(hertz) - exact.clamp(-end, end);
            prop_assert!(off.abs() <= i128::from(hertz), "off by {off} of {hertz}");
        }

        #[test]
        fn span_survives_ticks_within_one(
            nanos in -86_400_000_000_000_i64..=86_400_000_000_000,
            hertz in 1_000_000_u64..=6_000_000_000,
        ) {
            let rate = rate(hertz);
            let span = Span::from_nanos(nanos);
            let back = Ticks::of(span, &rate).unwrap().to_span(&rate).unwrap();
            let tick = 1_000_000_000 / hertz.cast_signed();
            prop_assert!((back - span).abs().as_nanos() <= tick + 2);
        }

        #[test]
        fn ticks_have_the_sign_of_the_span(nanos in count(), hertz in 1_000_000_u64..=6_000_000_000) {
            let ticks = Ticks::of(Span::from_nanos(nanos), &rate(hertz)).unwrap();
            prop_assert!(ticks.count().signum() * nanos.signum() >= 0);
        }
    }
}
