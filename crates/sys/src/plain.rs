//! Types that the kernel reads and writes as plain bytes.
#![expect(unsafe_code, reason = "the promise that a type has no padding and no invalid values")]

/// A type that consists of integers only.
///
/// # Safety
/// Any bits are a valid value, there is no padding, and no field is an address that the kernel
/// follows.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($kind:ty)*) => {$(
        // SAFETY: integers without padding (linux/if_packet.h, linux/if_xdp.h).
        unsafe impl Plain for $kind {}
    )*};
}

plain!(u8 u16 u32 u64 i32);
plain!(libc::packet_mreq libc::tpacket_req libc::tpacket_req3 libc::timeval);
plain!(libc::tpacket2_hdr libc::tpacket3_hdr libc::xdp_desc libc::sockaddr_ll);

// SAFETY: as its elements; an array has no padding.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
