//! `ring`: a packet socket's ring in shared memory
//! (`Documentation/networking/packet_mmap.rst` in the kernel's source).
#![expect(unsafe_code, reason = "socket calls, and headers that the kernel writes")]

mod per_frame;
mod socket;
mod vlan;
mod with_blocks;

pub(crate) use per_frame::PerFrameRing;
pub(crate) use with_blocks::BlockRing;

/// How a ring is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Bytes of each packet to keep.
    pub(crate) snaplen: u32,
    /// Bytes of memory for the ring.
    pub(crate) bytes: usize,
    /// Whether packets that this machine sends are captured too.
    pub(crate) outgoing: bool,
}
