//! The way for the targets in `fuzz/` to parsers that nobody else needs from outside. It is there
//! only when cargo-fuzz compiles; tests beside the parsers do the same for a moment.

/// What the kernel says of a packet beside it, cmsg(3).
pub fn control_messages(bytes: &[u8]) {
    crate::socket::read_any(bytes);
}

/// An answer of generic netlink, in which an attribute is looked for.
pub fn generic_netlink(bytes: &[u8], attribute: u16) {
    crate::capabilities::read_any(bytes, attribute);
}

/// A program of classic BPF, translated for sockets, XDP and tc.
pub fn filter_program(bytes: &[u8]) {
    crate::filter::fake::try_program(bytes);
}

/// A record of settings that were changed.
pub fn tune_record(text: &str) {
    crate::tune::read_any(text);
}
