//! Access for the targets in `fuzz/` to private parsers. Compiled only by cargo-fuzz; unit tests of the parsers run
//! the same checks briefly.

/// Control messages of a packet, cmsg(3).
pub fn control_messages(bytes: &[u8]) {
    wirestamp_sys::control_message::read_any(bytes);
}

/// A message of generic netlink, in which an attribute is searched.
pub fn generic_netlink(bytes: &[u8], attribute: u16) {
    wirestamp_sys::netlink::read_any(bytes, attribute);
}

/// A program of classic BPF, translated for sockets, XDP and tc.
pub fn filter_program(bytes: &[u8]) {
    crate::filter::fake::try_program(bytes);
}

/// A record of changed settings.
pub fn tune_record(text: &str) {
    crate::tune::read_any(text);
}
