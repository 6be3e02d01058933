//! Conversion of times and spans to and from the types of `std` and of the C library.
//!
//! The conversion is a `From` if every value has a counterpart. Otherwise it is a `TryFrom`, and its error,
//! [`OutOfRange`], holds the nearest valid value, for a saturating conversion:
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use wirestamp_clock::{OutOfRange, Span, Time, Utc};
//!
//! let now = Time::<Utc>::try_from(SystemTime::now())?;
//! assert!(SystemTime::from(now) <= SystemTime::now());
//! let overdue = Duration::try_from(Span::from_millis(-5)).unwrap_or_else(OutOfRange::into_nearest);
//! assert_eq!(overdue, Duration::ZERO);
//! # Ok::<(), OutOfRange<Time<Utc>>>(())
//! ```
//!
//! | from | to | |
//! |---|---|---|
//! | `Time<Utc>` | `SystemTime` | exact |
//! | `SystemTime` | `Time<Utc>` | exact from 1677-09-21 to 2262-04-11, else out of range |
//! | `Span` | `Duration` | exact; out of range if negative |
//! | `Duration` | `Span` | exact up to 292 years, else out of range |
//! | `Time`, `Span` | `timespec` | exact |
//! | `Time`, `Span` | `timeval` | rounded down, towards the past, to a microsecond |
//! | `timespec`, `timeval` | `Time`, `Span` | exact within 292 years, else out of range |
//!
//! The results of conversion to `timespec` and `timeval` are normalised: the part below a second is never negative.
//! Half a second before 1970 is `{ -1, 500_000_000 }`, as in `clock_gettime(2)`. Inputs need not be normalised: a
//! carry or a negative part is added. Neither type has a time scale; the caller chooses it by the type of `Time`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thiserror::Error;

use crate::{Span, Time, Utc};

const NANOS_PER_SEC: i64 = 1_000_000_000;
const MICROS_PER_SEC: i64 = 1_000_000;
const NANOS_PER_MICRO: i64 = 1_000;

/// Error of a conversion: the value is beyond the range of the target type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cannot convert the value: it is out of range; the nearest valid value is {nearest:?}")]
pub struct OutOfRange<T> {
    nearest: T,
}

impl<T> OutOfRange<T> {
    /// The end of the target's range nearest to the value.
    #[must_use]
    pub fn into_nearest(self) -> T {
        self.nearest
    }
}

/// `nanos` as a time or a span, if it fits.
fn within_range<T>(nanos: i128, of: impl FnOnce(i64) -> T) -> Result<T, OutOfRange<T>> {
    let nearest = if nanos < 0 { i64::MIN } else { i64::MAX };
    match i64::try_from(nanos) {
        Ok(nanos) => Ok(of(nanos)),
        Err(_) => Err(OutOfRange { nearest: of(nearest) }),
    }
}

/// Nanoseconds of a `timespec`, normalised or not.
fn nanos_of_timespec(time: libc::timespec) -> i128 {
    i128::from(time.tv_sec) * i128::from(NANOS_PER_SEC) + i128::from(time.tv_nsec)
}

/// Nanoseconds of a `timeval`, normalised or not.
fn nanos_of_timeval(time: libc::timeval) -> i128 {
    let micros = i128::from(time.tv_sec) * i128::from(MICROS_PER_SEC) + i128::from(time.tv_usec);
    micros * i128::from(NANOS_PER_MICRO)
}

fn timespec_of_nanos(nanos: i64) -> libc::timespec {
    libc::timespec {
        tv_sec: nanos.div_euclid(NANOS_PER_SEC),
        tv_nsec: nanos.rem_euclid(NANOS_PER_SEC),
    }
}

/// Rounds down, also for negative values.
fn timeval_of_nanos(nanos: i64) -> libc::timeval {
    libc::timeval {
        tv_sec: nanos.div_euclid(NANOS_PER_SEC),
        tv_usec: nanos.rem_euclid(NANOS_PER_SEC) / NANOS_PER_MICRO,
    }
}

/// Exact. Linux keeps a `SystemTime` in 64-bit seconds, which holds every `Time`.
impl From<Time<Utc>> for SystemTime {
    fn from(time: Time<Utc>) -> Self {
        let distance = Duration::from_nanos(time.as_nanos().unsigned_abs());
        if time.as_nanos() < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
    }
}

