//! A ring shared with the kernel: a producer's and a consumer's position, and entries between them
//! (`include/uapi/linux/if_xdp.h`, `net/xdp/xsk_queue.h`).
//!
//! Positions count entries, only grow, and wrap at 2^32. An entry lies at its position modulo the size of the ring,
//! a power of two. A position is written with release, after the entries, and read with acquire, before them. So an
//! entry before the producer's position is complete, and one before the consumer's is no longer read.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use wirestamp_sys::mmap::Mapping;

/// Entry of a ring: an address in the [`Umem`](super::Umem), or a [`Descriptor`].
pub trait Entry: sealed::Sealed + Copy {}

mod sealed {
    use wirestamp_sys::plain::Plain;

    /// How an entry lies in the memory of a ring.
    pub trait Sealed {
        type Raw: Plain;
        fn of(raw: Self::Raw) -> Self;
        fn raw(self) -> Self::Raw;
    }
}

impl Entry for u64 {}
impl sealed::Sealed for u64 {
    type Raw = Self;

    fn of(raw: Self) -> Self {
        raw
    }

    fn raw(self) -> Self {
        self
    }
}

/// A piece of a frame: `struct xdp_desc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Address of its first byte in the [`Umem`](super::Umem).
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
    /// `XDP_PKT_CONTD` and the like.
    pub options: u32,
}

impl Entry for Descriptor {}
impl sealed::Sealed for Descriptor {
    type Raw = libc::xdp_desc;

    fn of(raw: Self::Raw) -> Self {
        Self { address: raw.addr, length: raw.len, options: raw.options }
    }

    fn raw(self) -> Self::Raw {
        libc::xdp_desc { addr: self.address, len: self.length, options: self.options }
    }
}

impl Descriptor {
    /// Whether the frame continues in the next descriptor (`XDP_PKT_CONTD`).
    #[must_use]
    pub fn continues(self) -> bool {
        self.options & libc::XDP_PKT_CONTD != 0
    }
}

/// Offsets of the parts of a ring in its mapping, in bytes.
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

    /// Offset of the entry at `position`.
    fn slot(&self, position: u32) -> usize {
        let index = (position & (self.size - 1)) as usize;
        self.layout.entries + index * size_of::<T::Raw>()
    }
}

/// This process's end of a ring that the kernel reads from.
#[derive(Debug)]
pub struct Producer<T> {
    ring: Ring<T>,
    /// Position of the next entry to be written.
    next: u32,
    /// First position without room, when the kernel's position was last read.
    end: u32,
}

impl<T: Entry> Producer<T> {
    /// `size` is a power of two.
    pub(super) fn new(memory: Mapping, layout: Layout, size: u32) -> Self {
        let ring = Ring { memory, layout, size, entry: PhantomData };
        let next = ring.producer().load(Ordering::Relaxed);
        Self { ring, next, end: next }
    }

    /// Number of free entries.
    pub fn free(&mut self) -> u32 {
        let consumed = self.ring.consumer().load(Ordering::Acquire);
        self.end = consumed.wrapping_add(self.ring.size);
        self.end.wrapping_sub(self.next).min(self.ring.size)
    }

    /// Number of entries that the kernel has not read.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        let consumed = self.ring.consumer().load(Ordering::Acquire);
        self.next.wrapping_sub(consumed).min(self.ring.size)
    }

    /// Writes an entry, which the kernel sees after [`Producer::publish`]. Returns whether there was room for it.
    #[must_use]
    pub fn push(&mut self, entry: T) -> bool {
        if self.next == self.end && self.free() == 0 {
            return false;
        }
        // The kernel does not read this slot before `publish` stores a position after it.
        self.ring.memory.store(self.ring.slot(self.next), entry.raw());
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Publishes the written entries to the kernel.
    pub fn publish(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Whether the kernel reads the ring only after a wake-up:
    /// [`Socket::wake_receive`](super::Socket::wake_receive) for the fill ring,
    /// [`Socket::wake_transmit`](super::Socket::wake_transmit) for the transmit ring.
    #[must_use]
    pub fn needs_wakeup(&self) -> bool {
        let flags = self.ring.memory.word(self.ring.layout.flags).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// This process's end of a ring that the kernel writes to.
#[derive(Debug)]
pub struct Consumer<T> {
    ring: Ring<T>,
    /// Position of the next entry to be read.
    next: u32,
    /// First position without an entry, when the kernel's position was last read.
    end: u32,
}

impl<T: Entry> Consumer<T> {
    /// `size` is a power of two.
    pub(super) fn new(memory: Mapping, layout: Layout, size: u32) -> Self {
        let ring = Ring { memory, layout, size, entry: PhantomData };
        let next = ring.consumer().load(Ordering::Relaxed);
        Self { ring, next, end: next }
    }

    /// The next entry. Its slot returns to the kernel with [`Consumer::release`].
    pub fn pop(&mut self) -> Option<T> {
        if self.next == self.end {
            self.end = self.ring.producer().load(Ordering::Acquire);
            if self.next == self.end {
                return None;
            }
        }
        // The kernel does not write to this slot before `release` stores a position after it.
        let entry = T::of(self.ring.memory.load(self.ring.slot(self.next)));
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Releases the entries that have been read to the kernel.
    pub fn release(&mut self) {
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
