//! Clocks: opened, closed, asked for their state, and their counters read.

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;

use clock::{ClockService, Counter, SourceError, StartError, WallClock};

use crate::error::{Error, Failure, given, guarded, outcome};

/// A counter that is calibrated against the system clock by a thread of its own.
pub struct Clock {
    pub(crate) service: ClockService,
    counter: Counter,
    name: CString,
    pub(crate) wall: WallClock,
}

/// All threads share one clock.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Clock>();
};

/// The state of a clock.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Status {
    /// The counter in use, as a text that is good until the clock is closed.
    pub selected: *const c_char,
    /// Its frequency in Hz, measured against CLOCK_MONOTONIC_RAW.
    pub frequency_hz: f64,
    /// How far that frequency can be off, in parts per million.
    pub rate_error_ppm: f64,
    /// How far a stamp that is taken and converted now can be off from CLOCK_REALTIME, in
    /// nanoseconds.
    pub error_ns: i64,
    /// The smallest usual step of the counter, in nanoseconds, rounded up.
    pub granularity_ns: i64,
    /// Steps of the system clock and disruptions of the counter since the clock was opened. If it
    /// is the same after a measurement as it was before, there was no step in between that is
    /// larger than 125 to 250 us (500 ppm of the time between two samples, twice that against a
    /// slew the other way), as far as it could be noticed: that takes up to 250 ms.
    pub steps: u32,
}

impl Clock {
    fn open(source: Option<&CStr>) -> Result<Self, Failure> {
        let counter = match source {
            None => Counter::select(),
            Some(name) => Counter::named(&name.to_string_lossy())?,
        };
        let service = ClockService::start(counter)?;
        let name = CString::new(counter.name()).unwrap_or_default();
        Ok(Self { wall: service.wall_clock(), service, counter, name })
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Self {
        let message = error.to_string();
        let error = match error {
            SourceError::Unknown { .. } => Error::UnknownSource,
            _ => Error::UnusableSource,
        };
        Self { error, message }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Settled(error) => error.into(),
            StartError::Calibration(_) | StartError::Nic { .. } | StartError::Thread(_) => {
                Self { error: Error::NotStarted, message: error.to_string() }
            }
        }
    }
}

/// Opens a clock and writes it to `*clock`, or NULL if that fails. Takes about 0.5 ms, and the
/// first time in a process some milliseconds more. The clock can be used at once; its errors are
/// wide at first and shrink over the first second.
///
/// `source` names the counter: "tsc", "cntvct", "hpet" or "os", as far as the machine has them and
/// can trust them. NULL has the best one chosen. A process stamps with one counter: the first that
/// was opened, also after it was closed. Clocks of that one can be opened again, and each has a
/// thread.
#[unsafe(no_mangle)]
#[expect(clippy::missing_safety_doc, reason = "the crate's documentation says what C keeps to")]
pub unsafe extern "C" fn wirestamp_clock_open(
    source: *const c_char,
    clock: Option<&mut MaybeUninit<Option<Box<Clock>>>>,
) -> Error {
    outcome("wirestamp_clock_open", || {
        let clock = given(clock, "clock")?.write(None);
        // SAFETY: not null, and so the start of a text that ends with a zero byte.
        let source = (!source.is_null()).then(|| unsafe { CStr::from_ptr(source) });
        *clock = Some(Box::new(Clock::open(source)?));
        Ok(())
    })
}

/// Closes a clock and ends its thread. No other function may be using the clock, or use it later.
/// Does nothing for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_close(clock: Option<Box<Clock>>) {
    outcome("wirestamp_clock_close", || {
        drop(clock);
        Ok(())
    });
}

/// The counter's present value in its own ticks, to be converted later: the cheapest stamp there
/// is. The CPU may reorder it with what stands around the call: by some 10 to 30 ns, and at worst by
/// 100 ns, past a load that misses all caches. 0 if `clock` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_raw(clock: Option<&Clock>) -> u64 {
    let read = || given(clock, "clock").map(|clock| clock.counter.read());
    guarded("wirestamp_clock_raw", read).unwrap_or(0)
}

