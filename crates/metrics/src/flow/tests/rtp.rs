use super::*;
use crate::emodel::{Codec, Scale};

/// Packets of one call by number and arrival in milliseconds.
fn call(config: FlowConfig, packets: &[(u16, i64)]) -> RtpReport {
    let mut monitor = FlowMonitor::new(config);
    for (number, millis) in packets {
        observe(&mut monitor, &udp(ENDS, &voice(7, 0, *number)), at(*millis));
    }
    let [report] = &reports(&mut monitor)[..] else { panic!("{:?}", reports(&mut monitor)) };
    assert_eq!(report.packets, packets.len() as u64);
    report.rtp.clone().expect("RTP")
}

/// `count` packets on time.
fn on_time(count: u16) -> Vec<(u16, i64)> {
    (0..count).map(|number| (number, 20 * i64::from(number))).collect()
}

#[test]
fn recognised_stream_includes_earlier_packets() {
    let mut monitor = monitor();
    for number in 0..3 {
        observe(&mut monitor, &udp(ENDS, &voice(7, 0, number)), at(20 * i64::from(number)));
    }
    assert!(reports(&mut monitor).iter().all(|it| it.rtp.is_none() && it.packets == 3));
    observe(&mut monitor, &udp(ENDS, &voice(7, 0, 3)), at(60));
    let [report] = &reports(&mut monitor)[..] else { panic!("{:?}", reports(&mut monitor)) };
    let rtp = report.rtp.as_ref().expect("RTP");
    assert_eq!((report.packets, rtp.expected, rtp.ssrc), (4, 4, 7));
    assert_eq!(report.interarrival_ns.map(|it| (it.count, it.max)), Some((3, 20_000_000)));
}

#[test]
fn stream_is_recognised_despite_impairments() {
    let rtp =
        call(FlowConfig::default(), &[(0, 0), (2, 40), (2, 41), (1, 45), (9, 180), (10, 200)]);
    assert_eq!((rtp.expected, rtp.cumulative_lost), (11, 5));
}

#[test]
fn each_source_of_a_flow_is_a_stream() {
    let mut monitor = monitor();
    for number in 0..20 {
        for source in [1, 2] {
            observe(
                &mut monitor,
                &udp(ENDS, &voice(source, 0, number)),
                at(20 * i64::from(number)),
            );
        }
        observe(&mut monitor, &udp(ENDS, &[0; 40]), at(20 * i64::from(number)));
    }
    let found = reports(&mut monitor);
    let mut sources: Vec<_> =
        found.iter().map(|it| (it.rtp.as_ref().map(|rtp| rtp.ssrc), it.packets)).collect();
    sources.sort_unstable();
    assert_eq!(sources, [(None, 20), (Some(1), 20), (Some(2), 20)]);
}

#[test]
fn number_of_streams_is_limited() {
    let mut monitor = FlowMonitor::new(FlowConfig { flows: 8, ..FlowConfig::default() });
    for source in 0..50 {
        for number in 0..10 {
            observe(
                &mut monitor,
                &udp(ENDS, &voice(source, 0, number)),
                at(20 * i64::from(number)),
            );
        }
    }
    let found = reports(&mut monitor);
    assert_eq!(found.iter().filter(|it| it.rtp.is_some()).count(), 8);
    assert_eq!(found.iter().map(|it| it.packets).sum::<u64>(), 500);
}

#[test]
fn loss_lowers_the_mos() {
    let lose = |lost: &dyn Fn(u16) -> bool| {
        let packets: Vec<_> = on_time(1000).into_iter().filter(|(it, _)| !lost(*it)).collect();
        call(FlowConfig::default(), &packets)
    };
    let [clean, spread, burst] =
        [lose(&|_| false), lose(&|it| it % 20 == 10), lose(&|it| it % 200 >= 190 && it < 990)];
    assert_eq!((clean.loss_periods, spread.loss_periods, burst.loss_periods), (0, 50, 4));
    let mos = [clean, spread, burst].map(|it| it.mos.expect("a MOS"));
    assert!(mos[0] > 4.3 && mos[0] > mos[1] && mos[1] > 3.0 && mos[2] < mos[0], "{mos:?}");
}

