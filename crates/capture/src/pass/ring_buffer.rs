//! A reader of the BPF ring buffer that leaves records where they are until they are given back.
//! libbpf's own frees a record as soon as its callback returns, which would mean a copy here.
//!
//! Layout (`kernel/bpf/ringbuf.c`): one page with the consumer's position, one page with the
//! producer's, then the data, mapped twice in a row so that no record is ever split. A record is
//! an 8-byte header, whose first word is its length and two flags, and its bytes, padded to 8.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use wirestamp_sys::mmap::{Access, Mapping};

use crate::receiver::{Lender, Ticket};

const BUSY: u32 = 1 << 31; // BPF_RINGBUF_BUSY_BIT
const DISCARDED: u32 = 1 << 30; // BPF_RINGBUF_DISCARD_BIT
const HEADER_BYTES: usize = 8; // BPF_RINGBUF_HDR_SZ

/// The mapped ring buffer. Only one thread may call [`RingBuffer::next`].
pub(super) struct RingBuffer {
    fd: OwnedFd,
    consumer: Mapping,
    producer: Mapping,
    /// The program's variable `waiting`, which is the only one it has.
    waiting: Mapping,
    page: usize,
    size: usize,
    /// How far records have been handed out; what came back is in the consumer's position.
    read: AtomicUsize,
}

impl RingBuffer {
    /// Maps the ring buffer behind `map`, which has room for `size` bytes, a power of two, and the
    /// program's `variables`.
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

    /// Has the next record wake whoever waits at the descriptor. False if there is one already,
    /// or one that is just being written.
    pub(super) fn is_to_wake_us(&self) -> bool {
        self.waiting.word(0).store(1, Ordering::SeqCst);
        // The program reserves, then looks at the word; here it is the other way round.
        fence(Ordering::SeqCst);
        self.producer.long(0).load(Ordering::Acquire) == self.read.load(Ordering::Relaxed)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next finished record of at least `least` bytes, and the ticket that frees it.
    pub(super) fn next(&self, least: usize) -> Option<(NonNull<u8>, Ticket)> {
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
            if header & DISCARDED == 0 && bytes >= least {
                let record = self.producer.at(start + HEADER_BYTES, bytes);
                return Some((record, Ticket::Release(end)));
            }
        }
    }
}

impl Lender for RingBuffer {
    fn give_back(&self, ticket: Ticket) {
        if let Ticket::Release(end) = ticket {
            self.consumer.long(0).store(end, Ordering::Release);
        }
    }
}
