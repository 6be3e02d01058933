//! Restores the VLAN tag that the kernel removes from a frame before a packet socket receives it.
#![expect(unsafe_code, reason = "the tag goes in front of memory that a frame points to")]

use crate::receiver::Frame;

/// Size of an 802.1Q tag, and of the room reserved before each packet.
pub(crate) const TAG_BYTES: u32 = 4;

const ADDRESS_BYTES: u32 = 12; // two MAC addresses stand before the tag
const TPID_8021Q: u16 = 0x8100;

/// The kernel's report of a removed tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The packet's status word; without `TP_STATUS_VLAN_VALID` there was no tag.
    pub(crate) status: u32,
    /// The tag control information.
    pub(crate) tci: u16,
    /// The tag's protocol; 0 from kernels that do not report it, which means 802.1Q.
    pub(crate) tpid: u16,
}

/// Restores the frame's tag, if it had one: its bytes then begin four bytes earlier.
///
/// # Safety
/// The frame's bytes and the four before them may be written.
pub(crate) unsafe fn restore(frame: &mut Frame, tag: Tag) {
    if tag.status & libc::TP_STATUS_VLAN_VALID == 0 || frame.captured < ADDRESS_BYTES {
        return;
    }
    let tpid = if tag.tpid == 0 { TPID_8021Q } else { tag.tpid };
    let [a, b] = tpid.to_be_bytes();
    let [c, d] = tag.tci.to_be_bytes();
    // SAFETY: the caller guarantees the four bytes before the frame, and the check above that it has both
    // addresses; `copy_from` allows the overlap, and the tag overwrites bytes that were moved.
    unsafe {
        let start = frame.data.sub(TAG_BYTES as usize);
        start.copy_from(frame.data, ADDRESS_BYTES as usize);
        start.add(ADDRESS_BYTES as usize).cast::<[u8; 4]>().write_unaligned([a, b, c, d]);
        frame.data = start;
    }
    frame.captured += TAG_BYTES;
    frame.length += TAG_BYTES;
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::receiver::Ticket;

    #[test]
    fn tag_is_inserted_after_the_addresses() {
        let mut memory = [0_u8; 4 + 16];
        for (i, byte) in (0_u8..).zip(&mut memory[4..]) {
            *byte = i;
        }
        let start = NonNull::from(&mut memory).cast::<u8>();
        // SAFETY: the frame starts four bytes into the array and has 16.
        let data = unsafe { start.add(4) };
        let mut frame =
            Frame { raw: 0, kernel: None, data, captured: 16, length: 60, ticket: Ticket::Later };
        let tag = Tag { status: libc::TP_STATUS_VLAN_VALID, tci: 0x2007, tpid: 0 };
        // SAFETY: the four bytes before the frame are the array's first.
        unsafe { restore(&mut frame, tag) };
        assert_eq!((frame.data, frame.captured, frame.length), (start, 20, 64));
        let (addresses, rest) = memory.split_at(12);
        assert_eq!(addresses, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(rest, [0x81, 0x00, 0x20, 0x07, 12, 13, 14, 15]);
    }
}
