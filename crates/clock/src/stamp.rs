//! Stamps of packets, before and after conversion.

use crate::{Span, Time, Utc};

/// The clock of a raw value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// The CPU's counter, or its substitute (see [`crate::Counter`]).
    Counter,
    /// The kernel's `CLOCK_REALTIME`, in nanoseconds since 1970. It may be stepped between two stamps
    /// ([`crate::Timeline::steps`]).
    Realtime,
    /// The kernel's `CLOCK_MONOTONIC`, in nanoseconds since boot, which an XDP program can read.
    Monotonic,
    /// A network card's clock, in nanoseconds since its own epoch. It may be slewed and stepped too ([`crate::Phc`]).
    Nic,
}

/// An unconverted clock reading, in ticks of its domain's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawStamp {
    /// The clock.
    pub domain: Domain,
    /// The value, in ticks of that clock.
    pub value: u64,
}

/// A raw stamp converted to UTC.
///
/// It keeps the raw value, because the delay between two stamps of one clock is computed from the raw values without
/// UTC ([`crate::DifferenceClock`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The raw stamp.
    pub raw: RawStamp,
    /// System time of the reading.
    pub utc: Time<Utc>,
    /// Half the width of the interval around `utc` that contains the system time of the reading.
    pub error: Span,
}
