//! Codecs of RTP streams, and the rating by them.

use super::*;
use crate::emodel::{Codec, Scale};

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
