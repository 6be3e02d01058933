//! A zero-copy reader of the BPF ring buffer: records stay in place until they are released. libbpf's reader frees
//! a record when its callback returns, which would require a copy.
//!
//! Layout (`kernel/bpf/ringbuf.c`): one page with the consumer's position, one page with the producer's, then the
//! data, mapped twice in a row so that no record is split. A record is an 8-byte header, whose first word is its
//! length and two flags, and its bytes, padded to 8.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use wirestamp_sys::mmap::{Access, Mapping};

use crate::receiver::{FrameMemory, Ticket};

const BUSY: u32 = 1 << 31; // BPF_RINGBUF_BUSY_BIT
const DISCARDED: u32 = 1 << 30; // BPF_RINGBUF_DISCARD_BIT
const HEADER_BYTES: usize = 8; // BPF_RINGBUF_HDR_SZ

/// A finished record: where it begins, and the ticket that frees it.
pub(super) struct Record<'a> {
    pub(super) memory: &'a Mapping,
    pub(super) offset: usize,
    pub(super) ticket: Ticket,
}

/// The mapped ring buffer. Only one thread may call [`RingBuffer::next`].
pub(super) struct RingBuffer {
    fd: OwnedFd,
    consumer: Mapping,
    producer: Mapping,
    /// The program's only variable, `waiting`.
    waiting: Mapping,
    page: usize,
    size: usize,
    /// Position up to which records were returned. Records before the consumer position are released.
    read: AtomicUsize,
}

impl RingBuffer {
    /// Maps the ring buffer behind `map`, with `size` bytes (a power of two), and the program's `variables`.
    pub(super) fn map(
        map: BorrowedFd<'_>,
        size: usize,
        variables: BorrowedFd<'_>,
    ) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let offset = libc::off_t::try_from(page).map_err(|_| io::ErrorKind::InvalidInput)?;
        let consumer = Mapping::shared(map, 0, page, Access::ReadWrite)?;
        let producer = Mapping::shared(map, offset, page + 2 * size, Access::Read)?;
        let waiting = Mapping::shared(variables, 0, page, Access::ReadWrite)?;
        let (fd, read) = (map.try_clone_to_owned()?, 0.into());
        Ok(Self { fd, consumer, producer, waiting, page, size, read })
    }

    /// Size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.size
    }

    /// Requests a wake-up at the descriptor for the next record. False if there is a record already, or one that is
    /// being written.
    pub(super) fn enable_wakeup(&self) -> bool {
        self.waiting.word(0).store(1, Ordering::SeqCst);
        // The program reserves a record, then reads `waiting`. This thread writes `waiting`, then checks for records.
        fence(Ordering::SeqCst);
        self.producer.long(0).load(Ordering::Acquire) == self.read.load(Ordering::Relaxed)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next finished record of at least `min` bytes, and the ticket that releases it.
    pub(super) fn next(&self, min: usize) -> Option<Record<'_>> {
        loop {
            let position = self.read.load(Ordering::Relaxed);
            if position >= self.producer.long(0).load(Ordering::Acquire) {
                return None;
            }
            let start = self.page + position % self.size;
            let header = self.producer.word(start).load(Ordering::Acquire);
            if header & BUSY != 0 {
                return None;
            }
            let bytes = (header & !DISCARDED) as usize;
            let end = position + (HEADER_BYTES + bytes).next_multiple_of(8);
            self.read.store(end, Ordering::Relaxed);
            if header & DISCARDED == 0 && bytes >= min {
                let (memory, offset) = (&self.producer, start + HEADER_BYTES);
                return Some(Record { memory, offset, ticket: Ticket::Release(end) });
            }
        }
    }
}

impl FrameMemory for RingBuffer {
    fn release(&self, ticket: Ticket) {
        if let Ticket::Release(end) = ticket {
            self.consumer.long(0).store(end, Ordering::Release);
        }
    }
}
