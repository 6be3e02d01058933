//! Frames from the wire: parsed, keyed, identified and hashed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::psamp::PayloadWindow;
use wirestamp_packet::{IdentityKey, LinkType, Packet};

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (offset, length, bytes) = input;
    let window = PayloadWindow { offset: offset.into(), length: length.into() };
    for link in [LinkType::Ethernet, LinkType::Ip] {
        if let Ok(packet) = Packet::parse(link, bytes) {
            let _ = (packet.flow(), packet.identity(IdentityKey::default()));
            let _ = (packet.bob(window, 0), packet.ipsx());
            if let Some(length) = packet.payload_length() {
                assert!(packet.payload().len() <= length);
            }
        }
    }
});
