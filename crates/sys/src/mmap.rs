//! Memory shared with the kernel, and registers of devices: mmap(2).
#![expect(unsafe_code, reason = "mmap(2), and pointers into what it returns")]

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use crate::plain::Plain;

/// Access to a mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads only; a store ends the process.
    Read,
    /// Loads and stores.
    ReadWrite,
}

/// A mapping of memory, unmapped on drop.
///
/// Its safe methods only load and store words, atomic or volatile, so that concurrent writes by the kernel or
/// another thread are safe. A caller that makes a slice of the memory behind [`Mapping::at`] must ensure that
/// nothing writes to it meanwhile.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is valid from every thread until it is unmapped, and accessed by atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes of a descriptor from `offset` on, shared.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn shared(
        fd: BorrowedFd<'_>,
        offset: libc::off_t,
        length: usize,
        access: Access,
    ) -> io::Result<Self> {
        let protection = match access {
            Access::Read => libc::PROT_READ,
            Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        Self::map(fd.as_raw_fd(), offset, length, protection, libc::MAP_SHARED)
    }

    /// Maps `length` bytes of private memory, all of it present from the start: no page fault
    /// delays a later access.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn anonymous(length: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::map(-1, 0, length, protection, flags)
    }

    fn map(
        fd: libc::c_int,
        offset: libc::off_t,
        length: usize,
        protection: libc::c_int,
        flags: libc::c_int,
    ) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// A pointer to `size` bytes at `offset`, all inside the mapping.
    ///
    /// # Panics
    /// The bytes lie outside the mapping: an invalid offset from the kernel must not be used.
    #[inline]
    #[must_use]
    pub fn at(&self, offset: usize, size: usize) -> NonNull<u8> {
        let fits = offset.checked_add(size).is_some_and(|end| end <= self.length);
        assert!(fits, "{size} bytes at {offset} lie outside a mapping of {} bytes", self.length);
        // SAFETY: the offset was just checked to lie inside the mapping.
        unsafe { self.start.add(offset) }
    }

    /// The 32-bit word at `offset`, which the kernel may change at any time.
    ///
    /// # Panics
    /// It lies outside, or is not aligned.
    #[inline]
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        self.atomic(offset)
    }

    /// The `unsigned long` at `offset`, which the kernel may change at any time.
    ///
    /// # Panics
    /// As [`Mapping::word`].
    #[inline]
    #[must_use]
    pub fn long(&self, offset: usize) -> &AtomicUsize {
        self.atomic(offset)
    }

    /// `T` is one of the atomics above.
    #[inline]
    fn atomic<T>(&self, offset: usize) -> &T {
        let word = self.at(offset, size_of::<T>()).cast::<T>();
        assert!(word.is_aligned(), "the word at {offset} is not aligned");
        // SAFETY: inside the mapping, aligned, any bits are a valid integer, and valid for as long
        // as `self` is borrowed.
        unsafe { word.as_ref() }
    }

    /// Copies the value at `offset`. Its words are loaded one by one: first load a status word with
    /// `Acquire`, which shows that the kernel has finished the value.
    ///
    /// # Panics
    /// It lies outside.
    #[inline]
    #[must_use]
    pub fn load<T: Plain>(&self, offset: usize) -> T {
        let from = self.at(offset, size_of::<T>());
        // SAFETY: inside the mapping; both `T` and the place are aligned for the word.
        unsafe {
            match word_bytes::<T>(from) {
                8.. => read::<T, u64>(from.cast()),
                4 => read::<T, u32>(from.cast()),
                2 => read::<T, u16>(from.cast()),
                _ => read::<T, u8>(from),
            }
        }
    }

    /// Copies a value to `offset`, word by word: store a status word with `Release` afterwards to
    /// pass it on to the kernel.
    ///
    /// # Panics
    /// It lies outside.
    #[inline]
    pub fn store<T: Plain>(&self, offset: usize, value: T) {
        let to = self.at(offset, size_of::<T>());
        // SAFETY: as for a load.
        unsafe {
            match word_bytes::<T>(to) {
                8.. => write::<T, u64>(to.cast(), value),
                4 => write::<T, u32>(to.cast(), value),
                2 => write::<T, u16>(to.cast(), value),
                _ => write::<T, u8>(to, value),
            }
        }
    }
}

/// Size of the words in which a `T` at this place is copied: the alignment of `T`, a constant, so that a loaded value
/// can stay in registers; 1 at an unaligned place.
#[inline]
fn word_bytes<T>(place: NonNull<u8>) -> usize {
    if place.cast::<T>().is_aligned() { align_of::<T>() } else { 1 }
}

/// Reads a `T` from a mapping. Volatile, because the kernel shares the memory.
///
/// # Safety
/// `from` is valid for the size of `T`, and both are aligned for words `W`.
#[inline]
unsafe fn read<T: Plain, W>(from: NonNull<W>) -> T {
    let mut value = MaybeUninit::<T>::uninit();
    let to = value.as_mut_ptr().cast::<W>();
    for nth in 0..size_of::<T>() / size_of::<W>() {
        // SAFETY: inside of both.
        unsafe { to.add(nth).write(from.add(nth).read_volatile()) };
    }
    // SAFETY: all of it was written, and any bits are a valid `T`.
    unsafe { value.assume_init() }
}

