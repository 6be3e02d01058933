//! The capture and the network lose packets at the same time; the true losses of both are known.

mod accuracy;
mod simulation;

use super::*;
use crate::CaptureLoss;

const LOST: CaptureLoss = CaptureLoss { from: at(1990), until: at(2990), packets: 60 };

/// A call in which the capture loses 50 packets within a second, and the network loses one long after. The capture
/// reports its loss before the packet `reported_before`.
fn call(reported_before: u16) -> FlowMonitor {
    let mut monitor = monitor();
    for number in (0..300u16).filter(|it| !(100..150).contains(it) && *it != 200) {
        if number == reported_before {
            monitor.missed(LOST);
        }
        observe(&mut monitor, &udp(ENDS, &voice(7, 0, number)), at(20 * i64::from(number)));
    }
    monitor
}

#[test]
fn capture_loss_changes_neither_network_loss_nor_mos() {
    for reported_before in [101, 150, 151, 230, 299] {
        let mut monitor = call(reported_before.max(150));
        let [report] = &reports(&mut monitor)[..] else { panic!("one flow") };
        let rtp = report.rtp.as_ref().expect("RTP");
        assert_eq!((report.lost, rtp.capture_lost, rtp.expected), (Some(1), 50, 300));
        assert_eq!((rtp.loss_periods, rtp.cumulative_lost), (1, 51));
        assert!(rtp.mos > Some(4.3), "{rtp:?}");
        let lossy: Vec<_> = rtp.loss_over_time.iter().map(|ratio| *ratio > Some(0.0)).collect();
        assert_eq!(
            lossy,
            [false, false, false, false, true, false],
            "reported before {reported_before}"
        );
    }
}

#[test]
fn late_capture_loss_corrects_earlier_reports() {
    let mut monitor = call(u16::MAX);
    assert_eq!(reports(&mut monitor)[0].lost, Some(51));
    monitor.missed(LOST);
    assert_eq!((reports(&mut monitor)[0].lost, monitor.capture_missed()), (Some(1), 60));
}

#[test]
fn outage_of_the_capture_is_no_network_loss() {
    let mut monitor = monitor();
    // The capture loses 3000 packets within a minute, and the network one before and one after it.
    for number in (0..4000u16).filter(|it| !(500..3500).contains(it) && ![200, 3700].contains(it)) {
        if number == 3500 {
            let (from, until) = (at(9990), at(69_990));
            monitor.missed(CaptureLoss { from, until, packets: 3000 });
        }
        observe(&mut monitor, &udp(ENDS, &voice(7, 0, number)), at(20 * i64::from(number)));
    }
    let [report] = &reports(&mut monitor)[..] else { panic!("one flow") };
    let rtp = report.rtp.as_ref().expect("RTP");
    assert_eq!((report.lost, rtp.capture_lost, rtp.expected), (Some(2), 3000, 4000));
    assert_eq!((rtp.loss_periods, rtp.restarts), (2, 0));
}

#[test]
fn late_packet_is_not_lost() {
    let mut monitor = monitor();
    let send = |monitor: &mut FlowMonitor, numbers: &[u16]| {
        for number in numbers {
            observe(monitor, &udp(ENDS, &voice(7, 0, *number)), at(20 * i64::from(*number)));
        }
    };
    send(&mut monitor, &(0..50).chain(55..60).collect::<Vec<_>>());
    monitor.missed(CaptureLoss { from: at(1000), until: at(1090), packets: 5 });
    assert_eq!(reports(&mut monitor)[0].lost, Some(0));
    send(&mut monitor, &[52, 60]);
    let report = reports(&mut monitor).remove(0);
    let by_capture = report.rtp.map(|rtp| (rtp.capture_lost, rtp.loss_periods));
    assert_eq!((report.lost, by_capture), (Some(0), Some((4, 0))));
}

#[test]
fn packets_due_outside_the_interval_are_network_loss() {
    let mut monitor = monitor();
    for number in (0..100u16).filter(|it| !(50..53).contains(it)) {
        observe(&mut monitor, &udp(ENDS, &voice(7, 0, number)), at(20 * i64::from(number)));
    }
    // The capture also lost other packets.
    monitor.missed(CaptureLoss { from: at(1015), until: at(1025), packets: 1000 });
    let report = reports(&mut monitor).remove(0);
    let by_capture = report.rtp.map(|rtp| (rtp.capture_lost, rtp.loss_periods));
    assert_eq!((report.lost, by_capture), (Some(2), Some((1, 2))));
}

