//! Difference clock: spans between stamps of one clock, computed without UTC.
//!
//! UTC may be slewed and stepped while a packet is in flight; the counter is not. A delay between two stamps of one
//! counter is therefore taken in ticks and scaled by the counter's own rate (the difference clock of Veitch, Ridoux
//! and Korada, "Robust synchronization of absolute and difference clocks over networks", IEEE/ACM Transactions on
//! Networking 17(2), 2009).
//!
//! The reference is `CLOCK_MONOTONIC_RAW`. The length of its second depends on the kernel's value of the oscillator's
//! frequency, which nothing on the machine can verify. A kernel that measures the TSC at boot, or uses its nominal
//! frequency, can be off by some tens of ppm: a microsecond in a delay of 20 ms. The error given here does not
//! include that.
//!
//! # The error of the rate
//!
//! The rate is the mean over the last minute. Its error follows from the errors of the first and the last anchor, if
//! the counter and `CLOCK_MONOTONIC_RAW` use one oscillator. With two oscillators, or with a change of the counter
//! below the limit of a disruption, the anchors in between deviate from the straight line by more than their errors.
//! The error is then the largest deviation of the rate between two anchors from the mean, plus the uncertainty of this
//! deviation, which can be as large. This lasts for a minute, as long as the anchors are kept.
//!
//! The error excludes a change before the next anchors, and a change that moved the counter by less than their
//! errors, about 100 ns. The error of a short span also excludes a jump of the counter below the limit of a
//! disruption (2.5 us).
//!
//! The daemon that steers a network card's clock ([`Domain::Nic`]) slews it, which is such a deviation. Its rate is
//! the mean since the last step of that clock or of the system clock.
//!
//! # The kernel's factor
//!
//! Where the kernel's own conversion is readable ([`crate::vdso`]), the rate is its factor for `CLOCK_MONOTONIC_RAW`. It
//! has no error against that clock, because it defines it. Stamps of the kernel are then converted to the counter too
//! ([`crate::CounterValues`]) and measured by this clock.
//!
//! # The system clock's own readings
//!
//! Otherwise the stamps of [`Domain::Realtime`] are readings of the system clock, so that their spans are slewed and stepped with
//! it. The error of such a span includes slewing up to 500 ppm, but no step: compare [`crate::Timeline::steps`] before
//! and after to detect one. A faster slew (up to 10 %) is counted at its beginning and at its end. A span within such a
//! slew is off by the slew's rate, and no count shows this.

use std::num::NonZeroU64;

use crate::ratio::{Ratio, approx, ceil_nanos};
use crate::{Domain, RawStamp, Span, Stamp};

/// Max rate of ordinary slewing of the system clock, as a fraction: the limit of the kernel's frequency correction
/// (500 ppm, to which adjtimex(2) clamps `ADJ_FREQUENCY`) and of its `adjtime` (`MAX_TICKADJ` of kernel/time/ntp.c).
pub(crate) const ORDINARY_SLEW: f64 = 500e-6;

/// Max rate of any slewing, as a fraction: `ADJ_TICK` of adjtimex(2) lengthens and shortens the clock's ticks by up
/// to 10 %. By default chrony uses up to a twelfth (`maxslewrate` of chrony.conf(5), 83333 ppm) for offsets that it
/// does not step.
pub(crate) const MAX_SLEW: f64 = 0.1 + ORDINARY_SLEW;

/// Measures spans between raw stamps of one domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DifferenceClock {
    domain: Domain,
    nanos_per_tick: Ratio,
    ticks_per_nano: Ratio,
    /// Bound of the rate's error, as a fraction of the rate.
    rate_error: f64,
    granularity: Span,
    /// Error of each stamp beyond the granularity.
    stamp_error: Span,
}

impl DifferenceClock {
    /// A clock that counted `ticks` in `nanos` nanoseconds.
    pub(crate) fn new(
        domain: Domain,
        ticks: NonZeroU64,
        nanos: NonZeroU64,
        rate_error: f64,
        granularity: Span,
    ) -> Self {
        Self {
            domain,
            nanos_per_tick: Ratio::of(nanos.get(), ticks),
            ticks_per_nano: Ratio::of(ticks.get(), nanos),
            rate_error,
            granularity,
            stamp_error: Span::ZERO,
        }
    }

    /// A clock of nanoseconds without calibration. Its spans include steps and slews faster than ordinary ones; their
    /// errors do not.
    pub(crate) fn nanoseconds(domain: Domain) -> Self {
        let nanosecond = Span::from_nanos(1);
        Self::new(domain, NonZeroU64::MIN, NonZeroU64::MIN, ORDINARY_SLEW, nanosecond)
    }

    /// Domain of the stamps that this clock measures between.
    #[must_use]
    pub const fn domain(&self) -> Domain {
        self.domain
    }

