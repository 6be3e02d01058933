//! The clock of an end of a test.

use std::time::{Duration, Instant, SystemTime};

use wirestamp_clock::{KernelSync, Span, Time, Utc};
use wirestamp_packet::stamp::{ErrorEstimate, Format};

/// What an end of a test needs to know of its system clock. The kernel's packet stamps are by this clock
/// too.
pub trait SystemClock {
    /// Its time now.
    fn now(&self) -> Time<Utc>;
    /// How right it is now.
    fn state(&mut self) -> ClockState;
}

impl<C: SystemClock + ?Sized> SystemClock for Box<C> {
    fn now(&self) -> Time<Utc> {
        (**self).now()
    }

    fn state(&mut self) -> ClockState {
        (**self).state()
    }
}

/// How right a system clock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// Whether somebody keeps it on UTC.
    pub synchronised: bool,
    /// How far it can be from UTC.
    pub error: Span,
    /// How far TAI is ahead of UTC, if the kernel was told.
    pub tai: Option<Span>,
}

impl ClockState {
    /// As a test packet says it.
    #[must_use]
    pub fn estimate(self) -> ErrorEstimate {
        ErrorEstimate::of(self.error, self.synchronised, Format::Ntp)
    }
}

/// How long what the kernel said of the clock is believed.
const FRESH: Duration = Duration::from_millis(100);

/// This machine's clock.
#[derive(Debug, Default)]
pub struct Kernel(Option<(Instant, ClockState)>);

impl SystemClock for Kernel {
    fn now(&self) -> Time<Utc> {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        Time::from_nanos(i64::try_from(now).unwrap_or(i64::MAX))
    }

    fn state(&mut self) -> ClockState {
        match self.0 {
            Some((read, state)) if read.elapsed() < FRESH => state,
            _ => {
                let state = ask();
                self.0 = Some((Instant::now(), state));
                state
            }
        }
    }
}

/// What the kernel says; of a clock that nothing may be asked of, nothing is known.
fn ask() -> ClockState {
    match KernelSync::read() {
        Ok(KernelSync { synchronised, max_error, tai, .. }) => {
            ClockState { synchronised, error: max_error, tai }
        }
        Err(_) => ClockState { synchronised: false, error: Span::MAX, tai: None },
    }
}