/// Writes a `T` to a mapping.
///
/// # Safety
/// As of [`read`].
#[inline]
unsafe fn write<T: Plain, W>(to: NonNull<W>, value: T) {
    let from = (&raw const value).cast::<W>();
    for nth in 0..size_of::<T>() / size_of::<W>() {
        // SAFETY: inside of both; a `T` has no padding, so that all of its bytes are initialised.
        unsafe { to.add(nth).write_volatile(from.add(nth).read()) };
    }
}

impl Mapping {
    /// Copies `bytes` to `offset` in one copy, not word by word. Nothing else in this process uses
    /// the mapping meanwhile, because it is borrowed exclusively.
    ///
    /// # Panics
    /// They lie outside.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: inside the mapping, which is borrowed exclusively and is not where `bytes` are.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what mmap returned; pointers into it do not outlive their mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Makes the kernel offer the next records of a mapped trace ring, and update its first page
/// (`TRACE_MMAP_IOCTL_GET_READER`, Documentation/trace/ring-buffer-map.rst).
///
/// # Errors
/// The descriptor is no ring of tracefs, or the ring is not mapped.
pub fn read_trace_ring(ring: BorrowedFd<'_>) -> io::Result<()> {
    // `_IO('R', 0x20)` of linux/trace_mmap.h.
    const GET_READER: libc::Ioctl = (b'R' as libc::Ioctl) << 8 | 0x20;
    // SAFETY: the command has no argument.
    match unsafe { libc::ioctl(ring.as_raw_fd(), GET_READER) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// 64-bit registers of a device, or a page of the kernel, mapped for reading until the process ends.
#[derive(Debug)]
pub struct Registers {
    first: *const u64,
}

// SAFETY: the registers are only read, and a device may be read by all threads at once.
unsafe impl Send for Registers {}
// SAFETY: as above.
unsafe impl Sync for Registers {}

impl Registers {
    /// Mapped bytes: one page on x86-64, at most one page on other architectures.
    pub const SIZE: usize = 4096;

    /// Maps the start of a device.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn map(device: &File) -> io::Result<Self> {
        let (flags, fd) = (libc::MAP_SHARED, device.as_raw_fd());
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced; this one is
        // never unmapped.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), Self::SIZE, libc::PROT_READ, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { first: start.cast_const().cast() })
    }

    /// The data page of the vDSO, from which this process computes the time without system calls (vdso(7)). The kernel
    /// maps it into every process; it is no ABI.
    ///
    /// # Errors
    /// The kernel maps none, or /proc is not mounted.
    pub fn of_vdso() -> io::Result<Self> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let line = maps.lines().find(|line| line.ends_with(" [vvar]"));
        let start = line.and_then(|line| usize::from_str_radix(line.split('-').next()?, 16).ok());
        let start = start.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { first: std::ptr::with_exposed_provenance(start) })
    }

    /// The word `offset` bytes from the start, read once and as a whole; `None` outside the page, or if the offset is
    /// not a multiple of 8.
    #[inline]
    #[must_use]
    pub fn word(&self, offset: usize) -> Option<u64> {
        let is_inside = offset.is_multiple_of(8) && offset < Self::SIZE;
        // SAFETY: inside the mapping, aligned, and mapped as long as the process.
        is_inside.then(|| unsafe { self.first.add(offset / 8).read_volatile() })
    }

    /// The register `OFFSET` bytes from the start, read once and as a whole.
    #[inline]
    #[must_use]
    pub fn read<const OFFSET: usize>(&self) -> u64 {
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
    fn value_is_loaded_as_it_was_stored_at_any_alignment() {
        let mapping = Mapping::anonymous(4096).unwrap();
        for offset in [0, 8, 12, 13, 4096 - 16] {
            let value = libc::xdp_desc { addr: 0x0102_0304_0506_0708, len: 9, options: 10 };
            mapping.store(offset, value);
            let loaded: libc::xdp_desc = mapping.load(offset);
            assert_eq!((loaded.addr, loaded.len, loaded.options), (value.addr, 9, 10));
            assert_eq!(mapping.load::<[u8; 8]>(offset), value.addr.to_ne_bytes());
        }
    }

    #[test]
    #[should_panic(expected = "lie outside")]
    fn offset_outside_the_mapping_is_not_followed() {
        let _: u64 = Mapping::anonymous(4096).unwrap().load(4089);
    }

    #[test]
    fn register_is_read_at_its_offset() {
        let path = std::env::temp_dir().join(format!("wirestamp-registers-{}", std::process::id()));
        let mut content = vec![0; Registers::SIZE];
        content[0xf0..0xf8].copy_from_slice(&0x0102_0304_0506_0708_u64.to_ne_bytes());
        std::fs::write(&path, content).unwrap();
        let registers = Registers::map(&File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(registers.read::<0xf0>(), 0x0102_0304_0506_0708);
        assert_eq!(registers.read::<0>(), 0);
    }
}