#[test]
fn outage_of_thousands_of_packets_is_loss() {
    for payload_type in [0, 97] {
        let mut monitor = monitor();
        for number in (0..6000u16).filter(|it| !(500..3500).contains(it)) {
            let packet = udp(ENDS, &voice(7, payload_type, number));
            observe(&mut monitor, &packet, at(20 * i64::from(number)));
        }
        let [report] = &reports(&mut monitor)[..] else { panic!("one flow") };
        let rtp = report.rtp.as_ref().expect("RTP");
        assert_eq!((report.lost, rtp.cumulative_lost, rtp.expected), (Some(3000), 3000, 6000));
        assert_eq!((rtp.loss_periods, rtp.restarts, rtp.stray), (1, 0, 0));
        assert_eq!(rtp.mos.map(|mos| mos < 2.0), (payload_type == 0).then_some(true));
    }
}

#[test]
fn sender_that_restarts_after_a_pause_loses_no_packets() {
    let mut monitor = monitor();
    let all = (0..500).chain(10_000..10_500u16);
    for (place, number) in (0..).zip(all) {
        // A pause of 60 s before the restart, in which 3000 packets would be due.
        let time = 20 * place + if number < 500 { 0 } else { 60_000 };
        observe(&mut monitor, &udp(ENDS, &voice(7, 0, number)), at(time));
    }
    let [report] = &reports(&mut monitor)[..] else { panic!("one flow") };
    let rtp = report.rtp.as_ref().expect("RTP");
    assert_eq!((report.lost, rtp.expected, rtp.restarts), (Some(0), 1000, 1));
}

#[test]
fn reordering_is_no_loss() {
    let mut packets = on_time(100);
    packets[50].1 += 25;
    packets.swap(50, 51);
    let mut monitor = monitor();
    for (number, millis) in &packets {
        observe(&mut monitor, &udp(ENDS, &voice(7, 0, *number)), at(*millis));
    }
    let [report] = &reports(&mut monitor)[..] else { panic!("one flow") };
    assert_eq!((report.lost, report.reordered, report.duplicated), (Some(0), Some(1), Some(0)));
    let rtp = report.rtp.as_ref().expect("RTP");
    assert_eq!((rtp.expected, rtp.loss_periods, rtp.burst_ratio), (100, 0, 1.0));
    assert!(rtp.loss_over_time.iter().all(|ratio| *ratio == Some(0.0)));
}

#[test]
fn packets_later_than_the_buffer_lower_the_mos() {
    let mut packets = on_time(200);
    for packet in &mut packets[100..110] {
        packet.1 += 70;
    }
    packets.sort_by_key(|packet| packet.1);
    let buffered = |millis, delay| {
        let buffer = crate::JitterBuffer::Fixed(Span::from_millis(millis));
        call(
            FlowConfig { buffer, delay: Span::from_millis(delay), ..FlowConfig::default() },
            &packets,
        )
    };
    let (short, long) = (buffered(60, 0), buffered(80, 0));
    assert_eq!((short.late, long.late), (Some(10), Some(0)));
    assert!(short.mos < long.mos);
    assert!(buffered(80, 300).mos < long.mos);
    assert_eq!((short.loss_periods, short.cumulative_lost), (0, 0));
}

#[test]
fn signalling_defines_dynamic_payload_types() {
    let sip = b"INVITE sip:b@example.com SIP/2.0\r\n\r\nv=0\r\nc=IN IP4 10.0.0.2\r\n\
        m=audio 5004 RTP/AVP 97 101\r\na=rtpmap:97 PCMA/8000\r\na=rtpmap:101 telephone-event/8000\r\n";
    let mut monitor = monitor();
    observe(&mut monitor, &udp(([10, 0, 0, 2], 5060, [10, 0, 0, 9], 5060), sip), at(0));
    observe(&mut monitor, &udp(ENDS, &voice(7, 97, 0)), at(1));
    let rtp = reports(&mut monitor)[0].rtp.clone().expect("RTP, announced");
    assert_eq!((rtp.codec.as_deref(), rtp.clock_rate_hz), (Some("PCMA"), Some(8000)));
    for number in 1..50 {
        let payload_type = if number % 10 > 7 { 101 } else { 97 };
        let packet = udp(ENDS, &voice(7, payload_type, number));
        observe(&mut monitor, &packet, at(1 + 20 * i64::from(number)));
    }
    let rtp = reports(&mut monitor)[0].rtp.clone().expect("RTP");
    assert_eq!((rtp.payload_type, rtp.codec.as_deref()), (97, Some("PCMA")));
    assert!(rtp.jitter_ms == Some(0.0) && rtp.mos > Some(4.0));
}

