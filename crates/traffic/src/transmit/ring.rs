//! `ring`: frames are written into memory shared with the kernel; one system call sends all waiting
//! frames (`PACKET_TX_RING`, Documentation/networking/packet_mmap.rst).
//!
//! The kernel releases a slot after a real interface has sent the frame. A virtual interface releases
//! it earlier, while the receiver still reads from the slot. So there are many slots, and each is
//! reused only after all others.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{TP_STATUS_AVAILABLE, TP_STATUS_SEND_REQUEST, TP_STATUS_WRONG_FORMAT};
use rustix::net::{SendFlags, send};
use wirestamp_sys::mmap::{Access, Mapping};
use wirestamp_sys::packet_socket;
use wirestamp_sys::socket::{enlarge_send_buffer, set_option};

use super::{PacketCount, SEND_BUFFER_BYTES, SendOptions, Transmit};
use crate::netlink::Link;

/// Offsets of status, length and frame in a slot: struct `tpacket2_hdr` (linux/if_packet.h), aligned
/// to 16 bytes (`TPACKET_ALIGN`).
const STATUS: usize = std::mem::offset_of!(libc::tpacket2_hdr, tp_status);
const LENGTH: usize = std::mem::offset_of!(libc::tpacket2_hdr, tp_len);
const FRAME: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);

/// Size of the ring: 4096 frames of 1500 bytes.
const RING_BYTES: usize = 8 << 20;
/// Size of a block that the kernel allocates; no slot is longer, as no frame exceeds 64 KiB.
const BLOCK_BYTES: usize = 128 << 10;

/// A packet socket with a ring of slots.
#[derive(Debug)]
pub(super) struct Ring {
    socket: OwnedFd,
    memory: Mapping,
    slot_bytes: usize,
    slots: usize,
    /// Frames written so far; the next one goes to slot `written % slots`.
    written: usize,
    /// Lengths of the last frames, which the kernel has not yet taken.
    waiting: VecDeque<usize>,
}

impl Ring {
    /// A ring whose frames are sent over `link`.
    pub(super) fn open(link: &Link, options: &SendOptions) -> io::Result<Self> {
        let slot_bytes = (FRAME + link.longest_frame()).next_power_of_two().min(BLOCK_BYTES);
        let slots = RING_BYTES / slot_bytes;
        let number = |number: usize| u32::try_from(number).map_err(io::Error::other);
        let socket = packet_socket::open()?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let layout = libc::tpacket_req {
            tp_block_size: number(BLOCK_BYTES)?,
            tp_block_nr: number(RING_BYTES / BLOCK_BYTES)?,
            tp_frame_size: number(slot_bytes)?,
            tp_frame_nr: number(slots)?,
        };
        set_option(&socket, libc::SOL_PACKET, libc::PACKET_TX_RING, &layout)?;
        if options.bypass_queue {
            packet_socket::bypass_queue(&socket)?;
        }
        enlarge_send_buffer(&socket, SEND_BUFFER_BYTES)?;
        let memory = Mapping::shared(socket.as_fd(), 0, RING_BYTES, Access::ReadWrite)?;
        packet_socket::bind_to_send(&socket, link.index.cast_signed())?;
        Ok(Self { socket, memory, slot_bytes, slots, written: 0, waiting: VecDeque::new() })
    }

    /// Offset of the slot of the `nth` frame.
    fn slot(&self, nth: usize) -> usize {
        nth % self.slots * self.slot_bytes
    }

    /// The status of the `nth` frame's slot, which the kernel may change at any time.
    fn status(&self, nth: usize) -> &AtomicU32 {
        self.memory.word(self.slot(nth) + STATUS)
    }

    /// Removes the frames that the kernel has taken from the waiting ones.
    fn remove_taken(&mut self) {
        let not_taken = TP_STATUS_SEND_REQUEST | TP_STATUS_WRONG_FORMAT;
        let oldest = self.written - self.waiting.len();
        let is_taken = |nth: &usize| self.status(*nth).load(Ordering::Acquire) & not_taken == 0;
        let taken = (oldest..self.written).take_while(is_taken).count();
        self.waiting.drain(..taken);
    }
}

impl Transmit for Ring {
    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        if frame.len() > self.slot_bytes - FRAME {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        if self.status(self.written).load(Ordering::Acquire) != TP_STATUS_AVAILABLE {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        let slot = self.slot(self.written);
        // The slot is ours; the kernel reads it only when its status changes below.
        self.memory.word(slot + LENGTH).store(length, Ordering::Relaxed);
        self.memory.write(slot + FRAME, frame);
        self.status(self.written).store(TP_STATUS_SEND_REQUEST, Ordering::Release);
        self.written += 1;
        self.waiting.push_back(frame.len());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let answer = send(&self.socket, &[], SendFlags::DONTWAIT);
        self.remove_taken();
        // The kernel stops when its memory or the interface's queue has no room.
        if self.waiting.is_empty() {
            Ok(())
        } else {
            answer?;
            Err(io::Error::from_raw_os_error(libc::ENOBUFS))
        }
    }

    fn waiting(&self) -> PacketCount {
        PacketCount::of(&self.waiting)
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
