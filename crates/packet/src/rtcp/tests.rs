use proptest::prelude::*;

use super::*;

/// Words as bytes.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A packet of this type with its header (RFC 3550 section 6.4.1).
fn packet(count: u8, packet_type: u8, content: &[u32]) -> Vec<u8> {
    let [.., high, low] = content.len().to_be_bytes();
    [&[0x80 | count, packet_type, high, low], &words(content)[..]].concat()
}

/// A report on source 7: a quarter lost, 5 in total, number 3 after two wraps, jitter 40.
const BLOCK: [u32; 6] = [7, 0x4000_0005, 0x0002_0003, 40, 0x1234_5678, 0x0001_8000];

/// An SR of source 9 at 0xaabbccdd.11223344 with 100 packets and 16 000 bytes, and these blocks.
fn sender_report(blocks: &[[u32; 6]]) -> Vec<u8> {
    let head = [9, 0xaabb_ccdd, 0x1122_3344, 160, 100, 16_000];
    let count = u8::try_from(blocks.len()).expect("at most 31");
    packet(count, 200, &[&head[..], blocks.as_flattened()].concat())
}

/// An SDES with the name "a" of source 9.
fn description() -> Vec<u8> {
    packet(1, 202, &[9, 0x0101_6100])
}

fn parse(bytes: &[u8]) -> Option<Vec<RtcpPacket<'_>>> {
    Some(Compound::parse(bytes, bytes.len())?.packets().collect())
}

fn blocks_of(packet: &RtcpPacket<'_>) -> Vec<ReportBlock> {
    match packet {
        RtcpPacket::SenderReport { blocks, .. } | RtcpPacket::ReceiverReport { blocks, .. } => {
            blocks.iter().collect()
        }
        _ => panic!("no report: {packet:?}"),
    }
}

#[test]
fn compound_packet_has_all_its_parts() {
    let goodbye = packet(2, 203, &[9, 8, 0x0300_6279]);
    let bytes = [sender_report(&[BLOCK]), description(), goodbye].concat();
    let packets = parse(&bytes).expect("RTCP");
    let [report, other, goodbye] = packets[..] else { panic!("{packets:?}") };
    let RtcpPacket::SenderReport { sender, info, .. } = report else { panic!("{report:?}") };
    assert_eq!(sender, 9);
    assert_eq!(info.ntp_middle(), 0xccdd_1122);
    assert_eq!((info.rtp_timestamp, info.packets, info.bytes), (160, 100, 16_000));
    let expected = ReportBlock {
        ssrc: 7,
        fraction_lost: 64,
        cumulative_lost: 5,
        extended_highest_sequence: 0x0002_0003,
        jitter: 40,
        last_sender_report: 0x1234_5678,
        delay_since_last_sender_report: 0x0001_8000,
    };
    assert_eq!(blocks_of(&report), [expected]);
    assert_eq!(other, RtcpPacket::Other { packet_type: 202 });
    let RtcpPacket::Goodbye { sources } = goodbye else { panic!("{goodbye:?}") };
    assert_eq!(sources.iter().collect::<Vec<_>>(), [9, 8]);
}

#[test]
fn cumulative_loss_has_a_sign_of_24_bits() {
    let lost = |field: u32| {
        let mut block = BLOCK;
        block[1] = 0xff00_0000 | field;
        let bytes = packet(1, 201, &[&[9][..], &block].concat());
        let packets = parse(&bytes).expect("RTCP");
        blocks_of(&packets[0])[0].cumulative_lost
    };
    assert_eq!(
        [0, 1, 0x7f_ffff, 0x80_0000, 0xff_ffff].map(lost),
        [0, 1, 8_388_607, -8_388_608, -1]
    );
}