/// The timestamps jump by `jump` at packet 100, whose marker is set if `marked`; the numbers continue.
fn call_with_jump(jump: i64, marked: bool) -> RtpReport {
    let mut monitor = monitor();
    for number in 0..1000u16 {
        let mut packet = voice(7, 0, number);
        if number >= 100 {
            let timestamp = u32::from(number) * 160;
            let jumped = timestamp.wrapping_add_signed(i32::try_from(jump * 8).unwrap());
            packet[4..8].copy_from_slice(&jumped.to_be_bytes());
        }
        packet[1] |= u8::from(marked && number == 100) << 7;
        observe(&mut monitor, &udp(ENDS, &packet), at(20 * i64::from(number)));
    }
    reports(&mut monitor)[0].rtp.clone().expect("RTP")
}

#[test]
fn jump_of_the_timestamps_makes_no_packet_late() {
    for (jump, marked) in [(-6000, false), (6000, false), (-300, true), (300, true)] {
        let rtp = call_with_jump(jump, marked);
        assert_eq!((rtp.late, rtp.cumulative_lost), (Some(0), 0), "{jump} ms");
        assert!(rtp.mos > Some(4.3), "{jump} ms: {:?}", rtp.mos);
    }
    assert!(call_with_jump(-300, false).late > Some(10), "a delay within a talk spurt");
}

#[test]
fn unannounced_telephone_events_do_not_hide_the_codec() {
    let mut monitor = monitor();
    for number in 0..200u16 {
        let is_event = (100..110).contains(&number);
        let mut packet = voice(7, if is_event { 101 } else { 0 }, number);
        packet.truncate(if is_event { 16 } else { 172 });
        observe(&mut monitor, &udp(ENDS, &packet), at(20 * i64::from(number)));
        let rtp = reports(&mut monitor)[0].rtp.clone();
        let codec = rtp.as_ref().map(|rtp| rtp.codec.as_deref());
        assert!(codec.is_none_or(|codec| codec == Some("PCMU")), "{number}: {rtp:?}");
    }
}

#[test]
fn seconds_without_packets_have_no_jitter() {
    let late = |number: u16| (number, 2000 + 20 * i64::from(number));
    let packets = [on_time(50), (50..60).map(late).collect()].concat();
    let jitter = call(FlowConfig::default(), &packets).jitter_ms_over_time;
    assert_eq!(jitter.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false, true]);
    assert_eq!(jitter[0], Some(0.0));
}

#[test]
fn unknown_mos_has_a_reason() {
    let of = |payload_type, lost: u16| {
        let mut monitor = monitor();
        for number in (0..100u16).filter(|it| *it != lost) {
            let packet = udp(ENDS, &voice(7, payload_type, number));
            observe(&mut monitor, &packet, at(20 * i64::from(number)));
        }
        let rtp = reports(&mut monitor)[0].rtp.clone().expect("RTP");
        assert_eq!(rtp.mos.is_none(), rtp.mos_unknown.is_some());
        assert_eq!(rtp.late.is_none(), rtp.clock_rate_hz.is_none());
        rtp.mos_unknown
    };
    let [none, gsm, opus, l16] = [of(3, 100), of(3, 50), of(111, 100), of(11, 100)];
    assert_eq!((none, gsm), (None, Some(UnknownMos::NoLossRobustness)));
    assert_eq!((opus, l16), (Some(UnknownMos::UnknownPayloadType), Some(UnknownMos::UnratedCodec)));
}

/// Seven MPEG packets, one such packet each 10 ms.
fn transport_stream(number: u16) -> Vec<u8> {
    let head = [[0x80, 33], number.to_be_bytes()];
    let timestamp = (u32::from(number) * 900).to_be_bytes();
    [head.as_flattened(), &timestamp, &[0, 0, 0, 9], &[0x47; 1316]].concat()
}

