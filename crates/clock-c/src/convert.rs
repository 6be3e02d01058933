//! Times: the current one, those of raw values, and spans between them.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use clock::{Domain, RawStamp};

use crate::error::{Error, Failure, given, guarded, outcome};
use crate::handle::Clock;

/// Values per batch: a few pages, so that they stay in the cache.
const BATCH: usize = 1024;

/// A time with its error bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stamp {
    /// CLOCK_REALTIME, in nanoseconds since 1970-01-01 00:00 UTC.
    pub utc_ns: i64,
    /// Half the width of the interval around it that contains the true reading of CLOCK_REALTIME, in nanoseconds;
    /// INT64_MAX without a bound.
    pub error_ns: i64,
}

/// A distance in time with its error bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Span {
    /// In nanoseconds, signed.
    pub ns: i64,
    /// Half the width of the interval around it that contains the true span by CLOCK_MONOTONIC_RAW, in nanoseconds;
    /// INT64_MAX without a bound.
    pub error_ns: i64,
}

impl From<clock::Stamp> for Stamp {
    fn from(stamp: clock::Stamp) -> Self {
        Self { utc_ns: stamp.utc.as_nanos(), error_ns: stamp.error.as_nanos() }
    }
}

/// The time of day, in nanoseconds since 1970-01-01 00:00 UTC. It follows CLOCK_REALTIME without jumps and never goes
/// back on one thread, unless CLOCK_REALTIME is stepped. 0 if `clock` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_now(clock: Option<&Clock>) -> i64 {
    let now = || given(clock, "clock").map(|clock| clock.wall.now().as_nanos());
    guarded("wirestamp_clock_now", now).unwrap_or(0)
}

/// As wirestamp_clock_now, read after all earlier and before all later instructions: never earlier than a time that
/// another thread read in this way and passed on. 0 if `clock` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_now_ordered(clock: Option<&Clock>) -> i64 {
    let now = || given(clock, "clock").map(|clock| clock.wall.now_ordered().as_nanos());
    guarded("wirestamp_clock_now_ordered", now).unwrap_or(0)
}

/// Writes the time of day, as wirestamp_clock_now returns it, with its error to `*stamp`.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_now_with_error(
    clock: Option<&Clock>,
    stamp: Option<&mut MaybeUninit<Stamp>>,
) -> Error {
    outcome("wirestamp_clock_now_with_error", || {
        let (clock, stamp) = (given(clock, "clock")?, given(stamp, "stamp")?);
        stamp.write(clock.wall.now_with_error().into());
        Ok(())
    })
}

/// Writes the time at which the counter had the value `raw` to `*stamp`. Every value has a result. The error is
/// smallest within the last minute and grows beyond it. If wirestamp_clock_is_exact returns 1, the time is the kernel's
/// own, with an error of 2 ns for the last seconds. Otherwise a value converted again one second after it was read has
/// a smaller error, because later samples exist.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_convert(
    clock: Option<&Clock>,
    raw: u64,
    stamp: Option<&mut MaybeUninit<Stamp>>,
) -> Error {
    outcome("wirestamp_clock_convert", || {
        let (clock, stamp) = (given(clock, "clock")?, given(stamp, "stamp")?);
        stamp.write(clock.service.convert(raw).into());
        Ok(())
    })
}

/// Converts `count` values of `raw` to the same number of `stamps`, in the same order. Cheaper per value than
/// wirestamp_clock_convert, mainly for ascending values. The two arrays must not overlap. If `count` is 0, nothing
/// happens, and both may be NULL.
#[unsafe(no_mangle)]
#[expect(clippy::missing_safety_doc, reason = "the crate's documentation says what C keeps to")]
pub unsafe extern "C" fn wirestamp_clock_convert_many(
    clock: Option<&Clock>,
    raw: *const u64,
    count: usize,
    stamps: *mut Stamp,
) -> Error {
    outcome("wirestamp_clock_convert_many", || {
        let clock = given(clock, "clock")?;
        if count == 0 {
            return Ok(());
        }
        let raw = given((!raw.is_null()).then_some(raw), "raw")?;
        let stamps = given((!stamps.is_null()).then_some(stamps), "stamps")?;
        // SAFETY: not null, so it is an array of `count` values, which no thread changes during the call.
        let raw = unsafe { std::slice::from_raw_parts(raw, count) };
        // SAFETY: not null, so it has room for `count` stamps, and no other thread uses it during the call.
        let stamps =
            unsafe { std::slice::from_raw_parts_mut(stamps.cast::<MaybeUninit<Stamp>>(), count) };
        let timeline = clock.service.timeline(Domain::Counter);
        let mut converted = Vec::with_capacity(BATCH.min(count));
        for (raw, stamps) in raw.chunks(BATCH).zip(stamps.chunks_mut(BATCH)) {
            converted.clear();
            timeline.convert_batch(raw, &mut converted);
            for (stamp, &converted) in stamps.iter_mut().zip(&converted) {
                stamp.write(converted.into());
            }
        }
        Ok(())
    })
}

