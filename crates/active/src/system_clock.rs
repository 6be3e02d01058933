//! The system clock and its error bound.

use std::time::{Duration, Instant, SystemTime};

use wirestamp_clock::{KernelSync, Span, Time, Utc};
use wirestamp_packet::stamp::{ErrorEstimate, Format};

/// The system clock of a sender or reflector. The kernel's packet stamps are of this clock too.
pub trait SystemClock {
    /// The current time.
    fn now(&self) -> Time<Utc>;
    /// The current sync status and error bound.
    fn state(&mut self) -> ClockState;
}

/// Sync status and error bound of a system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockState {
    /// Whether it is synchronized to UTC.
    pub synchronised: bool,
    /// Max offset from UTC; [`Span::MAX`] if it is unknown.
    pub error: Span,
    /// TAI minus UTC, if configured in the kernel.
    pub tai: Option<Span>,
}

impl ClockState {
    /// The error estimate of a test packet.
    #[must_use]
    pub fn estimate(self) -> ErrorEstimate {
        ErrorEstimate::of(self.error, self.synchronised, Format::Ntp)
    }
}

/// Max age of a state read from the kernel.
const MAX_STATE_AGE: Duration = Duration::from_millis(100);

/// This machine's clock, with the kernel's sync status.
#[derive(Debug, Default)]
pub struct KernelClock(Option<(Instant, ClockState)>);

impl SystemClock for KernelClock {
    fn now(&self) -> Time<Utc> {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        Time::from_nanos(i64::try_from(now).unwrap_or(i64::MAX))
    }

    fn state(&mut self) -> ClockState {
        match self.0 {
            Some((read, state)) if read.elapsed() < MAX_STATE_AGE => state,
            _ => {
                let state = read_state();
                self.0 = Some((Instant::now(), state));
                state
            }
        }
    }
}

/// The kernel's sync status; unsynchronized with an unlimited error if it cannot be read.
fn read_state() -> ClockState {
    match KernelSync::read() {
        Ok(KernelSync { synchronised, max_error, tai, .. }) => {
            ClockState { synchronised, error: max_error, tai }
        }
        Err(_) => ClockState { synchronised: false, error: Span::MAX, tai: None },
    }
}
