//! What programs of each kind are given for a frame, and how they ask about it (linux/bpf.h).

use libbpf_rs::libbpf_sys;

use crate::filter::classic::Size;

/// What a program is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::filter) enum Context {
    /// `struct xdp_md`: the frame as it was on the wire.
    Xdp,
    /// `struct __sk_buff`: the frame without its outer VLAN tag, and the tag beside it.
    Packet,
    /// `struct frame` of bpf/layers.bpf.c: where in the kernel's memory such a frame is, as far as it
    /// is in one piece.
    Memory,
}

/// Where the fields of `struct frame` are.
pub(super) mod memory {
    pub(in crate::filter::ebpf) const START: i16 = 0;
    pub(in crate::filter::ebpf) const CAPTURED: i16 = 8;
    pub(super) const LENGTH: i16 = 12;
    pub(super) const TAGGED: i16 = 16;
    pub(super) const TAG: i16 = 20;
    pub(super) const TAG_TYPE: i16 = 24;
}

/// A way to a number that is known of a frame.
pub(super) enum Known {
    /// The answer of a helper.
    Helper(u32),
    /// A field of 32 bits of the context, by where it stands.
    Field(i16),
    /// Such a field with a number of 16 bits in network byte order.
    BigEndian(i16),
}

impl Context {
    /// The helper that copies bytes of the frame, if there is one that knows where it ends.
    pub(super) fn load_bytes(self) -> Option<u32> {
        match self {
            Self::Xdp => Some(libbpf_sys::BPF_FUNC_xdp_load_bytes),
            Self::Packet => Some(libbpf_sys::BPF_FUNC_skb_load_bytes),
            Self::Memory => None,
        }
    }

    /// The frame's length.
    pub(super) fn length(self) -> Known {
        match self {
            Self::Xdp => Known::Helper(libbpf_sys::BPF_FUNC_xdp_get_buff_len),
            Self::Packet => Known::Field(0), // len
            Self::Memory => Known::Field(memory::LENGTH),
        }
    }

    /// What a classic program means by a load from `offset` that the kernel knows beside the frame
    /// (linux/filter.h: `SKF_AD_VLAN_*`).
    pub(super) fn beside(self, size: Size, offset: u32) -> Option<Known> {
        let [tagged, tag, tag_type] = match self {
            Self::Xdp => return None,
            Self::Packet => [20, 24, 28], // vlan_present, vlan_tci, vlan_proto
            Self::Memory => [memory::TAGGED, memory::TAG, memory::TAG_TYPE],
        };
        if size != Size::Half {
            return None;
        }
        match offset.wrapping_sub(libc::SKF_AD_OFF.cast_unsigned()).cast_signed() {
            libc::SKF_AD_VLAN_TAG_PRESENT => Some(Known::Field(tagged)),
            libc::SKF_AD_VLAN_TAG => Some(Known::Field(tag)),
            libc::SKF_AD_VLAN_TPID => Some(Known::BigEndian(tag_type)),
            _ => None,
        }
    }
}