    /// Time from one stamp to another, negative if `to` was read first. `None` unless both are of this clock's
    /// domain.
    #[must_use]
    #[inline]
    pub fn span(&self, from: RawStamp, to: RawStamp) -> Option<Span> {
        if from.domain != self.domain || to.domain != self.domain {
            return None;
        }
        let nanos = self.nanos_per_tick.scale(to.value.abs_diff(from.value));
        let span = Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX));
        Some(if to.value >= from.value { span } else { -span })
    }

    /// Error bound of [`Self::span`]: the rate's error over the span plus the granularity of both stamps, rounded up, and
    /// the errors of stamps of the kernel as counter values.
    /// In [`Domain::Realtime`] it holds only without a step ([`crate::Timeline::steps`]) and without a slew of more
    /// than 500 ppm between the stamps.
    #[must_use]
    pub fn error(&self, span: Span) -> Span {
        let nanos = approx(span.as_nanos().unsigned_abs());
        let of_stamp = self.granularity + self.stamp_error;
        Span::from_nanos(ceil_nanos(nanos * self.rate_error)) + of_stamp + of_stamp
    }

    /// Time from one stamp to another, and its error bound: by this clock if it covers both, otherwise the difference
    /// in UTC with the errors of both stamps and ordinary slewing between them.
    #[must_use]
    pub fn elapsed(&self, from: &Stamp, to: &Stamp) -> (Span, Span) {
        if let Some(span) = self.span(from.raw, to.raw) {
            return (span, self.error(span));
        }
        let span = to.utc - from.utc;
        let slewed = approx(span.as_nanos().unsigned_abs()) * ORDINARY_SLEW;
        (span, from.error + to.error + Span::from_nanos(ceil_nanos(slewed)))
    }

    /// This clock, for stamps of the kernel whose counter values are known within `error`.
    pub(crate) fn with_stamp_error(self, error: Span) -> Self {
        Self { stamp_error: error, ..self }
    }

    /// Ticks in `span`, to the nearest; zero for a span that is not positive.
    #[must_use]
    pub fn ticks(&self, span: Span) -> u64 {
        u64::try_from(span.as_nanos()).map_or(0, |nanos| self.ticks_per_nano.scale(nanos))
    }

    /// Ticks per second of `CLOCK_MONOTONIC_RAW`.
    #[must_use]
    pub fn frequency_hz(&self) -> f64 {
        self.ticks_per_nano.to_f64() * 1e9
    }

    /// Bound of the rate's error against `CLOCK_MONOTONIC_RAW`, in parts per million. If the rate changed in the last
    /// minute, its max distance from [`Self::frequency_hz`]. 0 if the kernel's own factor is used
    /// ([`crate::ClockService::is_exact`]), which defines `CLOCK_MONOTONIC_RAW`.
    #[must_use]
    pub const fn rate_error_ppm(&self) -> f64 {
        self.rate_error * 1e6
    }

    /// The smallest usual step of the clock, rounded up to a nanosecond.
    #[must_use]
    pub const fn granularity(&self) -> Span {
        self.granularity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    fn counter_at_2_6_ghz() -> DifferenceClock {
        let ticks = NonZeroU64::new(2_600_000_000).unwrap();
        let nanos = NonZeroU64::new(1_000_000_000).unwrap();
        DifferenceClock::new(Domain::Counter, ticks, nanos, 1e-6, Span::from_nanos(10))
    }

    fn at(value: u64) -> RawStamp {
        RawStamp { domain: Domain::Counter, value }
    }

    #[test]
    fn span_to_an_earlier_stamp_is_negative() {
        let clock = counter_at_2_6_ghz();
        assert_eq!(clock.span(at(100), at(2_700)), Some(Span::from_nanos(1_000)));
        assert_eq!(clock.span(at(2_700), at(100)), Some(Span::from_nanos(-1_000)));
    }

    #[test]
    fn stamps_of_another_clock_are_rejected() {
        let other = RawStamp { domain: Domain::Realtime, value: 0 };
        assert_eq!(counter_at_2_6_ghz().span(at(0), other), None);
        assert_eq!(counter_at_2_6_ghz().span(other, at(0)), None);
    }

    #[test]
    fn error_grows_with_the_length_of_a_span() {
        let clock = counter_at_2_6_ghz();
        assert_eq!(clock.error(Span::ZERO), Span::from_nanos(20));
        assert_eq!(clock.error(Span::from_millis(20)), Span::from_nanos(40));
        assert_eq!(clock.error(Span::from_millis(-20)), Span::from_nanos(40));
    }

    #[test]
    fn errors_of_kernel_stamps_are_in_the_error_of_a_span() {
        let clock = counter_at_2_6_ghz().with_stamp_error(Span::from_nanos(5));
        assert_eq!(clock.error(Span::ZERO), Span::from_nanos(30));
        assert_eq!(clock.granularity(), Span::from_nanos(10));
    }

    #[test]
    fn stamps_of_two_clocks_are_compared_in_utc_with_its_slewing() {
        let stamp =
            |raw, utc| Stamp { raw, utc: Time::from_nanos(utc), error: Span::from_nanos(2) };
        let (from, to) = (stamp(at(100), 0), stamp(at(2_700), 2_000_000));
        let clock = counter_at_2_6_ghz();
        assert_eq!(clock.elapsed(&from, &to).0, Span::from_nanos(1_000));
        let other = RawStamp { domain: Domain::Realtime, value: 0 };
        let slewed = Span::from_nanos(4 + 1_000);
        let expected = (Span::from_nanos(2_000_000), slewed);
        assert_eq!(clock.elapsed(&from, &Stamp { raw: other, ..to }), expected);
    }

    #[test]
    fn negative_span_has_zero_ticks() {
        let clock = counter_at_2_6_ghz();
        assert_eq!(clock.ticks(Span::from_nanos(1_000)), 2_600);
        assert_eq!(clock.ticks(Span::ZERO), 0);
        assert_eq!(clock.ticks(Span::from_nanos(-1)), 0);
        assert_eq!(clock.ticks(Span::MAX), u64::MAX);
    }
}
