//! How right the clock of a machine is.

use wirestamp_clock::Span;

use crate::v1;

/// The system clock of a machine, at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineClock {
    /// Which it is: the kernel's random number of this start of the machine
    /// (`/proc/sys/kernel/random/boot_id`, random(4)).
    pub machine: [u8; 16],
    /// How far it can be from UTC; none if nobody keeps it on UTC.
    pub error: Option<Span>,
}

impl MachineClock {
    pub(crate) fn encode(&self) -> v1::Clock {
        let error = self.error.map_or(0, |error| error.as_nanos().unsigned_abs());
        v1::Clock { machine: self.machine.to_vec(), synchronised: self.error.is_some(), error }
    }

    /// None if it cannot be.
    pub(crate) fn decode(clock: &v1::Clock) -> Option<Self> {
        let machine = clock.machine.as_slice().try_into().ok()?;
        let error = clock.synchronised.then_some(clock.error);
        let error = error.map(|nanos| nanos.try_into().map(Span::from_nanos)).transpose().ok()?;
        Some(Self { machine, error })
    }
}
