//! Memory shared with the kernel, and memory that it fills.
#![expect(unsafe_code, reason = "mmap(2), and pointers into what it returns")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize};

/// A mapping of memory, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping is plain shared memory, valid from every thread until it is dropped; who may
// touch which part of it is settled by the status words and positions inside.
unsafe impl Send for Mapping {}
// SAFETY: as above; the methods give out pointers and atomics only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes of `fd` from `offset` on, shared, with the protection given.
    pub(crate) fn new(
        fd: BorrowedFd<'_>,
        offset: libc::off_t,
        length: usize,
        protection: libc::c_int,
    ) -> io::Result<Self> {
        Self::map(fd.as_raw_fd(), offset, length, protection, libc::MAP_SHARED)
    }

    /// Maps `length` bytes of memory of our own. All of it is there from the start, so that nobody
    /// waits for a page later.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
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

    /// A pointer `offset` bytes into the mapping, behind which at least `size` bytes belong to it.
    ///
    /// # Panics
    /// When they do not: an offset from the kernel that leads outside must not be followed.
    pub(crate) fn at(&self, offset: usize, size: usize) -> NonNull<u8> {
        let fits = offset.checked_add(size).is_some_and(|end| end <= self.length);
        assert!(fits, "{size} bytes at {offset} lie outside a mapping of {} bytes", self.length);
        // SAFETY: the offset was just checked to lie inside the mapping.
        unsafe { self.start.add(offset) }
    }

    /// The 32-bit word at `offset`, which the kernel may change at any time.
    pub(crate) fn word(&self, offset: usize) -> &AtomicU32 {
        self.shared(offset)
    }

    /// The `unsigned long` at `offset`, which the kernel may change at any time.
    pub(crate) fn long(&self, offset: usize) -> &AtomicUsize {
        self.shared(offset)
    }

    /// `T` is one of the atomics above.
    fn shared<T>(&self, offset: usize) -> &T {
        let word = self.at(offset, size_of::<T>()).cast::<T>();
        assert!(word.is_aligned(), "the word at {offset} is not aligned");
        // SAFETY: inside the mapping, aligned, any bits are a valid integer, and valid for as long
        // as `self` is borrowed; every access on our side goes through this atomic.
        unsafe { word.as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what mmap returned; pointers into it do not outlive their lender.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
