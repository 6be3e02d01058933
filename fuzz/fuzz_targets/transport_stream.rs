//! Packets of MPEG transport streams, and their tables.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::transport_stream::{PACKET_BYTES, Section, TsPacket};

fuzz_target!(|bytes: &[u8]| {
    for packet in bytes.chunks(PACKET_BYTES).filter_map(TsPacket::parse) {
        assert!(packet.presentation_time().is_none_or(|time| time < 1 << 33));
        if let Ok(section) = Section::begin(&packet) {
            assert!(section.associations().all(|it| it.pid <= 0x1fff));
        }
    }
});
