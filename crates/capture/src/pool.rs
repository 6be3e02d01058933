//! Receive buffers of one size, used in turn.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use wirestamp_sys::mmap::Mapping;
use wirestamp_sys::socket::Part;

use crate::receiver::{FrameMemory, FramePlace, TAG_BYTES, Ticket};

/// Buffers are aligned to cache lines, so that the kernel never writes to a line that holds the end of a packet in
/// use.
const CACHE_LINE: usize = 64;

/// A ring of buffers, with the count of released ones.
#[derive(Debug)]
pub(crate) struct Pool {
    memory: Mapping,
    buffer_bytes: usize,
    count: usize,
    snaplen: u32,
    released: AtomicUsize,
}

impl Pool {
    /// As many buffers for `snaplen` bytes of a packet as fit into `bytes`, min one.
    pub(crate) fn allocate(snaplen: u32, bytes: usize) -> io::Result<Self> {
        let buffer_bytes = (TAG_BYTES as usize + snaplen as usize).next_multiple_of(CACHE_LINE);
        let count = (bytes / buffer_bytes).max(1);
        let memory = Mapping::anonymous(count * buffer_bytes)?;
        Ok(Self { memory, buffer_bytes, count, snaplen, released: AtomicUsize::new(0) })
    }

    /// Bytes of a packet that fit into a buffer.
    pub(crate) fn snaplen(&self) -> u32 {
        self.snaplen
    }

    /// Number of buffers.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Number of free buffers, if `taken` buffers were used since the pool was created.
    pub(crate) fn free(&self, taken: usize) -> usize {
        self.count - (taken - self.released.load(Ordering::Acquire))
    }

    /// The place of a packet of `captured` bytes in the `nth` buffer used. There is room for a
    /// VLAN tag before it.
    pub(crate) fn place(&self, nth: usize, captured: u32) -> FramePlace<'_> {
        FramePlace { memory: &self.memory, offset: self.offset(nth), captured }
    }

    /// The memory of all buffers.
    pub(crate) fn memory(&self) -> &Mapping {
        &self.memory
    }

    /// The buffers for the kernel to fill, in the order of use, from number `first` on.
    pub(crate) fn parts(&self, first: usize) -> impl Iterator<Item = Part> {
        (first..).map(|nth| (self.offset(nth), self.snaplen as usize))
    }

    fn offset(&self, nth: usize) -> usize {
        nth % self.count * self.buffer_bytes + TAG_BYTES as usize
    }
}

impl FrameMemory for Pool {
    fn release(&self, ticket: Ticket) {
        if let Ticket::Release(nth) = ticket {
            self.released.store(nth + 1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_buffers_are_used_again() {
        let pool = Pool::allocate(60, 3 * 64 + 63).unwrap();
        assert_eq!((pool.free(0), pool.free(2), pool.free(3)), (3, 1, 0));
        pool.release(Ticket::Release(0));
        pool.release(Ticket::Later);
        assert_eq!(pool.free(3), 1);
        assert_eq!(pool.offset(3), pool.offset(0));
        assert_eq!(pool.offset(1) - pool.offset(0), 64);
    }

    #[test]
    fn pool_has_at_least_one_buffer() {
        let pool = Pool::allocate(65_554, 1).unwrap();
        assert_eq!((pool.free(0), pool.free(1)), (1, 0));
        assert_eq!(pool.parts(7).next().unwrap().1, 65_554);
    }
}
