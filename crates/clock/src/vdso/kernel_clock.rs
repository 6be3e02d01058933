//! The clocks of the kernel.

use wirestamp_sys::clock::now_by_number;

use crate::Domain;

/// A clock of the kernel that the counter is converted to (clock_gettime(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelClock {
    /// `CLOCK_REALTIME`.
    Realtime,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`.
    MonotonicRaw,
    /// `CLOCK_BOOTTIME`.
    Boottime,
    /// `CLOCK_TAI`.
    Tai,
}

impl KernelClock {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Realtime, Self::Monotonic, Self::MonotonicRaw, Self::Boottime, Self::Tai];

    /// The clock of a domain of kernel stamps.
    pub(crate) const fn of_domain(domain: Domain) -> Option<Self> {
        match domain {
            Domain::Realtime => Some(Self::Realtime),
            Domain::Monotonic => Some(Self::Monotonic),
            Domain::Counter | Domain::Nic => None,
        }
    }

    /// Its number (linux/time.h), also the index in arrays of the vDSO's page.
    pub(super) const fn number(self) -> u8 {
        match self {
            Self::Realtime => 0,
            Self::Monotonic => 1,
            Self::MonotonicRaw => 4,
            Self::Boottime => 7,
            Self::Tai => 11,
        }
    }

    /// Its time by clock_gettime(2), in nanoseconds since its epoch.
    pub(super) fn now(self) -> i64 {
        now_by_number(self.number().into())
    }
}
