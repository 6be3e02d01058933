//! Packets of MPEG transport streams, and their tables.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::transport_stream::{PACKET_BYTES, Section, SectionAssembler, TsPacket};

fuzz_target!(|bytes: &[u8]| {
    let mut assembler = SectionAssembler::default();
    for packet in bytes.chunks(PACKET_BYTES).filter_map(TsPacket::parse) {
        assert!(packet.presentation_time().is_none_or(|time| time < 1 << 33));
        assembler.record(&packet, |bytes| {
            if let Ok(section) = Section::parse(bytes) {
                assert!(section.associations().all(|it| it.pid <= 0x1fff));
                assert!(section.elementary_streams().all(|it| it.pid <= 0x1fff));
                let _ = section.elementary_streams().filter(|it| it.is_continuous_medium()).count();
            }
        });
    }
});