#[test]
fn a_video_has_a_media_delivery_index() {
    let mut monitor = monitor();
    // One packet in a hundred is lost.
    for number in (0..1000u16).filter(|number| number % 100 != 50) {
        let packet = udp(ENDS, &transport_stream(number));
        observe(&mut monitor, &packet, at(10 * i64::from(number)));
    }
    let rtp = reports(&mut monitor)[0].rtp.clone().expect("RTP");
    let index = rtp.media_delivery.expect("a video");
    assert!((index.media_rate_bps / 1_052_800.0 - 1.0).abs() < 0.02, "{index:?}");
    assert_eq!((index.loss_rate, index.max_loss_rate), (7.0, 7.0));
    let delay = index.max_delay_factor_ms.expect("whole intervals");
    assert!((19.0..25.0).contains(&delay), "the packet and the one lost before it: {index:?}");
    assert_eq!((rtp.mos, rtp.mos_unknown, rtp.late), (None, None, None));
}

#[test]
fn first_and_incomplete_last_second_of_a_video_are_in_its_max_loss_rate() {
    for lost in [28, 1040u16] {
        let mut monitor = monitor();
        for number in (0..1050u16).filter(|number| ![lost, lost + 1].contains(number)) {
            let packet = udp(ENDS, &transport_stream(number));
            observe(&mut monitor, &packet, at(10 * i64::from(number)));
        }
        let index = reports(&mut monitor)[0].rtp.as_ref().and_then(|rtp| rtp.media_delivery);
        let index = index.expect("a video");
        assert_eq!((index.loss_rate, index.max_loss_rate), (0.0, 14.0), "{lost}");
    }
}

#[test]
fn burst_ratio_of_a_video_has_no_late_packets() {
    let mut monitor = monitor();
    for number in (0..1000u16).filter(|number| number % 100 != 50) {
        // Half a second of packets comes at once.
        let time = 10 * if (300..350).contains(&number) { 350 } else { i64::from(number) };
        observe(&mut monitor, &udp(ENDS, &transport_stream(number)), at(time));
    }
    let rtp = reports(&mut monitor)[0].rtp.clone().expect("RTP");
    assert_eq!((rtp.late, rtp.expected, rtp.loss_periods), (None, 1000, 10));
    assert!((rtp.burst_ratio - 0.99).abs() < 1e-12, "single losses of 1 %: {}", rtp.burst_ratio);
}

#[test]
fn restart_of_the_sender_keeps_the_max_values_of_a_video() {
    let mut monitor = monitor();
    for number in (0..1000u16).filter(|number| number % 100 != 50) {
        let packet = udp(ENDS, &transport_stream(number));
        observe(&mut monitor, &packet, at(10 * i64::from(number)));
    }
    let of = |monitor: &mut FlowMonitor| {
        let rtp = reports(monitor)[0].rtp.clone().expect("RTP");
        (rtp.restarts, rtp.media_delivery.expect("a video"))
    };
    let (_, before) = of(&mut monitor);
    // Without losses, for 0.2 and for 3 s.
    for numbers in [0..20, 20..300u16] {
        for number in numbers {
            let packet = udp(ENDS, &transport_stream(30_000 + number));
            observe(&mut monitor, &packet, at(10_000 + 10 * i64::from(number)));
        }
        let (restarts, found) = of(&mut monitor);
        assert_eq!((restarts, found.max_loss_rate), (1, 7.0));
        assert_eq!(found.max_delay_factor_ms, before.max_delay_factor_ms);
        assert!((found.media_rate_bps / before.media_rate_bps - 1.0).abs() < 0.02, "{found:?}");
    }
    assert_eq!(of(&mut monitor).1.loss_rate, 0.0);
}

#[test]
fn codec_of_an_unannounced_payload_type_can_be_stated() {
    let call = |entry: Option<&str>| {
        let entries = entry.map(|it| it.parse().expect("an entry"));
        let rtp_map = entries.into_iter().collect();
        let mut monitor = FlowMonitor::new(FlowConfig { rtp_map, ..FlowConfig::default() });
        for number in 0..20 {
            observe(&mut monitor, &udp(ENDS, &voice(7, 97, number)), at(20 * i64::from(number)));
        }
        let rtp = reports(&mut monitor)[0].rtp.clone().expect("RTP");
        (rtp.codec, rtp.mos.is_some())
    };
    assert_eq!(call(None), (None, false));
    assert_eq!(call(Some("97=PCMA/8000")), (Some("PCMA".to_owned()), true));
    assert_eq!(call(Some("96=PCMA/8000")), (None, false));
}

