//! Packets of MPEG transport streams, their tables, and the errors of the stream.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_clock::{Span, Time};
use wirestamp_metrics::flow::{FlowConfig, FlowMonitor, FlowPacket};
use wirestamp_packet::transport_stream::{PACKET_BYTES, Section, SectionAssembler, TsPacket};
use wirestamp_packet::{LinkType, Packet};

/// IPv4 and UDP headers of a datagram with one packet.
const HEADERS: [u8; 28] = [
    0x45, 0, 0, 216, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x0f, 0xa0, 0x13, 0x8c,
    0, 196, 0, 0,
];
/// Datagrams that prove that a flow is a transport stream.
const MIN_DATAGRAMS: usize = 4;

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
    observe(bytes);
});

/// Records each packet as a datagram of a flow.
fn observe(bytes: &[u8]) {
    let mut monitor = FlowMonitor::new(FlowConfig::default());
    let mut time = Time::from_nanos(0);
    for (number, packet) in bytes.chunks_exact(PACKET_BYTES).enumerate() {
        let mut datagram = [&HEADERS[..], packet].concat();
        if number < MIN_DATAGRAMS {
            datagram[HEADERS.len()] = 0x47;
        }
        time = time + Span::from_millis(i64::from(packet[PACKET_BYTES - 1]));
        let packet = Packet::parse(LinkType::Ip, &datagram).expect("a datagram");
        monitor.observe(&FlowPacket { packet: &packet, length: 216, time, encapsulation: None });
    }
    for found in monitor.flows().filter_map(|report| report.transport_stream) {
        assert!(found.null_packets + found.malformed_packets <= found.packets);
    }
}