/// Exact; out of range before 1677-09-21 and after 2262-04-11.
impl TryFrom<SystemTime> for Time<Utc> {
    type Error = OutOfRange<Self>;
    fn try_from(time: SystemTime) -> Result<Self, Self::Error> {
        // A Duration has less than 2^64 s, so that an i128 holds its nanoseconds.
        let nanos = |distance: Duration| {
            i128::from(distance.as_secs()) * i128::from(NANOS_PER_SEC)
                + i128::from(distance.subsec_nanos())
        };
        let since_epoch = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => nanos(after),
            Err(before) => -nanos(before.duration()),
        };
        within_range(since_epoch, Self::from_nanos)
    }
}

/// Exact; a negative span is out of range, and its nearest value is zero.
impl TryFrom<Span> for Duration {
    type Error = OutOfRange<Self>;
    fn try_from(span: Span) -> Result<Self, Self::Error> {
        match u64::try_from(span.as_nanos()) {
            Ok(nanos) => Ok(Self::from_nanos(nanos)),
            Err(_) => Err(OutOfRange { nearest: Self::ZERO }),
        }
    }
}

/// Exact; out of range beyond 292 years.
impl TryFrom<Duration> for Span {
    type Error = OutOfRange<Self>;
    fn try_from(duration: Duration) -> Result<Self, Self::Error> {
        match i64::try_from(duration.as_nanos()) {
            Ok(nanos) => Ok(Self::from_nanos(nanos)),
            Err(_) => Err(OutOfRange { nearest: Self::MAX }),
        }
    }
}

/// Exact and normalised.
impl<S> From<Time<S>> for libc::timespec {
    fn from(time: Time<S>) -> Self {
        timespec_of_nanos(time.as_nanos())
    }
}

/// Exact, normalised or not.
impl<S> TryFrom<libc::timespec> for Time<S> {
    type Error = OutOfRange<Self>;
    fn try_from(time: libc::timespec) -> Result<Self, Self::Error> {
        within_range(nanos_of_timespec(time), Self::from_nanos)
    }
}

/// Rounded down to a microsecond, and normalised.
impl<S> From<Time<S>> for libc::timeval {
    fn from(time: Time<S>) -> Self {
        timeval_of_nanos(time.as_nanos())
    }
}

/// Exact, normalised or not.
impl<S> TryFrom<libc::timeval> for Time<S> {
    type Error = OutOfRange<Self>;
    fn try_from(time: libc::timeval) -> Result<Self, Self::Error> {
        within_range(nanos_of_timeval(time), Self::from_nanos)
    }
}

/// Exact and normalised: a negative span has negative seconds and a positive part.
impl From<Span> for libc::timespec {
    fn from(span: Span) -> Self {
        timespec_of_nanos(span.as_nanos())
    }
}

/// Exact, normalised or not.
impl TryFrom<libc::timespec> for Span {
    type Error = OutOfRange<Self>;
    fn try_from(time: libc::timespec) -> Result<Self, Self::Error> {
        within_range(nanos_of_timespec(time), Self::from_nanos)
    }
}

/// Rounded down to a microsecond, also for negative values, and normalised.
impl From<Span> for libc::timeval {
    fn from(span: Span) -> Self {
        timeval_of_nanos(span.as_nanos())
    }
}