#[test]
fn stated_codec_rates_streams_of_its_encoding() {
    let call = |entry: &str, codec: Option<Codec>| {
        let rtp_map = [entry].into_iter().map(|it| it.parse().expect("an entry")).collect();
        let codecs = codec.into_iter().collect();
        let config = FlowConfig { rtp_map, codecs, ..FlowConfig::default() };
        let mut monitor = FlowMonitor::new(config);
        for number in 0..20 {
            observe(&mut monitor, &udp(ENDS, &voice(7, 97, number)), at(20 * i64::from(number)));
        }
        let rtp = reports(&mut monitor)[0].rtp.clone().expect("RTP");
        (rtp.codec, rtp.mos)
    };
    let evs = Some(Codec::EvsSwb2440);
    assert_eq!(call("97=EVS/16000", None), (Some("EVS".to_owned()), None));
    let (name, rated) = call("97=EVS/16000", evs);
    assert_eq!(name.as_deref(), Some("EVS"));
    assert_ne!(rated, None);
    assert_eq!(call("97=PCMA/8000", None).1, call("97=PCMA/8000", evs).1);
    let g711 = Some(Codec::G711);
    assert_ne!(call("97=PCMA/8000", g711).1, None);
    // The clock rate of an unknown encoding is unknown.
    assert_eq!(call("96=EVS/16000", evs), (None, None));
}

/// A packet of 20 ms of AMR-WB in this mode, octet-aligned.
fn amr_wb(number: u16, mode: u8) -> Vec<u8> {
    const BYTES: [usize; 10] = [17, 23, 32, 36, 40, 46, 50, 58, 60, 5];
    let mut packet = voice(7, 97, number);
    packet[4..8].copy_from_slice(&(u32::from(number) * 320).to_be_bytes());
    packet.truncate(12);
    packet.extend([0xf0, mode << 3 | 4]);
    packet.resize(14 + BYTES[usize::from(mode)], 0xff);
    packet
}

/// A call by the packets' bytes, with these entries of the RTP map.
fn call_of(entries: &[&str], packets: impl IntoIterator<Item = (u16, Vec<u8>)>) -> RtpReport {
    let rtp_map = entries.iter().map(|it| it.parse().expect("an entry")).collect();
    let mut monitor = FlowMonitor::new(FlowConfig { rtp_map, ..FlowConfig::default() });
    for (number, packet) in packets {
        observe(&mut monitor, &udp(ENDS, &packet), at(20 * i64::from(number)));
    }
    reports(&mut monitor)[0].rtp.clone().expect("RTP")
}

#[test]
fn amr_wb_is_rated_by_the_modes_of_its_packets() {
    let call = |mode: fn(u16) -> u8| {
        call_of(&["97=AMR-WB/16000"], (0..400).map(|number| (number, amr_wb(number, mode(number)))))
    };
    let codecs = |rtp: &RtpReport| rtp.rated_codecs.as_ref().map(ToString::to_string);
    // Ie,wb is 13 for 12.65 kbit/s, 41 for 6.60 kbit/s; type 9 is comfort noise. A buffer of 60 ms has no impairment.
    let constant = call(|_| 2);
    assert_eq!((constant.r_factor, codecs(&constant)), (Some(116.0), Some("amr-wb-12.65".into())));
    assert_eq!(constant.r_scale, Some(Scale::Wideband));
    let changing = call(|number| if number < 100 { 0 } else { 2 });
    assert_eq!(changing.r_factor, Some(109.0));
    assert_eq!(codecs(&changing).unwrap(), "amr-wb-12.65 (75 %), amr-wb-6.6 (25 %)");
    let over_time = |rtp: &RtpReport| rtp.mos_over_time.clone();
    assert_eq!(over_time(&changing)[7], over_time(&constant)[0]);
    assert!(over_time(&changing)[0] < over_time(&changing)[7]);
    let silent = call(|number| if number % 10 > 2 { 9 } else { 2 });
    assert_eq!((silent.r_factor, codecs(&silent)), (constant.r_factor, codecs(&constant)));
    let noise = call(|_| 9);
    assert_eq!((noise.mos, noise.mos_unknown), (None, Some(UnknownMos::UnknownMode)));
}