#[test]
fn reduced_size_packet_needs_no_report() {
    let feedback = packet(1, 205, &[9, 7, 0x0005_0000]);
    assert_eq!(parse(&feedback), Some(vec![RtcpPacket::Other { packet_type: 205 }]));
    assert!(parse(&packet(0, 201, &[9])).is_some_and(|it| blocks_of(&it[0]).is_empty()));
    assert!(parse(&packet(0, 210, &[9])).is_none());
}

#[test]
fn profile_may_extend_a_report() {
    let bytes = packet(1, 201, &[&[9][..], &BLOCK, &[1, 2, 3]].concat());
    assert_eq!(blocks_of(&parse(&bytes).expect("RTCP")[0]).len(), 1);
}

#[test]
fn wrong_lengths_and_counts_are_rejected() {
    let whole = sender_report(&[BLOCK, BLOCK]);
    assert!(parse(&whole).is_some());
    let mut too_many = whole.clone();
    too_many[0] = 0x83;
    assert_eq!(parse(&too_many), None);
    let mut version = whole.clone();
    version[0] = 0x42;
    assert_eq!(parse(&version), None);
    for length in 0..whole.len() {
        assert_eq!(parse(&whole[..length]), None, "{length}");
        assert_eq!(Compound::parse(&whole[..length], whole.len()), None, "{length}");
    }
    let followed = [&whole[..], &[0x80, 0, 0, 0]].concat();
    assert_eq!(parse(&followed), None);
    assert!(Compound::parse(&followed, whole.len()).is_some());
    assert_eq!(parse(&packet(2, 203, &[9])), None);
}

/// SRTCP appends its index and a tag (RFC 3711 section 3.4).
#[test]
fn encrypted_packets_are_rejected_but_have_a_sender() {
    let bytes = [sender_report(&[]), words(&[0x8000_0001, 0x1111_1111, 0x2222_2222])].concat();
    assert_eq!(parse(&bytes), None);
    assert_eq!(first_sender(&bytes), Some(9));
    assert_eq!(first_sender(&bytes[..7]), None);
    assert_eq!(first_sender(&[0x80, 0, 0, 1, 0, 0, 0, 9]), None);
}

#[test]
fn only_the_last_packet_may_be_padded() {
    let padded = |padding: u32| {
        let mut bytes = packet(0, 201, &[9, padding]);
        bytes[0] |= 0x20;
        bytes
    };
    let report = sender_report(&[]);
    assert!(parse(&[report.clone(), padded(4)].concat()).is_some());
    assert_eq!(parse(&[padded(4), report].concat()), None);
    for wrong in [0, 3, 8, 12, 255] {
        assert_eq!(parse(&padded(wrong)), None, "{wrong}");
    }
}

/// Blocks of an XR of source 9.
fn extended(blocks: &[u32]) -> Vec<u8> {
    packet(0, 207, &[&[9], blocks].concat())
}