/// The counter's value read after everything earlier in the program and before anything later. The
/// fences for that cost more than the read itself. 0 if `clock` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_raw_ordered(clock: Option<&Clock>) -> u64 {
    let read = || given(clock, "clock").map(|clock| clock.counter.read_ordered());
    guarded("wirestamp_clock_raw_ordered", read).unwrap_or(0)
}

/// Writes the present state of the clock to `*status`.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_get_status(
    clock: Option<&Clock>,
    status: Option<&mut MaybeUninit<Status>>,
) -> Error {
    outcome("wirestamp_clock_get_status", || {
        let (clock, status) = (given(clock, "clock")?, given(status, "status")?);
        let now = clock.service.status();
        status.write(Status {
            selected: clock.name.as_ptr(),
            frequency_hz: now.frequency_hz,
            rate_error_ppm: now.rate_error_ppm,
            error_ns: now.error_ns,
            granularity_ns: now.granularity_ns,
            steps: now.steps,
        });
        Ok(())
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::tests::{last_error, text};

    /// Opens the chosen counter, or the one of a name.
    pub(crate) fn open(source: Option<&CStr>) -> Result<Box<Clock>, Error> {
        let source = source.map_or(std::ptr::null(), CStr::as_ptr);
        let mut clock = MaybeUninit::uninit();
        // SAFETY: null or a text, which outlives the call.
        let error = unsafe { wirestamp_clock_open(source, Some(&mut clock)) };
        // SAFETY: it was written, whatever the outcome.
        unsafe { clock.assume_init() }.ok_or(error)
    }

    #[test]
    fn a_clock_is_opened_twice_read_and_closed() {
        let [first, second] = [open(None).unwrap(), open(None).unwrap()];
        for clock in [first, second] {
            let raw = wirestamp_clock_raw_ordered(Some(&clock));
            assert!(wirestamp_clock_raw_ordered(Some(&clock)) >= raw);
            assert_ne!(wirestamp_clock_raw(Some(&clock)), 0);
            let mut status = MaybeUninit::uninit();
            assert_eq!(wirestamp_clock_get_status(Some(&clock), Some(&mut status)), Error::None);
            // SAFETY: it was written, as the outcome says.
            let status = unsafe { status.assume_init() };
            assert_eq!(text(status.selected), Counter::select().name());
            assert!(status.frequency_hz >= 1e6 && status.rate_error_ppm > 0.0);
            assert!(status.error_ns > 0 && status.granularity_ns > 0);
            wirestamp_clock_close(Some(clock));
        }
    }

    #[test]
    fn a_counter_that_is_not_there_is_refused_by_name() {
        assert_eq!(open(Some(c"sundial")).err(), Some(Error::UnknownSource));
        let message = last_error();
        assert!(message.starts_with("wirestamp_clock_open: cannot use the source"), "{message}");
        assert!(message.contains("sundial"), "{message}");
        assert_eq!(open(Some(c"\xff")).err(), Some(Error::UnknownSource), "no UTF-8 either");
    }

    #[test]
    fn another_counter_is_refused_in_the_same_process() {
        let clock = open(None).unwrap();
        if Counter::select() != Counter::Os {
            assert_eq!(open(Some(c"os")).err(), Some(Error::UnusableSource));
            assert!(last_error().contains(Counter::select().name()), "{}", last_error());
        }
        wirestamp_clock_close(Some(clock));
    }

    #[test]
    fn null_pointers_are_refused() {
        // SAFETY: null is checked for.
        let opened = unsafe { wirestamp_clock_open(std::ptr::null(), None) };
        assert_eq!(opened, Error::NullPointer);
        assert_eq!(last_error(), "wirestamp_clock_open: clock is NULL, and must not be");
        wirestamp_clock_close(None);
        assert_eq!(wirestamp_clock_raw(None), 0);
        assert_eq!(last_error(), "wirestamp_clock_raw: clock is NULL, and must not be");
        assert_eq!(wirestamp_clock_raw_ordered(None), 0);
        let mut status = MaybeUninit::uninit();
        assert_eq!(wirestamp_clock_get_status(None, Some(&mut status)), Error::NullPointer);
        let clock = open(None).unwrap();
        assert_eq!(wirestamp_clock_get_status(Some(&clock), None), Error::NullPointer);
    }
}
