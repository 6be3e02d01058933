//! Responses of generic netlink and of rtnetlink.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, &[u8])| {
    let (attribute, bytes) = input;
    wirestamp_capture::fuzzing::generic_netlink(bytes, attribute);
    wirestamp_traffic::fuzzing::route_netlink(bytes);
});
