//! `xdp`: an AF_XDP socket. Frames are written into memory shared with the kernel; one system call
//! sends a batch and bypasses the network stack. The driver sends zero-copy, or the kernel copies
//! (`Documentation/networking/af_xdp.rst`).

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use wirestamp_capture::xsk::Transmitter;
use wirestamp_sys::socket::enlarge_send_buffer;

use super::{PacketCount, SEND_BUFFER_BYTES, SEND_TIMEOUT, SendOptions, Transmit};
use crate::netlink::Link;

/// Max frames in flight.
const FRAMES: u32 = 4096;

/// An AF_XDP socket that sends over one queue of an interface.
#[derive(Debug)]
pub(super) struct Xdp {
    transmitter: Transmitter,
    /// Lengths of the frames that the kernel has not yet taken, the oldest first.
    waiting: VecDeque<usize>,
    /// Frames that it has taken and dropped.
    refused: PacketCount,
}

impl Xdp {
    /// A socket that sends over `link`.
    pub(super) fn open(link: &Link, options: &SendOptions) -> io::Result<Self> {
        let transmitter = Transmitter::open(link.index, options.queue, FRAMES)?;
        // In copy mode, frames in flight use the send buffer.
        enlarge_send_buffer(transmitter.socket(), SEND_BUFFER_BYTES)?;
        Ok(Self { transmitter, waiting: VecDeque::new(), refused: PacketCount::default() })
    }

    /// Calls `work`, which may make the kernel take frames, and removes these from the waiting ones.
    fn remove_taken<T>(
        &mut self,
        work: impl FnOnce(&mut Transmitter) -> io::Result<T>,
    ) -> io::Result<T> {
        let refused_before = self.transmitter.refused();
        let answer = work(&mut self.transmitter);
        let has_refused = self.transmitter.refused() > refused_before;
        // The kernel may update the ring late for the frame that it refused.
        let taken = self.waiting.len().saturating_sub(self.transmitter.waiting());
        let taken = taken.max(usize::from(has_refused)).min(self.waiting.len());
        // The kernel stops at a refused frame, so that frame is the last one taken.
        let last = self.waiting.drain(..taken).next_back();
        if let Some(bytes) = last.filter(|_| has_refused) {
            self.refused.add(bytes);
        }
        answer
    }
}

impl Drop for Xdp {
    /// Waits for frames that the driver has taken but not sent: closing the socket drops them.
    fn drop(&mut self) {
        let begun = Instant::now();
        while self.transmitter.in_flight() > 0 && begun.elapsed() < SEND_TIMEOUT {
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
            self.remove_taken(Transmitter::reclaim)?;
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
        self.remove_taken(Transmitter::flush)?;
        // The kernel takes smaller batches, so that some frames may still wait.
        if self.waiting.is_empty() {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::EAGAIN))
        }
    }

    fn waiting(&self) -> PacketCount {
        PacketCount::of(&self.waiting)
    }

    fn refused(&self) -> PacketCount {
        self.refused
    }

    fn mode(&self) -> Option<&'static str> {
        Some(if self.transmitter.bound().zero_copy { "zero-copy" } else { "copy" })
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.transmitter.socket().as_fd()
    }
}
