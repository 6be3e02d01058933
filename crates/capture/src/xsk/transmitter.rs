//! A socket that only sends, with the memory that it sends from.
#![expect(unsafe_code, reason = "writes into chunks")]

use std::io;
use std::slice;
use std::sync::Arc;

use super::ring::{Consumer, Descriptor, Producer};
use super::socket::{Bound, Rings, Sizes, Socket};
use super::umem::Umem;

/// Sends Ethernet frames over one queue of an interface.
///
/// A frame is [queued](Self::queue), the kernel is [told](Self::flush), and when it has sent the
/// frame, its memory is [taken back](Self::reclaim).
#[derive(Debug)]
pub struct Transmitter {
    socket: Socket,
    bound: Bound,
    transmit: Producer<Descriptor>,
    completion: Consumer<u64>,
    /// Addresses of the chunks that are ours.
    free: Vec<u64>,
    refused: u64,
    umem: Arc<Umem>,
}

impl Transmitter {
    /// Bytes that a frame may have.
    pub const LONGEST_FRAME: u32 = 2048;

    /// Opens a sender over `queue` of the interface with index `interface`, both of the calling
    /// thread's network namespace, for `frames` frames that may be on their way at a time, a power
    /// of two.
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
        // From the back, so that they are first taken in their order.
        let free = (0..frames).rev().map(|chunk| umem.address(chunk)).collect();
        Ok(Self { socket, bound, transmit, completion, free, refused: 0, umem })
    }

    /// Whether the driver sends from our memory, or the kernel copies.
    #[must_use]
    pub fn bound(&self) -> Bound {
        self.bound
    }

    /// The socket, for its options and statistics.
    #[must_use]
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// How many frames have been queued and not been taken back.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.umem.chunks() as usize - self.free.len()
    }

    /// How many frames have been queued and not been taken by the kernel. It may be late to say so
    /// of one that it [refused](Self::refused), until it is told the next time.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.transmit.waiting() as usize
    }

    /// How many frames the kernel has taken to copy them, and dropped because the interface did not
    /// want them: it has no carrier, or its driver no room. What a driver without copies drops only
    /// the interface's own counters tell.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Queues a frame that `write` puts at the beginning of the memory it is given, and whose
    /// length it returns. That memory has [`Self::LONGEST_FRAME`] bytes and holds what an earlier
    /// frame left there, zeroes at first. Says whether there was memory; if not, the kernel is to
    /// be told of the frames queued so far, or frames to be taken back.
    ///
    /// # Panics
    /// When the length is larger than the memory.
    #[must_use]
    pub fn queue(&mut self, write: impl FnOnce(&mut [u8]) -> u32) -> bool {
        let Some(&address) = self.free.last() else { return false };
        let bytes = self.umem.at(address, Self::LONGEST_FRAME).as_ptr();
        // SAFETY: the bytes lie in the memory and are initialised; the chunk is among the free
        // ones, so that neither the kernel nor another slice of ours uses it.
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

    /// Has the kernel send what has been queued. Frames for which it has no room yet stay queued
    /// until the next call or [`Self::reclaim`].
    ///
    /// # Errors
    /// The kernel's, for instance `ENETDOWN`.
    pub fn flush(&mut self) -> io::Result<()> {
        self.transmit.publish();
        if !self.transmit.needs_wakeup() {
            return Ok(());
        }
        match self.socket.wake_transmit() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                // The copying kernel stops at a frame that it had to drop, and says this of it.
                self.refused += u64::from(!self.bound.zero_copy);
                Ok(())
            }
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes back the memory of frames that have been sent, and has the kernel go on with those
    /// that have not. Returns how many it took back.
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

/// Whether the kernel has left frames in the ring for now.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS))
}
