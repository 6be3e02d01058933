//! A socket that only sends, with its memory.
#![expect(unsafe_code, reason = "writes into chunks")]

use std::io;
use std::slice;
use std::sync::Arc;

use super::ring::{Consumer, Descriptor, Producer};
use super::socket::{Bound, Rings, Sizes, Socket};
use super::umem::Umem;

/// Sends Ethernet frames over one queue of an interface.
///
/// A frame is [queued](Self::queue), the queue is [flushed](Self::flush) to the kernel, and the memory of sent
/// frames is [reclaimed](Self::reclaim).
#[derive(Debug)]
pub struct Transmitter {
    socket: Socket,
    bound: Bound,
    transmit: Producer<Descriptor>,
    completion: Consumer<u64>,
    /// Addresses of the free chunks.
    free: Vec<u64>,
    refused: u64,
    umem: Arc<Umem>,
}

impl Transmitter {
    /// Max bytes of a frame.
    pub const LONGEST_FRAME: u32 = 2048;

    /// Opens a sender over `queue` of the interface with index `interface`, both in the calling thread's network
    /// namespace, for max `frames` frames in flight, a power of two.
    ///
    /// # Errors
    /// Those of [`Umem::allocate`], [`Socket::open`] and [`Socket::bind`].
    pub fn open(interface: u32, queue: u32, frames: u32) -> io::Result<Self> {
        let umem = Arc::new(Umem::allocate(Self::LONGEST_FRAME, frames)?);
        let sizes = Sizes { fill: 1, completion: frames, receive: 0, transmit: frames };
        let (socket, rings) = Socket::open(&umem, sizes)?;
        let Rings { completion, transmit: Some(transmit), .. } = rings else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let bound = socket.bind(interface, queue, false)?;
        // In reverse order: chunks are removed from the end, so their first use is in order.
        let free = (0..frames).rev().map(|chunk| umem.address(chunk)).collect();
        Ok(Self { socket, bound, transmit, completion, free, refused: 0, umem })
    }

    /// How the kernel bound the socket, zero-copy or not.
    #[must_use]
    pub fn bound(&self) -> Bound {
        self.bound
    }

    /// The socket, for its options and statistics.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Number of frames queued and not reclaimed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.umem.chunks() as usize - self.free.len()
    }

    /// Number of frames queued and not read by the kernel. A frame that the kernel [refused](Self::refused) may be
    /// counted until the next flush.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.transmit.waiting() as usize
    }

    /// Number of frames that the kernel read to copy and then dropped, because the interface has no carrier or its
    /// driver no room. Drops of a zero-copy driver are only in the interface's own counters.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Queues a frame. `write` writes it to the start of the given memory and returns its length. The memory has
    /// [`Self::LONGEST_FRAME`] bytes, and contains an earlier frame, initially zeroes. Returns whether there was
    /// memory; if not, flush or reclaim frames.
    ///
    /// # Panics
    /// The length is larger than the memory.
    #[must_use]
    pub fn queue(&mut self, write: impl FnOnce(&mut [u8]) -> u32) -> bool {
        let Some(&address) = self.free.last() else { return false };
        let bytes = self.umem.at(address, Self::LONGEST_FRAME).as_ptr();
        // SAFETY: the bytes lie in the memory and are initialised; the chunk is free, so that neither the kernel
        // nor another slice uses it.
        let bytes = unsafe { slice::from_raw_parts_mut(bytes, Self::LONGEST_FRAME as usize) };
        let length = write(bytes);
        assert!(length <= Self::LONGEST_FRAME, "a frame of {length} bytes does not fit");
        // The ring has room for all chunks.
        let queued = self.transmit.push(Descriptor { address, length, options: 0 });
        if queued {
            self.free.pop();
        }
        queued
    }

    /// Makes the kernel send the queued frames. Frames without room stay queued until the next call or
    /// [`Self::reclaim`].
    ///
    /// # Errors
    /// The kernel's, for example `ENETDOWN`.
    pub fn flush(&mut self) -> io::Result<()> {
        self.transmit.publish();
        if !self.transmit.needs_wakeup() {
            return Ok(());
        }
        match self.socket.wake_transmit() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                // In copy mode, the kernel stops at a dropped frame with this error.
                self.refused += u64::from(!self.bound.zero_copy);
                Ok(())
            }
            Err(error) if !is_temporary(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Reclaims the memory of sent frames, and makes the kernel continue with the others. Returns the number of
    /// reclaimed frames.
    ///
    /// # Errors
    /// As for [`Self::flush`].
    pub fn reclaim(&mut self) -> io::Result<usize> {
        let before = self.free.len();
        while let Some(address) = self.completion.pop() {
            self.free.push(address);
        }
        self.completion.release();
        if self.in_flight() > 0 {
            self.flush()?;
        }
        Ok(self.free.len() - before)
    }
}

/// Whether the error is temporary: the kernel has left frames in the ring.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS))
}