/// Writes the time from the raw value `from` to the raw value `to` to `*span`; negative if `to` was read first. It is
/// computed in ticks and scaled by the counter's rate, without the time of day, so that it is independent of slewing
/// and stepping of the system clock.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_elapsed(
    clock: Option<&Clock>,
    from: u64,
    to: u64,
    span: Option<&mut MaybeUninit<Span>>,
) -> Error {
    outcome("wirestamp_clock_elapsed", || {
        let (clock, out) = (given(clock, "clock")?, given(span, "span")?);
        let (span, error) = clock.service.span(from, to);
        out.write(Span { ns: span.as_nanos(), error_ns: error.as_nanos() });
        Ok(())
    })
}

/// 1 if the newest raw values are converted by the data with which the kernel itself converts the counter, 0 if by
/// samples of its clocks: the kernel then publishes no such data for this counter, or the data failed a check, which is
/// made at least every 50 ms. 0 if `clock` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_is_exact(clock: Option<&Clock>) -> c_int {
    let exact = || given(clock, "clock").map(|clock| clock.service.is_exact());
    guarded("wirestamp_clock_is_exact", exact).map_or(0, c_int::from)
}

/// Writes the raw value at which CLOCK_REALTIME showed `ns` nanoseconds since 1970 to `*raw`, within 5 ns: the inverse of
/// wirestamp_clock_convert, for stamps of the kernel (SO_TIMESTAMPNS). The time must be one of the last seconds. A time
/// that the clock showed twice, because it was set back, is taken as the later one.
///
/// Fails with UNKNOWN_RAW if wirestamp_clock_is_exact returns 0, for other times, and for those around a step of the
/// clock.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_raw_of_realtime(
    clock: Option<&Clock>,
    ns: i64,
    raw: Option<&mut MaybeUninit<u64>>,
) -> Error {
    let function = "wirestamp_clock_raw_of_realtime";
    outcome(function, || raw_of(clock, Domain::Realtime, ns, raw))
}

/// As wirestamp_clock_raw_of_realtime, for CLOCK_MONOTONIC, which BPF programs read (bpf_ktime_get_ns). It is never
/// stepped.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_raw_of_monotonic(
    clock: Option<&Clock>,
    ns: i64,
    raw: Option<&mut MaybeUninit<u64>>,
) -> Error {
    let function = "wirestamp_clock_raw_of_monotonic";
    outcome(function, || raw_of(clock, Domain::Monotonic, ns, raw))
}

