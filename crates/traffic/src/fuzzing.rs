//! Private parsers, exported to the targets in `fuzz/`. Compiled by cargo-fuzz only.

/// Control messages with a transmit stamp, cmsg(3).
pub fn stamp_report(bytes: &[u8]) {
    wirestamp_sys::control_message::read_any(bytes);
}

/// Messages of rtnetlink(7).
pub fn route_netlink(bytes: &[u8]) {
    crate::netlink::read_any(bytes);
}
