//! Responses of generic netlink and of rtnetlink.
#![no_main]

use libfuzzer_sys::fuzz_target;
use netlink_packet_route::RouteNetlinkMessage;
use wirestamp_sys::netlink::messages;

fuzz_target!(|input: (u16, &[u8])| {
    let (attribute, bytes) = input;
    wirestamp_capture::fuzzing::generic_netlink(bytes, attribute);
    let _ = messages::<RouteNetlinkMessage>(bytes);
});
