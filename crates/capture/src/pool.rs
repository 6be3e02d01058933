//! The buffers that packets are received into, all of one size and taken in turn.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use wirestamp_sys::mmap::Mapping;

use crate::receiver::{Lender, Ticket};
use crate::vlan::TAG_BYTES;

/// Buffers begin at multiples of a cache line, so that the kernel never writes to one that holds
/// the end of a packet somebody reads.
const CACHE_LINE: usize = 64;

/// The buffers, and how many of those handed out have come back.
#[derive(Debug)]
pub(crate) struct Pool {
    memory: Mapping,
    buffer_bytes: usize,
    count: usize,
    snaplen: u32,
    returned: AtomicUsize,
}

impl Pool {
    /// As many buffers for `snaplen` bytes of a packet as fit into `bytes`, but at least one.
    pub(crate) fn allocate(snaplen: u32, bytes: usize) -> io::Result<Self> {
        let buffer_bytes = (TAG_BYTES as usize + snaplen as usize).next_multiple_of(CACHE_LINE);
        let count = (bytes / buffer_bytes).max(1);
        let memory = Mapping::anonymous(count * buffer_bytes)?;
        Ok(Self { memory, buffer_bytes, count, snaplen, returned: AtomicUsize::new(0) })
    }

    /// Bytes of a packet that fit into a buffer.
    pub(crate) fn snaplen(&self) -> u32 {
        self.snaplen
    }

    /// How many buffers are free when `taken` have been handed out since the pool was made.
    pub(crate) fn free(&self, taken: usize) -> usize {
        self.count - (taken - self.returned.load(Ordering::Acquire))
    }

    /// Where the packet begins in the `nth` buffer handed out. There is room for a VLAN tag before
    /// it, and for [`Pool::snaplen`] bytes from there on.
    pub(crate) fn packet(&self, nth: usize) -> NonNull<u8> {
        let offset = nth % self.count * self.buffer_bytes + TAG_BYTES as usize;
        self.memory.at(offset, self.snaplen as usize)
    }

    /// The buffers from the `first` handed out on, as the kernel fills them.
    pub(crate) fn vectors(&self, first: usize) -> impl Iterator<Item = libc::iovec> {
        (first..).map(|nth| libc::iovec {
            iov_base: self.packet(nth).as_ptr().cast(),
            iov_len: self.snaplen as usize,
        })
    }
}

impl Lender for Pool {
    fn give_back(&self, ticket: Ticket) {
        if let Ticket::Release(nth) = ticket {
            self.returned.store(nth + 1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_round_when_they_have_been_given_back() {
        let pool = Pool::allocate(60, 3 * 64 + 63).unwrap();
        assert_eq!((pool.free(0), pool.free(2), pool.free(3)), (3, 1, 0));
        pool.give_back(Ticket::Release(0));
        pool.give_back(Ticket::Later);
        assert_eq!(pool.free(3), 1);
        assert_eq!(pool.packet(3), pool.packet(0));
        let distance = pool.packet(1).as_ptr() as usize - pool.packet(0).as_ptr() as usize;
        assert_eq!(distance, 64);
    }

    #[test]
    fn there_is_a_buffer_however_little_memory_there_is() {
        let pool = Pool::allocate(65_554, 1).unwrap();
        assert_eq!((pool.free(0), pool.free(1)), (1, 0));
        assert_eq!(pool.vectors(7).next().unwrap().iov_len, 65_554);
    }
}
