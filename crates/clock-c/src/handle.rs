//! Clocks: open, close, status, and reads of their counters.

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;

use clock::{ClockService, Counter, SourceError, StartError, WallClock};

use crate::error::{Error, Failure, given, guarded, outcome};

/// A counter that its own thread calibrates against the system clock.
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

/// The status of a clock.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Status {
    /// The counter in use, as a text that is valid until the clock is closed.
    pub selected: *const c_char,
    /// Frequency in Hz, measured against CLOCK_MONOTONIC_RAW.
    pub frequency_hz: f64,
    /// Error bound of that frequency, in parts per million.
    pub rate_error_ppm: f64,
    /// Error bound against CLOCK_REALTIME of a stamp that is taken and converted now, in nanoseconds.
    pub error_ns: i64,
    /// Smallest usual step of the counter, in nanoseconds, rounded up.
    pub granularity_ns: i64,
    /// Steps of the system clock and disruptions of the counter since the clock was opened. If the number is the same
    /// before and after a measurement, there was no step of more than 125 to 250 us in between (500 ppm of the time
    /// between two samples, twice that against a slew in the other direction). Detection takes up to 250 ms.
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

/// Opens a clock and writes it to `*clock`, or NULL on failure. Takes about 0.5 ms, and the first time in a process
/// some milliseconds more. The clock is usable at once; its errors are large at first and shrink within the first
/// second.
///
/// `source` names the counter: "tsc", "cntvct", "hpet" or "os", if it exists and is trusted on this machine. NULL
/// selects the best one. A process stamps with one counter: the first that was opened, even after it was closed.
/// Clocks of that counter can be opened repeatedly; each has a thread.
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

/// Closes a clock and ends its thread. No other function may use the clock at the same time or later. Does nothing
/// for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_close(clock: Option<Box<Clock>>) {
    outcome("wirestamp_clock_close", || {
        drop(clock);
        Ok(())
    });
}

/// The counter's current value in ticks, for later conversion: the cheapest stamp. The CPU may reorder it with the
/// instructions around the call: by 10 to 30 ns, and by up to 100 ns past a load that misses all caches. 0 if `clock`
/// is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_raw(clock: Option<&Clock>) -> u64 {
    let read = || given(clock, "clock").map(|clock| clock.counter.read());
    guarded("wirestamp_clock_raw", read).unwrap_or(0)
}

/// The counter's value, read after all earlier and before all later instructions. Its fences cost more than the read
/// itself. 0 if `clock` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn wirestamp_clock_raw_ordered(clock: Option<&Clock>) -> u64 {
    let read = || given(clock, "clock").map(|clock| clock.counter.read_ordered());
    guarded("wirestamp_clock_raw_ordered", read).unwrap_or(0)
}

/// Writes the current status of the clock to `*status`.
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

    /// Opens the selected counter, or the one with this name.
    pub(crate) fn open(source: Option<&CStr>) -> Result<Box<Clock>, Error> {
        let source = source.map_or(std::ptr::null(), CStr::as_ptr);
        let mut clock = MaybeUninit::uninit();
        // SAFETY: null or a text, which outlives the call.
        let error = unsafe { wirestamp_clock_open(source, Some(&mut clock)) };
        // SAFETY: it was written, whatever the outcome.
        unsafe { clock.assume_init() }.ok_or(error)
    }

    #[test]
    fn clock_can_be_opened_twice_and_closed() {
        let [first, second] = [open(None).unwrap(), open(None).unwrap()];
        for clock in [first, second] {
            let raw = wirestamp_clock_raw_ordered(Some(&clock));
            assert!(wirestamp_clock_raw_ordered(Some(&clock)) >= raw);
            assert_ne!(wirestamp_clock_raw(Some(&clock)), 0);
            let mut status = MaybeUninit::uninit();
            assert_eq!(wirestamp_clock_get_status(Some(&clock), Some(&mut status)), Error::None);
            // SAFETY: it was written, as the outcome shows.
            let status = unsafe { status.assume_init() };
            assert_eq!(text(status.selected), Counter::select().name());
            assert!(status.frequency_hz >= 1e6 && status.rate_error_ppm >= 0.0);
            assert!(status.error_ns > 0 && status.granularity_ns > 0);
            wirestamp_clock_close(Some(clock));
        }
    }

    #[test]
    fn unknown_counter_is_rejected_by_name() {
        assert_eq!(open(Some(c"sundial")).err(), Some(Error::UnknownSource));
        let message = last_error();
        assert!(message.starts_with("wirestamp_clock_open: cannot use the source"), "{message}");
        assert!(message.contains("sundial"), "{message}");
        assert_eq!(open(Some(c"\xff")).err(), Some(Error::UnknownSource), "no UTF-8 either");
    }

    #[test]
    fn second_counter_is_rejected_in_a_process() {
        let clock = open(None).unwrap();
        if Counter::select() != Counter::Os {
            assert_eq!(open(Some(c"os")).err(), Some(Error::UnusableSource));
            assert!(last_error().contains(Counter::select().name()), "{}", last_error());
        }
        wirestamp_clock_close(Some(clock));
    }

    #[test]
    fn null_pointers_are_rejected() {
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
