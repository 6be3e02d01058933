//! The way for the targets in `fuzz/` to parsers that nobody else needs from outside. It is there
//! only when cargo-fuzz compiles; tests beside the parsers do the same for a moment.

/// What the kernel says of a packet that was sent, cmsg(3).
pub fn stamp_report(bytes: &[u8]) {
    crate::tx_stamps::read_any(bytes);
}

/// Messages of rtnetlink(7).
pub fn route_netlink(bytes: &[u8]) {
    crate::netlink::read_any(bytes);
}
