//! `xdp`: an AF_XDP socket. Frames are written into memory shared with the kernel, and taken from
//! there by one system call for a batch, past the network stack: by the driver itself, or where it
//! cannot do that, copied (`Documentation/networking/af_xdp.rst`).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use wirestamp_capture::xsk::Transmitter;

use super::{PATIENCE, SEND_BUFFER_BYTES, Tally, Transmission, Transmit};
use crate::netlink::Link;
use crate::sys::packet as sys;

/// How many frames may be on their way at a time.
const FRAMES: u32 = 4096;

/// An AF_XDP socket that sends over one queue of an interface.
#[derive(Debug)]
pub(super) struct Xdp {
    transmitter: Transmitter,
    /// The lengths of the frames that the kernel has not taken, the oldest first.
    waiting: VecDeque<usize>,
    /// Frames that it has taken, and dropped.
    refused: Tally,
}

impl Xdp {
    /// A socket that sends over `link`.
    pub(super) fn open(link: &Link, transmission: &Transmission) -> io::Result<Self> {
        let transmitter = Transmitter::open(link.index, transmission.queue, FRAMES)?;
        // Copies of frames on their way count against it.
        sys::enlarge_send_buffer(transmitter.socket(), SEND_BUFFER_BYTES)?;
        Ok(Self { transmitter, waiting: VecDeque::new(), refused: Tally::default() })
    }

    /// Does something that may have the kernel take frames, and notes which it has taken.
    fn note<T>(&mut self, work: impl FnOnce(&mut Transmitter) -> io::Result<T>) -> io::Result<T> {
        let refused_before = self.transmitter.refused();
        let answer = work(&mut self.transmitter);
        let has_refused = self.transmitter.refused() > refused_before;
        // The kernel may be late to say in the ring that it has taken the frame it refused.
        let taken = self.waiting.len().saturating_sub(self.transmitter.waiting());
        let taken = taken.max(usize::from(has_refused)).min(self.waiting.len());
        // It stops at a frame that it refuses, which is therefore the last.
        let last = self.waiting.drain(..taken).next_back();
        if let Some(bytes) = last.filter(|_| has_refused) {
            self.refused.add(bytes);
        }
        answer
    }
}

impl Drop for Xdp {
    /// Waits for frames that the driver has taken and not sent: it forgets them with the socket.
    fn drop(&mut self) {
        let begun = Instant::now();
        while self.transmitter.in_flight() > 0 && begun.elapsed() < PATIENCE {
            if self.transmitter.reclaim().is_err() {
                break;
            }
        }
    }
}

impl Transmit for Xdp {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        if length > Transmitter::LONGEST_FRAME {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let queue = |transmitter: &mut Transmitter| {
            transmitter.queue(|memory| {
                memory[..frame.len()].copy_from_slice(frame);
                length
            })
        };
        let mut queued = queue(&mut self.transmitter);
        if !queued {
            self.note(Transmitter::reclaim)?;
            queued = queue(&mut self.transmitter);
        }
        if !queued {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        self.waiting.push_back(frame.len());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.note(Transmitter::flush)?;
        // A batch of the kernel's is smaller than ours.
        if self.waiting.is_empty() {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::EAGAIN))
        }
    }

    fn waiting(&self) -> Tally {
        Tally::of(&self.waiting)
    }

    fn refused(&self) -> Tally {
        self.refused
    }

    fn mode(&self) -> Option<&'static str> {
        Some(if self.transmitter.bound().zero_copy { "zero-copy" } else { "copy" })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.transmitter.socket().as_fd()
    }
}