#[test]
fn stream_that_changes_its_codec_is_rated_by_parts() {
    let change = |entries: &[&str], to: u8| {
        let packet = move |number| voice(7, if number < 50 { 0 } else { to }, number);
        call_of(entries, (0..200).map(|number| (number, packet(number))))
    };
    let [pcmu, gsm] = [0, 3].map(|to| change(&[], to));
    let codecs = gsm.rated_codecs.clone().expect("rated").to_string();
    assert_eq!(codecs, "gsm-fr (75 %), g711-plc (25 %)");
    // Ie of GSM is 20.
    let difference = pcmu.r_factor.unwrap() - gsm.r_factor.unwrap();
    assert!((difference - 15.0).abs() < 1e-9, "{difference}");
    let unrated = change(&["111=opus/48000"], 111);
    assert_eq!(unrated.mos_unknown, Some(UnknownMos::UnratedCodec));
    assert_eq!(change(&[], 111).mos_unknown, Some(UnknownMos::UnknownPayloadType));
    let scales = call_of(
        &["97=AMR-WB/16000"],
        (0..100).map(|number| {
            (number, if number < 50 { voice(7, 0, number) } else { amr_wb(number, 2) })
        }),
    );
    assert_eq!((scales.mos, scales.mos_unknown), (None, Some(UnknownMos::SeveralScales)));
}

#[test]
fn one_packet_of_another_scale_leaves_the_rating() {
    let packet = |number| {
        let mut packet = amr_wb(number, 2);
        if number == 250 {
            packet[1] = 0; // PCMU
        }
        packet
    };
    let entries = &["97=AMR-WB/16000"];
    let call = call_of(entries, (0..400).map(|number| (number, packet(number))));
    assert_eq!((call.mos_unknown, call.r_scale), (None, Some(Scale::Wideband)));
}

#[test]
fn packets_that_were_sent_twice_count_once_in_the_rated_codecs() {
    let packets = (0..400).flat_map(|number| {
        let packet = amr_wb(number, if number < 100 { 0 } else { 2 });
        let times = if number < 100 { 2 } else { 1 };
        std::iter::repeat_n((number, packet), times)
    });
    let call = call_of(&["97=AMR-WB/16000"], packets);
    let codecs = call.rated_codecs.expect("rated").to_string();
    assert_eq!(codecs, "amr-wb-12.65 (75 %), amr-wb-6.6 (25 %)");
}

#[test]
fn packets_before_the_announcement_count_as_those_after_it() {
    let mut monitor = monitor();
    for number in 0..50 {
        observe(&mut monitor, &udp(ENDS, &voice(7, 97, number)), at(20 * i64::from(number)));
    }
    let sip = b"SIP/2.0 200 OK\r\n\r\nv=0\r\nc=IN IP4 10.0.0.2\r\n\
        m=audio 5004 RTP/AVP 97\r\na=rtpmap:97 PCMA/8000\r\n";
    observe(&mut monitor, &udp(([10, 0, 0, 2], 5060, [10, 0, 0, 9], 5060), sip), at(1000));
    for number in 50..100 {
        observe(&mut monitor, &udp(ENDS, &voice(7, 97, number)), at(20 * i64::from(number)));
    }
    let found = reports(&mut monitor);
    let rtp = found.iter().find_map(|it| it.rtp.clone()).expect("RTP");
    assert!(rtp.mos > Some(4.3), "{:?}", rtp.mos_unknown);
}

#[test]
fn packets_without_media_and_rare_other_payload_types_do_not_prevent_the_rating() {
    let call = |types: fn(u16) -> u8| {
        let packet = |number| {
            let mut packet = voice(7, types(number), number);
            packet.truncate(if types(number) == 101 { 16 } else { 172 });
            (number, packet)
        };
        call_of(&[], (0..400).map(packet))
    };
    let rated = |types: fn(u16) -> u8| call(types).mos.is_some();
    assert!(rated(|number| if number < 20 { 13 } else { 0 }), "comfort noise first");
    assert!(rated(|number| if number < 20 { 101 } else { 0 }), "an event first");
    assert!(rated(|number| if number % 200 == 7 { 111 } else { 0 }), "1 in 200 is unknown");
    assert!(!rated(|number| if number % 50 == 7 { 111 } else { 0 }), "1 in 50 is unknown");
    assert_eq!(call(|_| 13).mos_unknown, Some(UnknownMos::NoMedia));
}
