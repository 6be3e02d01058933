//! Accuracy of a machine's clock.

use wirestamp_clock::Span;

use crate::v1;

/// State of a machine's system clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineClock {
    /// Identifies the machine and its boot: the kernel's random boot ID (`/proc/sys/kernel/random/boot_id`, random(4)).
    pub machine: [u8; 16],
    /// Max error against UTC; none if the clock is not synchronised.
    pub error: Option<Span>,
}

impl MachineClock {
    pub(crate) fn encode(&self) -> v1::Clock {
        let error = self.error.map_or(0, |error| error.as_nanos().unsigned_abs());
        v1::Clock { machine: self.machine.to_vec(), synchronised: self.error.is_some(), error }
    }

    /// None if the message is not valid.
    pub(crate) fn decode(clock: &v1::Clock) -> Option<Self> {
        let machine = clock.machine.as_slice().try_into().ok()?;
        let error = clock.synchronised.then_some(clock.error);
        let error = error.map(|nanos| nanos.try_into().map(Span::from_nanos)).transpose().ok()?;
        Some(Self { machine, error })
    }
}
