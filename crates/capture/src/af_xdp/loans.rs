//! The way back: chunks of frames that were used go into the fill ring of their queue.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::receiver::{Lender, Ticket};
use crate::xsk::{Producer, Socket};

/// Stands for no chunk.
const NONE: usize = usize::MAX;

/// What a queue's chunks go back through.
pub(super) struct Return {
    /// Only the thread that gives back takes it, so that it never waits.
    fill: Mutex<Producer<u64>>,
    socket: Arc<Socket>,
}

/// The chunks of all queues. A ticket is a chunk's number, counted through the queues.
pub(super) struct Loans {
    queues: Vec<Return>,
    /// Chunks of each queue.
    chunks: usize,
    /// For the chunk of each ticket, the one that goes on with its frame.
    next: Box<[AtomicUsize]>,
}

impl Return {
    pub(super) fn new(fill: Producer<u64>, socket: Arc<Socket>) -> Self {
        Self { fill: Mutex::new(fill), socket }
    }
}

impl Loans {
    /// The chunks of `queues`, each of which has `chunks` of them.
    pub(super) fn new(queues: Vec<Return>, chunks: u32) -> Self {
        let chunks = chunks as usize;
        let next = (0..queues.len() * chunks).map(|_| AtomicUsize::new(NONE)).collect();
        Self { queues, chunks, next }
    }

    /// Has the chunk `next` come back with `chunk`, because both hold pieces of one frame.
    pub(super) fn chain(&self, chunk: usize, next: usize) {
        // Relaxed: the frame's way to the thread that gives it back orders this.
        self.next[chunk].store(next, Ordering::Relaxed);
    }
}

impl Lender for Loans {
    /// The kernel is woken if it waits for chunks.
    fn give_back(&self, ticket: Ticket) {
        let Ticket::Release(mut chunk) = ticket else { return };
        let queue = &self.queues[chunk / self.chunks];
        let umem = queue.socket.umem();
        let mut fill = queue.fill.lock().unwrap_or_else(PoisonError::into_inner);
        while chunk != NONE {
            let number = u32::try_from(chunk % self.chunks).unwrap_or(u32::MAX);
            let pushed = fill.push(umem.address(number));
            debug_assert!(pushed, "the fill ring has room for all chunks");
            chunk = self.next[chunk].swap(NONE, Ordering::Relaxed);
        }
        fill.publish();
        if fill.needs_wakeup() {
            // An interface that is down is noticed by whoever asks for its state.
            let _ = queue.socket.wake_receive();
        }
    }
}