/// Exact, normalised or not.
impl TryFrom<libc::timeval> for Span {
    type Error = OutOfRange<Self>;
    fn try_from(time: libc::timeval) -> Result<Self, Self::Error> {
        within_range(nanos_of_timeval(time), Self::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any value, often one near the end of a range.
    fn nanos() -> impl Strategy<Value = i64> {
        let edges = vec![i64::MIN, i64::MIN + 1, -1_000_000_001, -1, 0, 1, 999_999_999, i64::MAX];
        prop_oneof![
            any::<i64>(),
            -3 * NANOS_PER_SEC..3 * NANOS_PER_SEC,
            prop::sample::select(edges)
        ]
    }

    fn whole_and_part() -> impl Strategy<Value = (i64, i64)> {
        let near = -9_300_000_000..9_300_000_000_i64;
        (prop_oneof![any::<i64>(), near], prop_oneof![any::<i64>(), nanos()])
    }

    fn utc(nanos: i64) -> Time<Utc> {
        Time::from_nanos(nanos)
    }

    #[test]
    fn time_before_1970_has_a_positive_fraction() {
        let time = libc::timespec::from(utc(-NANOS_PER_SEC / 2));
        assert_eq!((time.tv_sec, time.tv_nsec), (-1, 500_000_000));
        let time = libc::timeval::from(utc(-1));
        assert_eq!((time.tv_sec, time.tv_usec), (-1, 999_999), "rounded towards the past");
    }

    #[test]
    fn range_ends_in_2262() {
        let last = UNIX_EPOCH + Duration::new(9_223_372_036, 854_775_807);
        assert_eq!(SystemTime::from(utc(i64::MAX)), last);
        assert_eq!(Time::try_from(last), Ok(utc(i64::MAX)));
        let beyond = Time::<Utc>::try_from(last + Duration::from_nanos(1)).unwrap_err();
        assert_eq!(beyond.into_nearest(), utc(i64::MAX));

        let first = UNIX_EPOCH - Duration::new(9_223_372_036, 854_775_808);
        assert_eq!(Time::try_from(first), Ok(utc(i64::MIN)));
        let beyond = Time::<Utc>::try_from(first - Duration::from_nanos(1)).unwrap_err();
        assert_eq!(beyond.into_nearest(), utc(i64::MIN));
    }

    #[test]
    fn extremes_of_other_types_are_out_of_range() {
        let latest = libc::timeval { tv_sec: i64::MAX, tv_usec: i64::MAX };
        assert_eq!(Span::try_from(latest).unwrap_err().into_nearest(), Span::MAX);
        assert_eq!(Span::try_from(Duration::MAX).unwrap_err().into_nearest(), Span::MAX);
        let earliest = UNIX_EPOCH.checked_sub(Duration::from_secs(1 << 62)).unwrap();
        assert_eq!(Time::try_from(earliest).unwrap_err().into_nearest(), utc(i64::MIN));
    }

    proptest! {
        #[test]
        fn times_survive_system_time_and_timespec(nanos in nanos()) {
            let time = utc(nanos);
            prop_assert_eq!(Time::try_from(SystemTime::from(time)), Ok(time));
            let timespec = libc::timespec::from(time);
            prop_assert!((0..NANOS_PER_SEC).contains(&timespec.tv_nsec));
            prop_assert_eq!(Time::try_from(timespec), Ok(time));
            let span = Span::from_nanos(nanos);
            prop_assert_eq!(Span::try_from(libc::timespec::from(span)), Ok(span));
        }

        #[test]
        fn timeval_is_rounded_down_by_less_than_1_us(nanos in nanos()) {
            let timeval = libc::timeval::from(utc(nanos));
            prop_assert!((0..MICROS_PER_SEC).contains(&timeval.tv_usec));
            let early = i128::from(nanos) - nanos_of_timeval(timeval);
            prop_assert!((0..i128::from(NANOS_PER_MICRO)).contains(&early));
            let span = libc::timeval::from(Span::from_nanos(nanos));
            prop_assert_eq!((span.tv_sec, span.tv_usec), (timeval.tv_sec, timeval.tv_usec));
        }

        #[test]
        fn values_that_are_not_normalised_are_added((tv_sec, part) in whole_and_part()) {
            let nearest = |nanos: i128| i64::try_from(nanos.clamp(i64::MIN.into(), i64::MAX.into()));
            let sum = i128::from(tv_sec) * 1_000_000_000 + i128::from(part);
            let converted = Time::<Utc>::try_from(libc::timespec { tv_sec, tv_nsec: part });
            prop_assert_eq!(converted.is_ok(), i64::try_from(sum).is_ok());
            let saturated = converted.unwrap_or_else(OutOfRange::into_nearest);
            prop_assert_eq!(saturated.as_nanos(), nearest(sum).unwrap());

            let sum = i128::from(tv_sec) * 1_000_000_000 + i128::from(part) * 1_000;
            let converted = Span::try_from(libc::timeval { tv_sec, tv_usec: part });
            prop_assert_eq!(converted.is_ok(), i64::try_from(sum).is_ok());
            let saturated = converted.unwrap_or_else(OutOfRange::into_nearest);
            prop_assert_eq!(saturated.as_nanos(), nearest(sum).unwrap());
        }

        #[test]
        fn negative_span_is_no_duration(nanos in nanos()) {
            let span = Span::from_nanos(nanos);
            match Duration::try_from(span) {
                Ok(duration) => prop_assert_eq!(Span::try_from(duration), Ok(span)),
                Err(error) => {
                    prop_assert!(nanos < 0);
                    prop_assert_eq!(error.into_nearest(), Duration::ZERO);
                }
            }
        }
    }
}
