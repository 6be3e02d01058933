//! Memory of the frames: released chunks return to the fill ring of their queue.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::receiver::{FrameMemory, Ticket};
use crate::xsk::{Producer, Socket};

/// No chunk.
const NONE: usize = usize::MAX;

/// The fill ring of one queue.
pub(super) struct FillRing {
    /// Only the releasing thread takes this lock, so it never waits.
    fill: Mutex<Producer<u64>>,
    socket: Arc<Socket>,
}

/// The chunks of all queues. A ticket is the chunk's index among the chunks of all queues.
pub(super) struct ChunkMemory {
    queues: Vec<FillRing>,
    /// Chunks per queue.
    chunks: usize,
    /// For each ticket's chunk, the next chunk of the same frame.
    next: Box<[AtomicUsize]>,
}

impl FillRing {
    pub(super) fn new(fill: Producer<u64>, socket: Arc<Socket>) -> Self {
        Self { fill: Mutex::new(fill), socket }
    }
}

impl ChunkMemory {
    /// The chunks of `queues`, `chunks` per queue.
    pub(super) fn new(queues: Vec<FillRing>, chunks: u32) -> Self {
        let chunks = chunks as usize;
        let next = (0..queues.len() * chunks).map(|_| AtomicUsize::new(NONE)).collect();
        Self { queues, chunks, next }
    }

    /// Chunks per queue.
    pub(super) fn per_queue(&self) -> usize {
        self.chunks
    }

    /// Releases the chunk `next` together with `chunk`: both hold pieces of one frame.
    pub(super) fn chain(&self, chunk: usize, next: usize) {
        // Relaxed: passing the frame to the releasing thread orders this store.
        self.next[chunk].store(next, Ordering::Relaxed);
    }
}

impl FrameMemory for ChunkMemory {
    /// Wakes the kernel if it waits for chunks.
    fn release(&self, ticket: Ticket) {
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
            // The acquisition thread checks separately whether the interface is down.
            let _ = queue.socket.wake_receive();
        }
    }
}
