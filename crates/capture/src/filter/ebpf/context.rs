//! Contexts of the kinds of programs, and their access to a frame's properties (linux/bpf.h).

use libbpf_rs::libbpf_sys;

use crate::filter::classic::Size;

/// The context argument of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::filter) enum Context {
    /// `struct xdp_md`: the frame as it was on the wire.
    Xdp,
    /// `struct __sk_buff`: the frame without its outer VLAN tag, which is in separate fields.
    Packet,
    /// `struct frame` of bpf/layers.bpf.c: the location of such a frame in the kernel's memory, as far as it is
    /// contiguous.
    Memory,
}

/// Offsets of the fields of `struct frame`.
pub(super) mod memory {
    pub(in crate::filter::ebpf) const START: i16 = 0;
    pub(in crate::filter::ebpf) const CAPTURED: i16 = 8;
    pub(super) const LENGTH: i16 = 12;
    pub(super) const TAGGED: i16 = 16;
    pub(super) const TAG: i16 = 20;
    pub(super) const TAG_TYPE: i16 = 24;
}

/// Access to a property of a frame.
pub(super) enum Property {
    /// The result of a helper.
    Helper(u32),
    /// A 32-bit field of the context, by its offset.
    Field(i16),
    /// The same for a 16-bit number in network byte order.
    BigEndian(i16),
}

impl Context {
    /// The helper that copies bytes of the frame, if there is one that checks its length.
    pub(super) fn load_bytes(self) -> Option<u32> {
        match self {
            Self::Xdp => Some(libbpf_sys::BPF_FUNC_xdp_load_bytes),
            Self::Packet => Some(libbpf_sys::BPF_FUNC_skb_load_bytes),
            Self::Memory => None,
        }
    }

    /// The frame's length.
    pub(super) fn length(self) -> Property {
        match self {
            Self::Xdp => Property::Helper(libbpf_sys::BPF_FUNC_xdp_get_buff_len),
            Self::Packet => Property::Field(0), // len
            Self::Memory => Property::Field(memory::LENGTH),
        }
    }

    /// The property for a classic program's load from a special `offset` (linux/filter.h: `SKF_AD_VLAN_*`).
    pub(super) fn special(self, size: Size, offset: u32) -> Option<Property> {
        let [tagged, tag, tag_type] = match self {
            Self::Xdp => return None,
            Self::Packet => [20, 24, 28], // vlan_present, vlan_tci, vlan_proto
            Self::Memory => [memory::TAGGED, memory::TAG, memory::TAG_TYPE],
        };
        if size != Size::Half {
            return None;
        }
        match offset.wrapping_sub(libc::SKF_AD_OFF.cast_unsigned()).cast_signed() {
            libc::SKF_AD_VLAN_TAG_PRESENT => Some(Property::Field(tagged)),
            libc::SKF_AD_VLAN_TAG => Some(Property::Field(tag)),
            libc::SKF_AD_VLAN_TPID => Some(Property::BigEndian(tag_type)),
            _ => None,
        }
    }
}
