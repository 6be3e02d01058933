//! `clock_gettime(2)`, the one system call of this crate.
#![expect(unsafe_code, reason = "libc is called here and nowhere else in the crate")]

/// A kernel clock that every supported kernel has (`MONOTONIC_RAW` since Linux 2.6.28).
#[derive(Clone, Copy)]
pub(crate) enum KernelClock {
    Realtime,
    Monotonic,
    MonotonicRaw,
}

/// Nanoseconds since the clock's epoch; saturates 292 years after it.
#[inline]
pub(crate) fn now(clock: KernelClock) -> i64 {
    let id = match clock {
        KernelClock::Realtime => libc::CLOCK_REALTIME,
        KernelClock::Monotonic => libc::CLOCK_MONOTONIC,
        KernelClock::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to. The call fails only for a bad pointer or
    // an unknown clock (clock_gettime(2)), and these clocks are always known.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}
