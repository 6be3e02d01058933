//! RTCP packets, whole and cut off by a capture.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::rtcp::{Compound, ExtendedBlock, RtcpPacket, begins_rtcp, first_sender};
use wirestamp_packet::rtp::Rtp;

fuzz_target!(|input: (u16, &[u8])| {
    let (on_wire, bytes) = input;
    let _ = first_sender(bytes);
    for on_wire in [bytes.len(), usize::from(on_wire)] {
        let Some(compound) = Compound::parse(bytes, on_wire) else { continue };
        assert!(begins_rtcp(bytes) && Rtp::parse(bytes, on_wire).is_none());
        assert!(compound.packets().count() > 0);
        for packet in compound.packets() {
            match packet {
                RtcpPacket::SenderReport { blocks, .. } | RtcpPacket::ReceiverReport { blocks, .. } => {
                    assert!(blocks.iter().all(|it| (-(1 << 23)..1 << 23).contains(&it.cumulative_lost)));
                }
                RtcpPacket::Goodbye { sources } => assert!(sources.iter().count() <= 31),
                RtcpPacket::ExtendedReport { blocks, .. } => blocks.iter().for_each(|block| match block {
                    ExtendedBlock::VoipMetrics(metrics) => {
                        assert!(metrics.mos_lq.is_none_or(|mos| (10..=50).contains(&mos)));
                    }
                    ExtendedBlock::DelaySinceLast(answers) => assert!(answers.iter().count() <= bytes.len() / 12),
                    _ => {}
                }),
                RtcpPacket::Other { packet_type } => assert!((192..=223).contains(&packet_type)),
            }
        }
    }
});
