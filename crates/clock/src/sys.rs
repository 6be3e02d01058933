//! The system calls of the clocks and their sources.
#![expect(unsafe_code, reason = "libc is called here")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

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

/// Nanoseconds since the epoch of any clock that clock_gettime(2) reads; saturates.
pub(crate) fn read(clock: libc::clockid_t) -> io::Result<i64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec))
}

/// What adjtimex(2) says when it is asked to change nothing, and the clock's state.
pub(crate) fn adjtimex() -> io::Result<(libc::timex, libc::c_int)> {
    // SAFETY: a timex is numbers only, for which zero is a value; modes of 0 ask to change nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` is valid to read and to write.
    match unsafe { libc::adjtimex(&raw mut timex) } {
        -1 => Err(io::Error::last_os_error()),
        state => Ok((timex, state)),
    }
}

/// The size of a `cpu_set_t` in bytes: room for 1024 cores (sched_setaffinity(2)).
const CPU_SET_BYTES: usize = size_of::<libc::cpu_set_t>();

/// How many cores a `cpu_set_t` has room for.
const CPU_SET_CORES: usize = CPU_SET_BYTES * 8;

/// The cores that the calling thread may run on.
///
/// Fails on a machine of more than 1024 cores, which a `cpu_set_t` has no room for.
pub(crate) fn allowed_cores() -> io::Result<Vec<usize>> {
    // SAFETY: a `cpu_set_t` is an array of integers, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writing the size that is given.
    if unsafe { libc::sched_getaffinity(0, CPU_SET_BYTES, &raw mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the core's number is below the number of bits in `set`.
    Ok((0..CPU_SET_CORES).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect())
}

/// Keeps the calling thread on one core, from the return of this call on.
pub(crate) fn pin_to(core: usize) -> io::Result<()> {
    if core >= CPU_SET_CORES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: a `cpu_set_t` is an array of integers, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` is below the number of bits in `set`.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` is valid for reading the size that is given.
    if unsafe { libc::sched_setaffinity(0, CPU_SET_BYTES, &raw const set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Calls `make` with every signal blocked in this thread. A thread that is made meanwhile never
/// takes a signal that the program means for another of its threads.
pub(crate) fn with_signals_blocked<T>(make: impl FnOnce() -> T) -> T {
    // SAFETY: a `sigset_t` is an array of integers, for which zero is a value.
    let [mut all, mut before]: [libc::sigset_t; 2] = unsafe { std::mem::zeroed() };
    // SAFETY: `all` is valid to write to.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: both sets are valid; the call fails only for an unknown first argument.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    let made = make();
    // SAFETY: as above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
    made
}

/// 64-bit registers of a device, mapped for reading until the process ends.
#[derive(Debug)]
pub(crate) struct Registers {
    first: *const u64,
}

// SAFETY: the registers are only read, and a device may be read by all threads at once.
unsafe impl Send for Registers {}
// SAFETY: as above.
unsafe impl Sync for Registers {}

impl Registers {
    /// Bytes that are mapped: a page on x86-64, and no more than one elsewhere.
    pub(crate) const SIZE: usize = 4096;

    /// Maps the start of a device.
    pub(crate) fn map(device: &File) -> io::Result<Self> {
        let (flags, fd) = (libc::MAP_SHARED, device.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice, so no memory in use is
        // touched; it is never unmapped.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), Self::SIZE, libc::PROT_READ, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { first: start.cast_const().cast() })
    }

    /// The register `OFFSET` bytes from the start, read once and whole.
    #[inline]
    pub(crate) fn read<const OFFSET: usize>(&self) -> u64 {
        const { assert!(OFFSET.is_multiple_of(8) && OFFSET < Self::SIZE) };
        // SAFETY: the offset is inside the mapping and aligned to 8 as the mapping is to a page;
        // the mapping lasts as long as the process.
        unsafe { self.first.add(OFFSET / 8).read_volatile() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_read_at_its_offset() {
        let path = std::env::temp_dir().join(format!("wirestamp-registers-{}", std::process::id()));
        let mut content = vec![0; Registers::SIZE];
        content[0xf0..0xf8].copy_from_slice(&0x0102_0304_0506_0708_u64.to_ne_bytes());
        std::fs::write(&path, content).unwrap();
        let registers = Registers::map(&File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(registers.read::<0xf0>(), 0x0102_0304_0506_0708);
        assert_eq!(registers.read::<0>(), 0);
    }

    #[test]
    fn a_core_that_is_no_core_is_refused() {
        assert!(pin_to(CPU_SET_CORES).is_err());
        assert!(!allowed_cores().unwrap().is_empty());
    }
}
