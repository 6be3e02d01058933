//! A ring shared with the kernel: a producer's and a consumer's position, and entries between them
//! (`include/uapi/linux/if_xdp.h`, `net/xdp/xsk_queue.h`).
//!
//! Positions count entries, grow for ever and wrap at 2^32; an entry lies at its position modulo
//! the size of the ring, a power of two. Who writes a position writes it with release, after the
//! entries; who reads it reads it with acquire, before them. So an entry that a position covers is
//! complete, and one that it has left behind is no longer looked at.
#![expect(unsafe_code, reason = "entries in memory shared with the kernel")]

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use wirestamp_sys::mmap::Mapping;

/// What a ring carries: an address in the [`Umem`](super::Umem), or a [`Descriptor`].
pub trait Entry: sealed::Sealed + Copy {}

mod sealed {
    /// Any bits are a valid value of the type.
    pub trait Sealed {}
}

impl sealed::Sealed for u64 {}
impl Entry for u64 {}

/// A piece of a frame: `struct xdp_desc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Where its first byte lies in the [`Umem`](super::Umem).
    pub address: u64,
    /// Its length in bytes.
    pub length: u32,
    /// `XDP_PKT_CONTD` and the like.
    pub options: u32,
}

impl sealed::Sealed for Descriptor {}
impl Entry for Descriptor {}

impl Descriptor {
    /// Whether the frame goes on in the next descriptor (`XDP_PKT_CONTD`).
    #[must_use]
    pub fn continues(self) -> bool {
        self.options & libc::XDP_PKT_CONTD != 0
    }
}

/// Where the parts of a ring lie in its mapping, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) producer: usize,
    pub(super) consumer: usize,
    pub(super) flags: usize,
    pub(super) entries: usize,
}

#[derive(Debug)]
struct Ring<T> {
    memory: Mapping,
    layout: Layout,
    size: u32,
    entry: PhantomData<T>,
}

impl<T: Entry> Ring<T> {
    fn producer(&self) -> &AtomicU32 {
        self.memory.word(self.layout.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.memory.word(self.layout.consumer)
    }

    /// The place of the entry at `position`.
    fn slot(&self, position: u32) -> NonNull<T> {
        let index = (position & (self.size - 1)) as usize;
        let slot = self.memory.at(self.layout.entries + index * size_of::<T>(), size_of::<T>());
        slot.cast()
    }
}

/// Our end of a ring that the kernel takes entries from.
#[derive(Debug)]
pub struct Producer<T> {
    ring: Ring<T>,
    /// The position of the next entry to be written.
    next: u32,
    /// The first position at which there was no room when the kernel's was last looked at.
    end: u32,
}

impl<T: Entry> Producer<T> {
    /// `size` is a power of two.
    pub(super) fn new(memory: Mapping, layout: Layout, size: u32) -> Self {
        let ring = Ring { memory, layout, size, entry: PhantomData };
        let next = ring.producer().load(Ordering::Relaxed);
        Self { ring, next, end: next }
    }

    /// How many entries there is room for.
    pub fn free(&mut self) -> u32 {
        let consumed = self.ring.consumer().load(Ordering::Acquire);
        self.end = consumed.wrapping_add(self.ring.size);
        self.end.wrapping_sub(self.next).min(self.ring.size)
    }

    /// How many entries the kernel has not taken.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        let consumed = self.ring.consumer().load(Ordering::Acquire);
        self.next.wrapping_sub(consumed).min(self.ring.size)
    }

    /// Writes an entry, which the kernel sees after [`Producer::publish`]. Says whether there was
    /// room for it.
    #[must_use]
    pub fn push(&mut self, entry: T) -> bool {
        if self.next == self.end && self.free() == 0 {
            return false;
        }
        // SAFETY: the slot lies in the mapping, entries are aligned there, and the kernel does not
        // look at it before the position that covers it is published.
        unsafe { self.ring.slot(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Hands the kernel what was written.
    pub fn publish(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Whether the kernel will look at the ring only when it is told to, by
    /// [`Socket::wake_receive`](super::Socket::wake_receive) for the fill ring and
    /// [`Socket::wake_transmit`](super::Socket::wake_transmit) for the transmit ring.
    #[must_use]
    pub fn needs_wakeup(&self) -> bool {
        let flags = self.ring.memory.word(self.ring.layout.flags).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// Our end of a ring that the kernel puts entries into.
#[derive(Debug)]
pub struct Consumer<T> {
    ring: Ring<T>,
    /// The position of the next entry to be read.
    next: u32,
    /// The first position that had no entry when the kernel's was last looked at.
    end: u32,
}

impl<T: Entry> Consumer<T> {
    /// `size` is a power of two.
    pub(super) fn new(memory: Mapping, layout: Layout, size: u32) -> Self {
        let ring = Ring { memory, layout, size, entry: PhantomData };
        let next = ring.consumer().load(Ordering::Relaxed);
        Self { ring, next, end: next }
    }

    /// The next entry. Its slot is the kernel's again after [`Consumer::release`].
    pub fn pop(&mut self) -> Option<T> {
        if self.next == self.end {
            self.end = self.ring.producer().load(Ordering::Acquire);
            if self.next == self.end {
                return None;
            }
        }
        // SAFETY: the slot lies in the mapping, entries are aligned there, any bits are one, and
        // the kernel does not write to it before the position behind it is released.
        let entry = unsafe { self.ring.slot(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Makes room for the kernel where entries have been read.
    pub fn release(&mut self) {
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
