//! Frames from the wire: parsed, keyed and identified.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::{IdentityKey, LinkType, Packet};

fuzz_target!(|bytes: &[u8]| {
    for link in [LinkType::Ethernet, LinkType::Ip] {
        if let Ok(packet) = Packet::parse(link, bytes) {
            let _ = (packet.flow(), packet.identity(IdentityKey::default()));
            if let Some(length) = packet.payload_length() {
                assert!(packet.payload().len() <= length);
            }
        }
    }
});
