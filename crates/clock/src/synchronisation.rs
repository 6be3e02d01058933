//! What the kernel says of how right the system clock is (adjtimex(2)).

use std::io;

use crate::keepers::{Keeper, Statement};
use crate::{Span, sys};

/// How right the system clock is, as far as the kernel knows.
///
/// It knows what the program that keeps the clock tells it. The greatest error is what that program said
/// when it last did, and 500 ppm of the time since (RFC 1589 section 3.3); it is a bound as long as the
/// program is right about its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synchronisation {
    /// Whether somebody keeps the clock on UTC.
    pub synchronised: bool,
    /// How far the clock can be from UTC: up to 16 s, beyond which the kernel takes it for not
    /// synchronised.
    pub greatest_error: Span,
    /// How far it probably is.
    pub estimated_error: Span,
    /// What is left to slew.
    pub offset: Span,
    /// How far TAI is ahead of UTC; none if nobody has told the kernel.
    pub tai: Option<Span>,
}

impl Synchronisation {
    /// What the kernel says now.
    ///
    /// # Errors
    /// Where a sandbox forbids to ask.
    pub fn read() -> io::Result<Self> {
        let (timex, state) = sys::adjtimex()?;
        // TIME_ERROR and STA_UNSYNC say the same of a clock that nobody has set yet; ntpd and chronyd
        // clear the flag, and some kernels keep the state for the sake of a PPS signal.
        let synchronised = timex.status & libc::STA_UNSYNC == 0 && state != libc::TIME_ERROR;
        let in_nanos = timex.status & libc::STA_NANO != 0;
        let span = |micros: i64| Span::from_nanos(micros.saturating_mul(1_000));
        Ok(Self {
            synchronised,
            greatest_error: span(timex.maxerror),
            estimated_error: span(timex.esterror),
            offset: if in_nanos { Span::from_nanos(timex.offset) } else { span(timex.offset) },
            tai: (timex.tai != 0).then(|| Span::from_secs(timex.tai.into())),
        })
    }

    /// The same in short.
    pub(crate) fn statement(&self) -> Statement {
        Statement {
            by: Keeper::Kernel,
            source: None,
            stratum: None,
            // What is left to slew is how far it is behind.
            ahead: -self.offset,
            error: self.synchronised.then_some(self.greatest_error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_right_its_clock_is() {
        let said = Synchronisation::read().unwrap();
        assert!(said.greatest_error >= Span::ZERO && said.estimated_error >= Span::ZERO);
        assert!(said.synchronised || said.greatest_error > Span::ZERO, "{said:?}");
    }
}
