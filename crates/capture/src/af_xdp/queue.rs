//! One queue of the interface: its socket and receive ring.

use std::io;
use std::sync::Arc;

use super::CAPABILITIES;
use super::chunks::ChunkMemory;
use super::stamp::FrameStamper;
use crate::Error;
use crate::bpf_program::{Hook, Stamped};
use crate::interface::Interface;
use crate::receiver::{Frame, FramePlace, Ticket};
use crate::xsk::{Bound, Consumer, Descriptor, HEADROOM, Producer, Rings, Sizes, Socket, Umem};

/// Min chunks per queue: room for a frame of 9 KiB and some more.
const MIN_CHUNKS: usize = 16;

/// Chunk size and count of each queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLayout {
    chunk_bytes: u32,
    /// Chunks per queue: a power of two, as ring sizes must be. Each ring has room for all chunks.
    chunks: u32,
    /// Whether the longest frame does not fit into a chunk.
    long_frames: bool,
}

impl QueueLayout {
    /// Splits `bytes` of memory among `queues` queues of an interface with frames of up to `longest` bytes. Chunks
    /// are as small as such frames allow.
    pub(super) fn new(longest: u32, bytes: usize, queues: u32) -> Self {
        let fits = |chunk: &&u32| longest <= **chunk - HEADROOM;
        let fitting = Umem::CHUNK_BYTES.iter().find(fits);
        let chunk_bytes = *fitting.unwrap_or(&Umem::CHUNK_BYTES[1]);
        let chunks = bytes / queues.max(1) as usize / chunk_bytes as usize;
        let chunks = 1 << chunks.clamp(MIN_CHUNKS, 1 << 20).ilog2();
        Self { chunk_bytes, chunks, long_frames: fitting.is_none() }
    }

    /// Bytes of a frame that fit into a chunk.
    pub(super) fn room(self) -> u32 {
        self.chunk_bytes - HEADROOM
    }

    pub(super) fn chunks(self) -> u32 {
        self.chunks
    }
}

/// Socket and receive ring of a queue.
pub(super) struct Queue {
    socket: Arc<Socket>,
    receive: Consumer<Descriptor>,
    bound: Bound,
    /// Ticket of the first chunk; the others follow.
    first_ticket: usize,
}

impl Queue {
    /// Opens the socket of queue `number` and gives the kernel all of its chunks. Returns the fill ring separately.
    pub(super) fn open(
        interface: &Interface,
        number: u32,
        layout: QueueLayout,
    ) -> Result<(Self, Producer<u64>), Error> {
        let failed = |what| move |cause| refused(interface, what, cause);
        let umem = Umem::allocate(layout.chunk_bytes, layout.chunks).map(Arc::new);
        let umem = umem.map_err(failed("get memory for packets"))?;
        // The kernel publishes frames before it releases their entries of the fill ring (`net/xdp/xsk.c`,
        // `xsk_flush`): a chunk may be released while its old entry still seems used.
        let fill = 2 * layout.chunks;
        let sizes = Sizes { fill, completion: 1, receive: layout.chunks, transmit: 0 };
        let (socket, rings) =
            Socket::open(&umem, sizes).map_err(failed("set up an AF_XDP socket"))?;
        let Rings { mut fill, receive: Some(receive), .. } = rings else {
            unreachable!("a receive ring was requested")
        };
        for chunk in 0..layout.chunks {
            let pushed = fill.push(umem.address(chunk));
            debug_assert!(pushed, "the fill ring has room for all chunks");
        }
        fill.publish();
        let bound = socket
            .bind(interface.index.cast_unsigned(), number, layout.long_frames)
            .map_err(failed("bind an AF_XDP socket"))?;
        let first_ticket = number as usize * layout.chunks as usize;
        Ok((Self { socket: Arc::new(socket), receive, bound, first_ticket }, fill))
    }

    pub(super) fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    pub(super) fn bound(&self) -> Bound {
        self.bound
    }

    /// Stamps and passes on up to `room` frames that have arrived; returns their number.
    pub(super) fn acquire(
        &mut self,
        room: usize,
        chunks: &ChunkMemory,
        stamper: &mut FrameStamper,
        take: &mut impl FnMut(Frame),
    ) -> usize {
        let mut taken = 0;
        while taken < room {
            let Some(head) = self.receive.pop() else { break };
            // Invalid descriptors count as left behind.
            if let Some(frame) = self.frame(head, chunks, stamper) {
                take(frame);
                taken += 1;
            }
        }
        self.receive.release();
        taken
    }

    /// The frame that begins with `head`. Of a frame in several chunks, only the first chunk's bytes are captured;
    /// the ticket releases all chunks.
    fn frame(
        &mut self,
        head: Descriptor,
        chunks: &ChunkMemory,
        stamper: &mut FrameStamper,
    ) -> Option<Frame> {
        let umem = self.socket.umem();
        let chunk = umem.chunk(head.address)?;
        // The chunk was read from the ring just now and has not been passed on.
        let Stamped { raw, kernel, .. } = stamper.stamp(umem, head.address);
        let ticket = self.first_ticket + chunk as usize;
        let (mut last, mut length) = (head, head.length);
        let mut previous = ticket;
        while last.continues() {
            // The kernel publishes all pieces of a frame at once, or none (af_xdp.rst).
            last = self.receive.pop()?;
            length = length.saturating_add(last.length);
            let next = self.first_ticket + self.socket.umem().chunk(last.address)? as usize;
            chunks.chain(previous, next);
            previous = next;
        }
        let (memory, offset) = self.socket.umem().place(head.address);
        let place = FramePlace { memory, offset, captured: head.length };
        Some(Frame::new(raw, kernel, place, length, Ticket::Release(ticket)))
    }
}

/// The error for a socket that the kernel refused, with the next step.
fn refused(interface: &Interface, what: &'static str, cause: io::Error) -> Error {
    let reason = match cause.raw_os_error() {
        Some(libc::EAFNOSUPPORT) => "this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS)",
        Some(libc::EBUSY) => "another program has an AF_XDP socket on one of its queues",
        Some(libc::ENOBUFS) => {
            "the memory for packets exceeds the limit of locked memory: raise `ulimit -l`, grant \
             cap_ipc_lock, or use less with --buffer-size"
        }
        _ => return Error::system(what, &interface.name, CAPABILITIES, cause),
    };
    Error::Program {
        what: Hook::Xdp.program(),
        interface: interface.name.clone(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_fit_the_longest_frame_and_fill_the_memory() {
        let layout = |longest, bytes, queues| {
            let QueueLayout { chunk_bytes, chunks, long_frames } =
                QueueLayout::new(longest, bytes, queues);
            (chunk_bytes, chunks, long_frames)
        };
        assert_eq!(layout(1518, 32 << 20, 1), (2048, 16_384, false));
        assert_eq!(layout(1518, 32 << 20, 3), (2048, 4096, false));
        assert_eq!(layout(1792, 0, 1), (2048, 16, false));
        assert_eq!(layout(1793, 1 << 20, 1), (4096, 256, false));
        assert_eq!(layout(9018, usize::MAX, 0), (4096, 1 << 20, true));
    }
}
