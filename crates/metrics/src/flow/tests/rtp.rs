//! RTP streams: their recognition, lost packets, late packets and restarts.

use super::*;

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
fn seconds_without_packets_have_no_jitter() {
    let late = |number: u16| (number, 2000 + 20 * i64::from(number));
    let packets = [on_time(50), (50..60).map(late).collect()].concat();
    let jitter = call(FlowConfig::default(), &packets).jitter_ms_over_time;
    assert_eq!(jitter.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, false, true]);
    assert_eq!(jitter[0], Some(0.0));
}
