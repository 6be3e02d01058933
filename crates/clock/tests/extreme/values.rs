//! Times, spans, ticks, and their conversions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use wirestamp_clock::{CounterTicks, OutOfRange, Span, TickSpan, TickTime, Time, Timeline, Utc};

use super::{YEAR_2262, count, raw};

/// An exact result as a 64-bit count, saturated.
fn saturated(exact: i128) -> i64 {
    i64::try_from(exact).unwrap_or(if exact < 0 { i64::MIN } else { i64::MAX })
}

fn utc(nanos: i64) -> Time<Utc> {
    Time::from_nanos(nanos)
}

/// 100 years to either side of 2262.
fn around_2262() -> impl Strategy<Value = i64> {
    let century = 3_155_760_000_i64;
    (-century..century).prop_map(|seconds| YEAR_2262 / 1_000_000_000 + seconds)
}

proptest! {
    #[test]
    fn sums_and_differences_are_exact_or_saturate(a in count(), b in count()) {
        let (sum, difference) = (i128::from(a) + i128::from(b), i128::from(a) - i128::from(b));
        let (span, other) = (Span::from_nanos(a), Span::from_nanos(b));
        prop_assert_eq!((span + other).as_nanos(), saturated(sum));
        prop_assert_eq!((span - other).as_nanos(), saturated(difference));
        prop_assert_eq!((-span).as_nanos(), saturated(-i128::from(a)));
        prop_assert_eq!(span.abs().as_nanos(), saturated(i128::from(a).abs()));
        prop_assert_eq!((utc(a) + other).as_nanos(), saturated(sum));
        prop_assert_eq!((utc(a) - other).as_nanos(), saturated(difference));
        prop_assert_eq!((utc(a) - utc(b)).as_nanos(), saturated(difference));
        prop_assert_eq!(Span::from_secs(a).as_nanos(), saturated(i128::from(a) * 1_000_000_000));
        prop_assert_eq!(Span::from_millis(a).as_nanos(), saturated(i128::from(a) * 1_000_000));
    }

    #[test]
    fn order_equals_order_of_counts(a in count(), b in count(), c in raw(), d in raw()) {
        prop_assert_eq!(utc(a).cmp(&utc(b)), a.cmp(&b));
        prop_assert_eq!(Span::from_nanos(a).cmp(&Span::from_nanos(b)), a.cmp(&b));
        prop_assert_eq!((utc(a) - utc(b)).cmp(&Span::ZERO), a.cmp(&b), "so is the sign");
        let tick = TickTime::<CounterTicks>::from_raw;
        prop_assert_eq!(tick(c).cmp(&tick(d)), c.cmp(&d));
        prop_assert_eq!((tick(c) - tick(d)).cmp(&TickSpan::ZERO), c.cmp(&d));
    }

    #[test]
    fn ticks_saturate(time in raw(), ticks in count()) {
        let (time, span) =
            (TickTime::<CounterTicks>::from_raw(time), TickSpan::from_count(ticks));
        let sum = saturated(i128::from(time.count()) + i128::from(ticks));
        let difference = saturated(i128::from(time.count()) - i128::from(ticks));
        prop_assert_eq!((time + span).count(), sum);
        prop_assert_eq!((time - span).count(), difference);
        prop_assert_eq!((-span).count(), saturated(-i128::from(ticks)));
    }

    #[test]
    fn times_survive_conversion(nanos in count()) {
        let (time, span) = (utc(nanos), Span::from_nanos(nanos));
        prop_assert_eq!(Time::try_from(SystemTime::from(time)), Ok(time));
        prop_assert_eq!(Time::try_from(libc::timespec::from(time)), Ok(time));
        prop_assert_eq!(Span::try_from(libc::timespec::from(span)), Ok(span));
        // A timeval has a resolution of a microsecond; at the start of the range even that is out of range.
        let back = Time::try_from(libc::timeval::from(time)).unwrap_or_else(OutOfRange::into_nearest);
        prop_assert!(back <= time && time - back < Span::from_nanos(1_000));
        let duration = Duration::try_from(span).unwrap_or_else(OutOfRange::into_nearest);
        prop_assert_eq!(Span::try_from(duration), Ok(span.max(Span::ZERO)));
    }

    #[test]
    fn foreign_values_are_exact_or_saturate(
        whole in prop_oneof![count(), around_2262()], part in count(), nanos in 0_u32..1_000_000_000,
    ) {
        let sum = i128::from(whole) * 1_000_000_000 + i128::from(part);
        let time = Time::<Utc>::try_from(libc::timespec { tv_sec: whole, tv_nsec: part });
        prop_assert_eq!(time.unwrap_or_else(OutOfRange::into_nearest).as_nanos(), saturated(sum));
        let sum = i128::from(whole) * 1_000_000_000 + i128::from(part) * 1_000;
        let span = Span::try_from(libc::timeval { tv_sec: whole, tv_usec: part });
        prop_assert_eq!(span.unwrap_or_else(OutOfRange::into_nearest).as_nanos(), saturated(sum));

        let duration = Duration::new(whole.unsigned_abs(), nanos);
        let exact = i128::from(whole).abs() * 1_000_000_000 + i128::from(nanos);
        let span = Span::try_from(duration).unwrap_or_else(OutOfRange::into_nearest);
        prop_assert_eq!(span.as_nanos(), saturated(exact));
        if let Some(time) = UNIX_EPOCH.checked_add(duration) {
            let time = Time::try_from(time).unwrap_or_else(OutOfRange::into_nearest);
            prop_assert_eq!(time.as_nanos(), saturated(exact));
        }
    }

    #[test]
    fn kernel_stamp_beyond_2262_saturates(value in raw()) {
        let stamp = Timeline::realtime().convert(value);
        prop_assert_eq!(stamp.utc.as_nanos(), saturated(i128::from(value)));
    }
}