fn raw_of(
    clock: Option<&Clock>,
    domain: Domain,
    ns: i64,
    raw: Option<&mut MaybeUninit<u64>>,
) -> Result<(), Failure> {
    let (clock, raw) = (given(clock, "clock")?, given(raw, "raw")?);
    let unknown = || Failure {
        error: Error::UnknownRaw,
        message: format!("the value of the counter at {ns} ns is not known"),
    };
    let value = u64::try_from(ns).map_err(|_| unknown())?;
    raw.write(clock.service.counter_value(RawStamp { domain, value }).ok_or_else(unknown)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ptr::{null, null_mut};
    use std::time::SystemTime;

    use clock::{Time, Utc};

    use super::*;
    use crate::error::tests::last_error;
    use crate::handle::tests::open;
    use crate::handle::{wirestamp_clock_raw, wirestamp_clock_raw_ordered};

    /// Result of a function that must succeed.
    fn written<T>(function: impl FnOnce(&mut MaybeUninit<T>) -> Error) -> T {
        let mut place = MaybeUninit::uninit();
        assert_eq!(function(&mut place), Error::None, "{}", last_error());
        // SAFETY: a function that succeeds has written its result.
        unsafe { place.assume_init() }
    }

    static RAW: u64 = 1;

    fn system_ns() -> i64 {
        Time::<Utc>::try_from(SystemTime::now()).unwrap().as_nanos()
    }

    #[test]
    fn now_matches_the_system_clock() {
        let clock = open(None).unwrap();
        for _ in 0..100 {
            let before = system_ns();
            let now = written(|stamp| wirestamp_clock_now_with_error(Some(&clock), Some(stamp)));
            let raw = wirestamp_clock_raw_ordered(Some(&clock));
            let ordered = wirestamp_clock_now_ordered(Some(&clock));
            let after = system_ns();
            let read = written(|stamp| wirestamp_clock_convert(Some(&clock), raw, Some(stamp)));
            for Stamp { utc_ns, error_ns } in [now, read] {
                assert!(utc_ns + error_ns >= before && utc_ns - error_ns <= after);
            }
            assert!(ordered >= now.utc_ns && wirestamp_clock_now(Some(&clock)) >= ordered);
        }
    }

    #[test]
    fn batch_equals_single_conversions() {
        let clock = open(None).unwrap();
        let first = wirestamp_clock_raw(Some(&clock));
        let raw: Vec<u64> = (0..300).map(|n| first - 10_000 * n).chain([0, u64::MAX]).collect();
        let unwritten = Stamp { utc_ns: 0, error_ns: -1 };
        // The kernel may replace its line between the two conversions, or the thread its timeline.
        let equal = (0..100).any(|_| {
            let each: Vec<Stamp> = raw
                .iter()
                .map(|&raw| {
                    written(|stamp| wirestamp_clock_convert(Some(&clock), raw, Some(stamp)))
                })
                .collect();
            let mut many = vec![unwritten; raw.len() + 1];
            // SAFETY: two arrays of at least this many elements.
            let error = unsafe {
                let (raw, many) = (raw.as_ptr(), many.as_mut_ptr());
                wirestamp_clock_convert_many(Some(&clock), raw, each.len(), many)
            };
            assert_eq!((error, many.pop()), (Error::None, Some(unwritten)), "no more than asked");
            assert!(many.iter().all(|stamp| stamp.error_ns >= 0));
            many == each
        });
        assert!(equal);
    }

    #[test]
    fn span_is_later_minus_earlier() {
        let clock = open(None).unwrap();
        let span =
            |from, to| written(|span| wirestamp_clock_elapsed(Some(&clock), from, to, Some(span)));
        let raw = wirestamp_clock_raw(Some(&clock));
        let (forth, back) = (span(raw, raw + 1_000_000), span(raw + 1_000_000, raw));
        assert!(forth.ns > 0 && back.ns < 0 && forth.error_ns > 0);
        assert_eq!(span(raw, raw).ns, 0);
        assert!(span(0, u64::MAX).error_ns > 0 && span(u64::MAX, 0).ns < 0);
    }

    #[test]
    fn raw_value_of_a_kernel_stamp_converts_back() {
        let clock = open(None).unwrap();
        let raw_of = |ns, raw: &mut _| wirestamp_clock_raw_of_realtime(Some(&clock), ns, Some(raw));
        if wirestamp_clock_is_exact(Some(&clock)) == 0 {
            assert_eq!(raw_of(system_ns(), &mut MaybeUninit::uninit()), Error::UnknownRaw);
            return;
        }
        let ns = system_ns();
        let raw = written(|raw| raw_of(ns, raw));
        let stamp = written(|stamp| wirestamp_clock_convert(Some(&clock), raw, Some(stamp)));
        assert!((stamp.utc_ns - ns).abs() <= 6, "{ns} {stamp:?}");
        for ns in [-1, 0, i64::MAX] {
            assert_eq!(raw_of(ns, &mut MaybeUninit::uninit()), Error::UnknownRaw, "{ns}");
        }
    }

    #[test]
    fn null_pointers_are_rejected() {
        let clock = open(None).unwrap();
        let clock = Some(&*clock);
        let refused = |error: Error, name: &str| {
            assert_eq!(error, Error::NullPointer);
            let message = last_error();
            assert!(message.ends_with(&format!(": {name} is NULL, and must not be")), "{message}");
        };
        let mut stamp = MaybeUninit::uninit();
        refused(wirestamp_clock_now_with_error(None, Some(&mut stamp)), "clock");
        refused(wirestamp_clock_now_with_error(clock, None), "stamp");
        refused(wirestamp_clock_convert(None, 1, Some(&mut stamp)), "clock");
        refused(wirestamp_clock_convert(clock, 1, None), "stamp");
        let mut span = MaybeUninit::uninit();
        refused(wirestamp_clock_elapsed(None, 1, 2, Some(&mut span)), "clock");
        refused(wirestamp_clock_elapsed(clock, 1, 2, None), "span");
        assert_eq!(wirestamp_clock_now(None), 0);
        assert_eq!(wirestamp_clock_now_ordered(None), 0);
        // SAFETY: each pointer is null, which is checked, or points to an array of the given length.
        let many = |clock, raw, count, stamps| unsafe {
            wirestamp_clock_convert_many(clock, raw, count, stamps)
        };
        refused(many(None, &raw const RAW, 1, stamp.as_mut_ptr()), "clock");
        refused(many(clock, null(), 1, stamp.as_mut_ptr()), "raw");
        refused(many(clock, &raw const RAW, 1, null_mut()), "stamps");
        assert_eq!(many(clock, null(), 0, null_mut()), Error::None);
    }
}
