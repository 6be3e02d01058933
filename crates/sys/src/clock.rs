//! The kernel's clocks: clock_gettime(2), adjtimex(2); counters of a CPU: perf_event_open(2).
#![expect(
    unsafe_code,
    reason = "adjtimex(2), perf_event_open(2), and clock_gettime(2) of any clock"
)]

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};

pub use rustix::time::ClockId;
use rustix::time::{DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic, clock_settime};

/// Nanoseconds since the clock's epoch; saturates 292 years after it.
#[inline]
#[must_use]
pub fn now(clock: ClockId) -> i64 {
    nanoseconds(clock_gettime(clock))
}

/// As [`now`], for any clock by its number, such as `CLOCK_TAI`; 0 for one that does not exist.
#[inline]
#[must_use]
pub fn now_by_number(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid to write.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanoseconds(Timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec })
}

/// Time of an open clock device, such as `/dev/ptp0`, in nanoseconds since its clock's epoch
/// (clock_gettime(2), "Dynamic clocks"); saturates.
///
/// # Errors
/// The device is not a clock, or returns no time.
pub fn device_time(device: BorrowedFd<'_>) -> io::Result<i64> {
    Ok(nanoseconds(clock_gettime_dynamic(DynamicClockId::Dynamic(device))?))
}

#[inline]
fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

/// Reads the state of the system clock without changing it (adjtimex(2)): the struct, and the
/// return value, such as `TIME_ERROR`.
///
/// # Errors
/// A sandbox forbids the call.
pub fn adjtimex() -> io::Result<(libc::timex, libc::c_int)> {
    // SAFETY: a timex consists of numbers, for which zero is a valid value; modes of 0 change nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` is valid to read and to write.
    match unsafe { libc::adjtimex(&raw mut timex) } {
        -1 => Err(io::Error::last_os_error()),
        state => Ok((timex, state)),
    }
}

/// Changes the system clock's rate or flags, as `modes` of the struct says (adjtimex(2)).
///
/// # Errors
/// The process lacks `CAP_SYS_TIME`, or a value is out of range.
pub fn adjust(mut timex: libc::timex) -> io::Result<()> {
    // SAFETY: `timex` is valid to read and to write.
    match unsafe { libc::adjtimex(&raw mut timex) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Sets the system clock, in nanoseconds since 1970 (clock_settime(2)).
///
/// # Errors
/// The process lacks `CAP_SYS_TIME`.
pub fn set_realtime(nanos: i64) -> io::Result<()> {
    let (tv_sec, tv_nsec) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    Ok(clock_settime(ClockId::Realtime, Timespec { tv_sec, tv_nsec })?)
}

/// The first version of `struct perf_event_attr` of linux/perf_event.h, with the bit field as a number.
#[repr(C)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
}

/// The bit `pinned` of `struct perf_event_attr`: an event that cannot count returns an error instead of an old count.
const PINNED: u64 = 1 << 2;
/// Closes the descriptor on execve(2) (linux/perf_event.h).
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// Starts to count the event `config` of the performance monitoring unit `unit` on one `core`, for all tasks
/// (perf_event_open(2)). A read of the file returns the count since the start, 8 bytes.
///
/// # Errors
/// There is no such event or core, or the process lacks `CAP_PERFMON`.
pub fn core_event(unit: u32, config: u64, core: usize) -> io::Result<File> {
    let size = size_of::<EventAttributes>();
    let attributes = EventAttributes {
        kind: unit,
        size: u32::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?,
        config,
        sample_period: 0,
        sample_type: 0,
        read_format: 0,
        flags: PINNED,
        wakeup_events: 0,
        breakpoint: 0,
        config1: 0,
    };
    let core = libc::c_int::try_from(core).map_err(|_| io::ErrorKind::InvalidInput)?;
    let (every_task, no_group): (libc::pid_t, RawFd) = (-1, -1);
    // SAFETY: the attributes outlive the call, and their size is in them.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            every_task,
            core,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    match RawFd::try_from(fd) {
        // SAFETY: `fd` was just opened and nothing else owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn file_that_is_no_clock_has_no_time() {
        assert!(device_time(File::open("/dev/null").unwrap().as_fd()).is_err());
    }

    #[test]
    fn event_of_unknown_unit_has_error() {
        assert!(core_event(u32::MAX, 0, 0).is_err());
    }

    #[test]
    fn clock_is_the_same_by_number() {
        let before = now(ClockId::Boottime);
        let by_number = now_by_number(libc::CLOCK_BOOTTIME);
        assert!(before <= by_number && by_number <= now(ClockId::Boottime));
        assert_eq!(now_by_number(1_000), 0);
    }

    #[test]
    fn monotonic_clock_does_not_go_back() {
        let first = now(ClockId::MonotonicRaw);
        assert!(first > 0 && now(ClockId::MonotonicRaw) >= first);
    }
}
