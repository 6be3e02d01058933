//! Media delivery index of videos over RTP.

use super::*;

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
