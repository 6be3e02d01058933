//! The difference clock: spans between stamps of one clock, which never pass through UTC.
//!
//! UTC is slewed and stepped while a packet is under way; the counter is not. A delay between two
//! stamps of one counter is therefore taken in ticks and scaled by the counter's own rate (the
//! difference clock of Veitch, Ridoux and Korada, "Robust synchronization of absolute and
//! difference clocks over networks", IEEE/ACM Transactions on Networking 17(2), 2009).
//!
//! The yardstick is `CLOCK_MONOTONIC_RAW`, whose seconds are as long as the kernel's idea of the
//! oscillator's frequency is right. Nothing on the machine alone can tell how right that is:
//! a kernel that measures the TSC at boot, or is told its nominal frequency, can be off by some
//! tens of ppm, a microsecond in a delay of 20 ms. The error given here does not contain that.
//!
//! # The error of the rate
//!
//! The rate is that of the last minute on the whole, and known as well as the errors of the first
//! and the last anchor allow. That is for a counter and a `CLOCK_MONOTONIC_RAW` of one oscillator.
//! Where they are of two, or the counter is changed by less than what counts as a disruption, the
//! anchors in between depart from the straight line by more than their errors. The error then is
//! the largest departure of the rate between two of them from the rate on the whole, and as much as
//! it may be off by, which is up to the same again; it lasts for the minute that it is in sight.
//!
//! What is not in it: a change before the next anchors, or one that has moved the counter by less
//! than their errors, some 100 ns. Nor is a jump of the counter too small for a disruption (2.5 us)
//! in the error of a short span.
//!
//! A network card's clock ([`Domain::Nic`]) is slewed by whoever steers it: that is such a departure.
//! Its rate is that since it was last stepped, or the system clock was.
//!
//! # The system clock's own readings
//!
//! The stamps of [`Domain::Realtime`] are the system clock's own readings, and their spans are
//! slewed and stepped with it. The error of such a span contains slewing up to 500 ppm and no step:
//! [`crate::Timeline::steps`], compared before and after, tells whether there was one. A slew that
//! is faster (up to 10 %) is counted where it begins and where it ends; a span within it is off by
//! its rate, which nothing tells of.

use std::num::NonZeroU64;

use crate::ratio::{Ratio, approx, ceil_nanos};
use crate::{Domain, RawStamp, Span};

/// How fast the system clock is slewed in the ordinary course of things, as a fraction: by as much
/// as the kernel's correction of its frequency reaches (500 ppm, to which adjtimex(2) clamps
/// `ADJ_FREQUENCY`) and its `adjtime` (`MAX_TICKADJ` of kernel/time/ntp.c).
pub(crate) const ORDINARY_SLEW: f64 = 500e-6;

/// How fast it can be slewed, as a fraction: `ADJ_TICK` of adjtimex(2) lengthens and shortens its
/// ticks by up to 10 %. Of that chrony uses up to a twelfth unless told otherwise
/// (`maxslewrate` of chrony.conf(5), 83333 ppm), for offsets that it does not step.
pub(crate) const FASTEST_SLEW: f64 = 0.1 + ORDINARY_SLEW;

/// Measures spans between raw stamps of one domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DifferenceClock {
    domain: Domain,
    nanos_per_tick: Ratio,
    ticks_per_nano: Ratio,
    /// Bound of the rate's error, as a fraction of the rate.
    rate_error: f64,
    granularity: Span,
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
        }
    }

    /// A clock of nanoseconds of which nothing is known. Steps, and slews faster than the ordinary,
    /// are in its spans and not in their errors.
    pub(crate) fn nanoseconds(domain: Domain) -> Self {
        let nanosecond = Span::from_nanos(1);
        Self::new(domain, NonZeroU64::MIN, NonZeroU64::MIN, ORDINARY_SLEW, nanosecond)
    }

    /// The domain of the stamps that this clock measures between.
    #[must_use]
    pub const fn domain(&self) -> Domain {
        self.domain
    }

    /// The time from one stamp to another, negative if `to` was read first; `None` unless both
    /// are of this clock's domain.
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

    /// How far [`Self::span`] can be off: the rate's error over the span and the granularity of
    /// both stamps, rounded up. In [`Domain::Realtime`] only if the system clock was not stepped
    /// between the stamps ([`crate::Timeline::steps`]), nor slewed by more than 500 ppm.
    #[must_use]
    pub fn error(&self, span: Span) -> Span {
        let nanos = approx(span.as_nanos().unsigned_abs());
        Span::from_nanos(ceil_nanos(nanos * self.rate_error)) + self.granularity + self.granularity
    }

    /// The ticks that pass in `span`, to the nearest; none for a span that is not positive.
    #[must_use]
    pub fn ticks(&self, span: Span) -> u64 {
        u64::try_from(span.as_nanos()).map_or(0, |nanos| self.ticks_per_nano.scale(nanos))
    }

    /// Ticks per second of `CLOCK_MONOTONIC_RAW`.
    #[must_use]
    pub fn frequency_hz(&self) -> f64 {
        self.ticks_per_nano.to_f64() * 1e9
    }

    /// Bound of the rate's error against `CLOCK_MONOTONIC_RAW`, in parts per million. Where the rate
    /// was seen to change in the last minute, how far it was from [`Self::frequency_hz`] at most.
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

    fn counter_at_2_6_ghz() -> DifferenceClock {
        let ticks = NonZeroU64::new(2_600_000_000).unwrap();
        let nanos = NonZeroU64::new(1_000_000_000).unwrap();
        DifferenceClock::new(Domain::Counter, ticks, nanos, 1e-6, Span::from_nanos(10))
    }

    fn at(value: u64) -> RawStamp {
        RawStamp { domain: Domain::Counter, value }
    }

    #[test]
    fn a_span_has_the_sign_of_its_direction() {
        let clock = counter_at_2_6_ghz();
        assert_eq!(clock.span(at(100), at(2_700)), Some(Span::from_nanos(1_000)));
        assert_eq!(clock.span(at(2_700), at(100)), Some(Span::from_nanos(-1_000)));
    }

    #[test]
    fn stamps_of_another_clock_have_no_span() {
        let other = RawStamp { domain: Domain::Realtime, value: 0 };
        assert_eq!(counter_at_2_6_ghz().span(at(0), other), None);
        assert_eq!(counter_at_2_6_ghz().span(other, at(0)), None);
    }

    #[test]
    fn the_error_of_a_span_grows_with_its_length_in_either_direction() {
        let clock = counter_at_2_6_ghz();
        assert_eq!(clock.error(Span::ZERO), Span::from_nanos(20));
        assert_eq!(clock.error(Span::from_millis(20)), Span::from_nanos(40));
        assert_eq!(clock.error(Span::from_millis(-20)), Span::from_nanos(40));
    }

    #[test]
    fn a_deadline_in_the_past_is_no_ticks_away() {
        let clock = counter_at_2_6_ghz();
        assert_eq!(clock.ticks(Span::from_nanos(1_000)), 2_600);
        assert_eq!(clock.ticks(Span::ZERO), 0);
        assert_eq!(clock.ticks(Span::from_nanos(-1)), 0);
        assert_eq!(clock.ticks(Span::MAX), u64::MAX);
    }
}
