//! The kernel's synchronisation state (adjtimex(2)).

use std::io;

use wirestamp_sys::clock::adjtimex;

use super::status::{ClockSource, SyncStatus};
use crate::Span;

/// Synchronisation of the system clock as the kernel reports it.
///
/// The values come from the program that steers the clock. `max_error` is that program's last value plus
/// 500 ppm of the time since (RFC 1589 section 3.3). It is a bound as long as the program's sources are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSync {
    /// True if a program keeps the clock on UTC.
    pub synchronised: bool,
    /// Bound of the distance from UTC: up to 16 s, above which the kernel reports not synchronised.
    pub max_error: Span,
    /// Estimated distance from UTC; not a bound.
    pub estimated_error: Span,
    /// Remaining slew.
    pub offset: Span,
    /// TAI minus UTC; none if no program has set it.
    pub tai: Option<Span>,
}

impl KernelSync {
    /// Reads the current state.
    ///
    /// # Errors
    /// If a sandbox forbids the system call.
    pub fn read() -> io::Result<Self> {
        let (timex, state) = adjtimex()?;
        // TIME_ERROR and STA_UNSYNC both mean that the clock was never set. ntpd and chronyd clear the flag;
        // some kernels keep the state for a PPS signal.
        let synchronised = timex.status & libc::STA_UNSYNC == 0 && state != libc::TIME_ERROR;
        let in_nanos = timex.status & libc::STA_NANO != 0;
        let span = |micros: i64| Span::from_nanos(micros.saturating_mul(1_000));
        Ok(Self {
            synchronised,
            max_error: span(timex.maxerror),
            estimated_error: span(timex.esterror),
            offset: if in_nanos { Span::from_nanos(timex.offset) } else { span(timex.offset) },
            tai: (timex.tai != 0).then(|| Span::from_secs(timex.tai.into())),
        })
    }

    pub(super) fn status(&self) -> SyncStatus {
        SyncStatus {
            clock_source: ClockSource::Kernel,
            reference: None,
            stratum: None,
            // A positive remaining slew means that the clock is behind.
            offset: -self.offset,
            error: self.synchronised.then_some(self.max_error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_reports_errors_that_are_not_negative() {
        let kernel = KernelSync::read().unwrap();
        assert!(kernel.max_error >= Span::ZERO && kernel.estimated_error >= Span::ZERO);
        assert!(kernel.synchronised || kernel.max_error > Span::ZERO, "{kernel:?}");
    }
}
