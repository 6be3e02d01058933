//! Points in time and spans between them, with the time scale in the type.
//!
//! A [`Time`] counts nanoseconds from the epoch of its [`Scale`] in a signed 64-bit integer, which reaches 292 years
//! in both directions. A [`Span`] is the signed distance between two times of one scale. Arithmetic saturates at the
//! ends of the range: a stamp far out of range stays there and never wraps into a plausible one.
//!
//! Two times of different scales do not mix:
//!
//! ```compile_fail
//! use wirestamp_clock::{MonotonicRaw, Time, Utc};
//! let wall: Time<Utc> = Time::from_nanos(1);
//! let uptime: Time<MonotonicRaw> = Time::from_nanos(1);
//! let _ = wall - uptime; // expected `Time<Utc>`, found `Time<MonotonicRaw>`
//! ```

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Neg, Sub};

/// A time scale: the epoch and the clock of a [`Time`].
pub trait Scale: 'static {
    /// Name of the scale.
    const NAME: &'static str;
}

/// Coordinated universal time as the system clock keeps it (`CLOCK_REALTIME`, epoch 1970-01-01). Time daemons slew it
/// (usually by up to 500 ppm, at most by 10 %, adjtimex(2)) and step it.
#[derive(Debug)]
pub enum Utc {}

/// Time since boot by `CLOCK_MONOTONIC_RAW`: neither slewed nor stepped.
#[derive(Debug)]
pub enum MonotonicRaw {}

impl Scale for Utc {
    const NAME: &'static str = "UTC";
}
impl Scale for MonotonicRaw {
    const NAME: &'static str = "monotonic-raw";
}

/// A point in time on scale `S`.
pub struct Time<S> {
    nanos: i64,
    scale: PhantomData<fn() -> S>,
}

impl<S> Time<S> {
    /// The point `nanos` nanoseconds after the scale's epoch.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos, scale: PhantomData }
    }

    /// Nanoseconds since the scale's epoch.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.nanos
    }

    /// Begin of the interval that contains this point. Intervals of `length` begin at its multiples since the scale's
    /// epoch. The point itself if `length` is not positive.
    #[must_use]
    pub const fn interval_begin(self, length: Span) -> Self {
        if length.0 <= 0 {
            return self;
        }
        Self::from_nanos(self.nanos.saturating_sub(self.nanos.rem_euclid(length.0)))
    }
}

// Not derived, because a derive would require the same traits of `S`, which is never constructed.
impl<S> Clone for Time<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Time<S> {}
impl<S> PartialEq for Time<S> {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}
impl<S> Eq for Time<S> {}
impl<S> PartialOrd for Time<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<S> Ord for Time<S> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}
impl<S> Hash for Time<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}
impl<S: Scale> fmt::Debug for Time<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns {}", self.nanos, S::NAME)
    }
}

impl<S> Sub for Time<S> {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span(self.nanos.saturating_sub(earlier.nanos))
    }
}
impl<S> Add<Span> for Time<S> {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self::from_nanos(self.nanos.saturating_add(span.0))
    }
}
impl<S> Sub<Span> for Time<S> {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self::from_nanos(self.nanos.saturating_sub(span.0))
    }
}

/// A signed distance in time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    /// A span of zero.
    pub const ZERO: Self = Self(0);
    /// The longest span, about 292 years; also the value of an unbounded error.
    pub const MAX: Self = Self(i64::MAX);

    /// A span of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A span of `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A span of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// The span in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The span without its sign.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
}

/// Exact, in seconds or the largest smaller unit that gives at least one: `1.234 us`, `-20 ms`, `0 ns`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        let (unit, digits, name) = match nanos {
            1_000_000_000.. => (1_000_000_000, 9, "s"),
            1_000_000.. => (1_000_000, 6, "ms"),
            1_000.. => (1_000, 3, "us"),
            _ => (1, 0, "ns"),
        };
        let sign = if self.0 < 0 { "-" } else { "" };
        let fraction = format!(".{:0digits$}", nanos % unit);
        let fraction = fraction.trim_end_matches(['0', '.']);
        f.pad(&format!("{sign}{}{fraction} {name}", nanos / unit))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl Neg for Span {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_later_minus_earlier() {
        let early: Time<Utc> = Time::from_nanos(5);
        let late = early + Span::from_nanos(7);
        assert_eq!((late - early).as_nanos(), 7);
        assert_eq!((early - late).as_nanos(), -7);
    }

    #[test]
    fn intervals_begin_at_multiples_of_their_length() {
        let begin = |nanos, length| -> i64 {
            Time::<Utc>::from_nanos(nanos).interval_begin(Span::from_nanos(length)).as_nanos()
        };
        assert_eq!([begin(0, 10), begin(9, 10), begin(10, 10), begin(-1, 10)], [0, 0, 10, -10]);
        assert_eq!([begin(7, 0), begin(7, -3), begin(i64::MIN, 10)], [7, 7, i64::MIN]);
    }

    #[test]
    fn arithmetic_saturates() {
        let end: Time<Utc> = Time::from_nanos(i64::MAX);
        assert_eq!(end + Span::from_nanos(1), end);
        assert_eq!((end - Time::from_nanos(i64::MIN)), Span::MAX);
        assert_eq!(Span::from_secs(i64::MAX), Span::MAX);
        assert_eq!(-Span::from_nanos(i64::MIN), Span::MAX);
    }

    #[test]
    fn span_units_saturate() {
        assert_eq!(Span::from_micros(-1), Span::from_nanos(-1_000));
        assert_eq!(Span::from_micros(1_000), Span::from_millis(1));
        assert_eq!(Span::from_millis(1_000), Span::from_secs(1));
        assert_eq!(Span::from_micros(i64::MAX), Span::MAX);
    }

    #[test]
    fn span_is_printed_in_a_fitting_unit() {
        for (nanos, text) in [
            (0, "0 ns"),
            (-1, "-1 ns"),
            (999, "999 ns"),
            (1_000, "1 us"),
            (-1_234, "-1.234 us"),
            (1_000_001, "1.000001 ms"),
            (20_000_000, "20 ms"),
            (10_050_000_000, "10.05 s"),
            (i64::MAX, "9223372036.854775807 s"),
            (i64::MIN, "-9223372036.854775808 s"),
        ] {
            assert_eq!(Span::from_nanos(nanos).to_string(), text);
        }
        assert_eq!(format!("{:>8}|", Span::from_micros(50)), "   50 us|", "it can be aligned");
    }

    #[test]
    fn equal_times_have_equal_hashes() {
        let times = [5, 7, 5].map(Time::<Utc>::from_nanos);
        assert_eq!(std::collections::HashSet::from(times).len(), 2);
    }
}