fn extended_blocks(bytes: &[u8]) -> Vec<ExtendedBlock<'_>> {
    match parse(bytes).as_deref() {
        Some([RtcpPacket::ExtendedReport { sender: 9, blocks }]) => blocks.iter().collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn reference_time_and_its_answers_are_read() {
    let reference = [0x0400_0002, 0xaabb_ccdd, 0x1122_3344];
    let answers = [0x0500_0006, 7, 0x1234_5678, 0x0001_0000, 8, 0, 0];
    let other = [0x0100_0001, 5];
    let bytes = extended(&[&reference[..], &answers, &other].concat());
    let blocks = extended_blocks(&bytes);
    let [reference, ExtendedBlock::DelaySinceLast(answers), other] = blocks[..] else {
        panic!("{blocks:?}")
    };
    assert_eq!(reference, ExtendedBlock::ReceiverReference { ntp_middle: 0xccdd_1122 });
    let answers: Vec<_> = answers.iter().collect();
    let values =
        |it: &DelaySinceLastReport| (it.ssrc, it.last_reference, it.delay_since_last_reference);
    assert_eq!(
        answers.iter().map(values).collect::<Vec<_>>(),
        [(7, 0x1234_5678, 0x0001_0000), (8, 0, 0)]
    );
    assert_eq!(other, ExtendedBlock::Other { block_type: 1 });
}

/// Metrics of source 7 with these levels, ratings and buffer.
fn voip(levels: u32, ratings: u32, round_trip: u32, buffer: u32) -> VoipMetrics {
    let content =
        [7, 0x0d05_8003, 0x00b4_1770, round_trip << 16 | 42, levels, ratings, buffer, 0x0064_00c8];
    let bytes = extended(&[&[0x0700_0008][..], &content].concat());
    match extended_blocks(&bytes)[..] {
        [ExtendedBlock::VoipMetrics(metrics)] => metrics,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn voip_metrics_are_read() {
    let it = voip(0xeec8_3710, 0x5d5a_2928, 81, 0xb000_003c);
    assert_eq!(it.ssrc, 7);
    let rates = [it.loss_rate, it.discard_rate, it.burst_density, it.gap_density];
    assert_eq!(rates, [13, 5, 128, 3]);
    assert_eq!((it.burst_duration_ms, it.gap_duration_ms), (180, 6000));
    assert_eq!((it.round_trip_ms, it.end_system_delay_ms), (Some(81), 42));
    assert_eq!((it.signal_level_dbm0, it.noise_level_dbm0), (Some(-18), Some(-56)));
    assert_eq!((it.residual_echo_return_loss_db, it.gmin), (Some(55), 16));
    assert_eq!((it.r_factor, it.external_r_factor), (Some(93), Some(90)));
    assert_eq!((it.mos_lq, it.mos_cq), (Some(41), Some(40)));
    assert_eq!((it.is_buffer_adaptive, it.buffer_nominal_ms), (Some(true), 60));
    assert_eq!((it.buffer_max_ms, it.buffer_absolute_max_ms), (100, 200));
}

#[test]
fn unavailable_voip_metrics_are_none() {
    let it = voip(0x7f7f_7f10, 0x7f7f_7f7f, 0, 0x0000_003c);
    assert_eq!((it.signal_level_dbm0, it.noise_level_dbm0), (None, None));
    assert_eq!(it.residual_echo_return_loss_db, None);
    assert_eq!((it.r_factor, it.external_r_factor, it.mos_lq, it.mos_cq), (None, None, None, None));
    assert_eq!((it.round_trip_ms, it.is_buffer_adaptive), (None, None));
    // Values that RFC 3611 does not allow.
    let it = voip(0, 0x65ff_0933, 1, 0x2000_0000);
    assert_eq!((it.r_factor, it.external_r_factor, it.mos_lq, it.mos_cq), (None, None, None, None));
    assert_eq!(it.is_buffer_adaptive, Some(false));
}

#[test]
fn extended_blocks_with_wrong_lengths_are_not_read() {
    for (block, block_type) in [
        (&[0x0400_0001, 1][..], 4),
        (&[0x0500_0002, 1, 2][..], 5),
        (&[0x0700_0003, 1, 2, 3][..], 7),
    ] {
        assert_eq!(extended_blocks(&extended(block)), [ExtendedBlock::Other { block_type }]);
    }
    assert_eq!(parse(&extended(&[0x0400_0002, 1])), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        packet_type in 200u8..=207,
        on_wire in 0usize..200,
    ) {
        let mut bytes = bytes;
        if let [flags, second, high, low, ..] = &mut bytes[..] {
            (*flags, *second, *high, *low) = (0x80 | *flags & 0x3f, packet_type, 0, *low % 32);
        }
        let _ = first_sender(&bytes);
        for on_wire in [bytes.len(), on_wire] {
            let Some(compound) = Compound::parse(&bytes, on_wire) else { continue };
            prop_assert!(compound.packets().count() > 0);
            for packet in compound.packets() {
                if let RtcpPacket::ExtendedReport { blocks, .. } = packet {
                    prop_assert!(blocks.iter().count() <= bytes.len() / 4);
                }
            }
        }
    }
}
