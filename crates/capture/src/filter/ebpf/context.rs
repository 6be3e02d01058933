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
    /// The helper that copies bytes of the frame.
    pub(super) fn load_bytes(self) -> u32 {
        match self {
            Self::Xdp => libbpf_sys::BPF_FUNC_xdp_load_bytes,
            Self::Packet => libbpf_sys::BPF_FUNC_skb_load_bytes,
        }
    }

    /// The frame's length.
    pub(super) fn length(self) -> Known {
        match self {
            Self::Xdp => Known::Helper(libbpf_sys::BPF_FUNC_xdp_get_buff_len),
            Self::Packet => Known::Field(0), // len
        }
    }

    /// What a classic program means by a load from `offset` that the kernel knows beside the frame
    /// (linux/filter.h: `SKF_AD_VLAN_*`).
    pub(super) fn beside(self, size: Size, offset: u32) -> Option<Known> {
        if self == Self::Xdp || size != Size::Half {
            return None;
        }
        match offset.wrapping_sub(libc::SKF_AD_OFF.cast_unsigned()).cast_signed() {
            libc::SKF_AD_VLAN_TAG_PRESENT => Some(Known::Field(20)), // vlan_present
            libc::SKF_AD_VLAN_TAG => Some(Known::Field(24)),         // vlan_tci
            libc::SKF_AD_VLAN_TPID => Some(Known::BigEndian(28)),    // vlan_proto
            _ => None,
        }
    }
}
