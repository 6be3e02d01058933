//! The kernel's clock, which every machine has.

use wirestamp_sys::clock::{ClockId, now};

use super::raw::RawSource;

/// `CLOCK_MONOTONIC_RAW`, in nanoseconds: a kernel clock that is neither slewed nor stepped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Os;

impl RawSource for Os {
    const NAME: &'static str = "os";

    #[inline]
    fn read(self) -> u64 {
        u64::try_from(now(ClockId::MonotonicRaw)).unwrap_or(0)
    }

    /// The kernel's own read of its clock source is ordered.
    #[inline]
    fn read_ordered(self) -> u64 {
        self.read()
    }
}