#[test]
fn removed_intervals_keep_their_packets() {
    let (mut monitor, mut lost) = (monitor(), 0);
    for number in 0..6000u16 {
        let time = at(20 * i64::from(number));
        if number > 50 && number % 10 == 0 {
            lost += 1;
            monitor.missed(CaptureLoss { from: time, until: time, packets: 1 });
        } else if number % 55 != 54 {
            observe(&mut monitor, &udp(ENDS, &voice(7, 0, number)), time);
        }
    }
    let report = reports(&mut monitor).remove(0);
    let by_network = (0..6000).filter(|it| it % 55 == 54 && (*it <= 50 || it % 10 != 0)).count();
    assert_eq!(report.lost, Some(by_network as u64));
    assert_eq!(report.rtp.map(|rtp| rtp.capture_lost), Some(lost));
}

/// Media delivery where the network loses a packet every second, and the capture `by_capture` packets, reported when
/// the packet `reported_at` comes. A report is requested before that.
fn delivery(by_capture: std::ops::Range<u16>, reported_at: u16) -> VideoReport {
    let mut monitor = monitor();
    for number in 0..1050u16 {
        if number == reported_at {
            reports(&mut monitor);
            let [from, until] =
                [by_capture.start, by_capture.end - 1].map(|it| at(10 * i64::from(it)));
            monitor.missed(CaptureLoss { from, until, packets: by_capture.len() as u64 });
        }
        if number % 100 != 50 && !by_capture.contains(&number) {
            observe(
                &mut monitor,
                &udp(ENDS, &transport_stream(number)),
                at(10 * i64::from(number)),
            );
        }
    }
    reports(&mut monitor)[0].rtp.as_ref().unwrap().media_delivery.unwrap()
}

#[test]
fn capture_loss_does_not_change_the_media_delivery_index() {
    let truth = delivery(0..0, u16::MAX);
    assert_eq!((truth.loss_rate, truth.max_loss_rate), (7.0, 7.0));
    // At once, seconds later, and at the very end.
    for reported_at in [530, 531, 800, 1049] {
        let found = delivery(510..530, reported_at);
        assert_eq!((found.loss_rate, found.max_loss_rate), (7.0, 7.0), "reported at {reported_at}");
        let [one, other] = [found, truth].map(|it| it.max_delay_factor_ms.unwrap());
        assert!((one - other).abs() < 0.5, "reported at {reported_at}: {one} for {other}");
        assert!((found.media_rate_bps / truth.media_rate_bps - 1.0).abs() < 1e-3, "{found:?}");
    }
}

#[test]
fn second_with_capture_loss_has_no_delay_factor() {
    // The newest whole second ends at 10 s.
    assert!(delivery(0..0, u16::MAX).delay_factor_ms.is_some());
    assert_eq!(delivery(960..970, 1049).delay_factor_ms, None);
    assert_eq!(delivery(960..970, 1049).loss_rate, 7.0);
}

#[test]
fn report_has_the_packets_that_the_capture_lost_during_the_flow() {
    let mut monitor = monitor();
    let other = |port| udp(([10, 0, 0, 9], port, [10, 0, 0, 2], 9), b"no RTP");
    let lose = |monitor: &mut FlowMonitor, packets, second: i64| {
        let (from, until) = (at(1000 * second), at(1000 * second + 500));
        monitor.missed(CaptureLoss { packets, from, until });
    };
    lose(&mut monitor, 3, 0);
    observe(&mut monitor, &other(1), at(1000));
    lose(&mut monitor, 5, 2);
    observe(&mut monitor, &other(2), at(3000));
    observe(&mut monitor, &other(1), at(4000));
    lose(&mut monitor, 7, 5);
    // Reported late.
    lose(&mut monitor, 11, 3);
    let mut missed: Vec<_> =
        reports(&mut monitor).iter().map(|it| (it.sport, it.capture_missed)).collect();
    missed.sort_unstable();
    assert_eq!(missed, [(1, Some(16)), (2, Some(11))]);
}
