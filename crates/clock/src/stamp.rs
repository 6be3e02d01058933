//! What a packet is stamped with, before and after conversion.

use crate::{Span, Time, Utc};

/// The clock that a raw value was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// The CPU's counter, or what stands in for it ([`crate::Counter`] says which).
    Counter,
    /// The kernel's `CLOCK_REALTIME`, in nanoseconds since 1970. It can be stepped between two
    /// stamps ([`crate::Timeline::steps`]).
    Realtime,
    /// The kernel's `CLOCK_MONOTONIC`, in nanoseconds since boot: what an XDP program can read.
    Monotonic,
    /// A network card's clock, in nanoseconds since an epoch of its own. It can be slewed and
    /// stepped too ([`crate::Phc`]).
    Nic,
}

/// A clock reading as it was taken, unconverted: ticks of its domain's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawStamp {
    /// The clock that was read.
    pub domain: Domain,
    /// Its value, in that clock's own ticks.
    pub value: u64,
}

/// A raw stamp placed on the UTC scale.
///
/// The raw value stays with it, because the delay between two stamps of one clock is taken from
/// the raw values ([`crate::DifferenceClock`]) and never passes through UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// What was read.
    pub raw: RawStamp,
    /// The reading as system time.
    pub utc: Time<Utc>,
    /// Half the width of the interval around `utc` that holds the system time of the reading.
    pub error: Span,
}
