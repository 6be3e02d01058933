//! Session descriptions, alone and in SIP.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::sdp;

fuzz_target!(|bytes: &[u8]| {
    let Some(alone) = sdp::find(bytes) else { return };
    let message = [b"INVITE sip:bob@example.com SIP/2.0\r\nv: SIP/2.0/UDP host\r\n\r\n", bytes];
    assert_eq!(sdp::find(&message.concat()), Some(alone));
});
