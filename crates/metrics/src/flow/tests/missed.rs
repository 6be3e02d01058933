//! The capture and the network lose packets at the same time; the true losses of both are known.

use proptest::prelude::*;

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

/// A packet of an MPEG transport stream with one every 10 ms.
fn video(number: u16) -> Vec<u8> {
    let head = [[0x80, 33], number.to_be_bytes()];
    let timestamp = (u32::from(number) * 900).to_be_bytes();
    udp(ENDS, &[head.as_flattened(), &timestamp, &[0, 0, 0, 9], &[0x47; 1316]].concat())
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
            observe(&mut monitor, &video(number), at(10 * i64::from(number)));
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

/// Pseudo-random numbers (the generator of D. Knuth's MMIX).
struct Random(u64);

impl Random {
    /// A number below the bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A packet in flight.
#[derive(Clone, Copy)]
struct Sent {
    stream: u16,
    number: u16,
    micros: i64,
    by_network: bool,
    by_capture: bool,
}

const PACKETS: u16 = 1000;

/// Stream number of packets outside streams.
const UNNUMBERED: u16 = u16::MAX;

/// Packets of some streams, every 20 ms each and up to a millisecond late, in the order of arrival; the network loses
/// `percent` of a hundred.
fn sent(streams: u16, percent: u64, random: &mut Random) -> Vec<Sent> {
    let mut sent = Vec::new();
    for stream in 0..streams {
        let phase = random.below(20_000);
        for number in 0..PACKETS {
            let micros = u64::from(number) * 20_000 + phase + random.below(1000);
            let by_network = (50..PACKETS - 10).contains(&number) && random.below(100) < percent;
            let micros = i64::try_from(micros).unwrap();
            sent.push(Sent { stream, number, micros, by_network, by_capture: false });
        }
    }
    sent.sort_by_key(|it| it.micros);
    sent
}

/// Adds packets outside streams, one every `every` milliseconds and up to one more, for as long as there are streams:
/// the end of a flow during a capture loss would be undetectable.
fn add_unnumbered(sent: &mut Vec<Sent>, every: u16, random: &mut Random) {
    for number in 0..PACKETS * 20 / every {
        let micros = u64::from(number) * u64::from(every) * 1000 + random.below(1000);
        let micros = i64::try_from(micros).unwrap();
        let none =
            Sent { stream: UNNUMBERED, number, micros, by_network: false, by_capture: false };
        sent.push(none);
    }
    sent.sort_by_key(|it| it.micros);
}

fn micros(micros: i64) -> Time<Utc> {
    Time::from_nanos(micros * 1000)
}

/// Loses the packets of these intervals in the capture, and `others` packets outside the streams.
fn capture(sent: &mut [Sent], intervals: &[(i64, i64)], others: u64) -> Vec<CaptureLoss> {
    let lose = |(from, until): &(i64, i64)| {
        let within = |it: &&mut Sent| (*from..=*until).contains(&it.micros) && !it.by_network;
        let lost = sent.iter_mut().filter(within).map(|it| it.by_capture = true).count();
        CaptureLoss { from: micros(*from), until: micros(*until), packets: lost as u64 + others }
    };
    intervals.iter().map(lose).collect()
}

/// Capture losses in these intervals, as reported by a capture that reads its counters every 10 ms and dates losses up
/// to 10 ms early.
fn read_periodically(sent: &[Sent], intervals: &[(i64, i64)]) -> Vec<CaptureLoss> {
    const READ_EVERY: i64 = 10_000;
    let lost_before = |end: i64| {
        let lost = sent.iter().filter(|it| it.by_capture && it.micros < end);
        lost.count() as u64
    };
    let readings =
        intervals.iter().flat_map(|(from, until)| from / READ_EVERY..=until / READ_EVERY);
    let missed = readings.map(|nth| {
        let (begin, end) = (nth * READ_EVERY, (nth + 1) * READ_EVERY);
        let packets = lost_before(end) - lost_before(begin);
        CaptureLoss { from: micros(begin - READ_EVERY), until: micros(end), packets }
    });
    missed.filter(|it| it.packets > 0).collect()
}

/// Reports of the streams, in their order.
fn observed(sent: &[Sent], missed: &[CaptureLoss], report_delay: i64) -> Vec<FlowReport> {
    let (mut monitor, mut reported) = (monitor(), 0);
    for it in sent {
        while missed.get(reported).is_some_and(|next| next.until < micros(it.micros - report_delay))
        {
            monitor.missed(missed[reported]);
            reported += 1;
        }
        if !it.by_network && !it.by_capture {
            let packet = match it.stream {
                UNNUMBERED => udp(ENDS, &[7; 30]),
                stream => {
                    let ends = (ENDS.0, 4002 + 2 * stream, ENDS.2, 5004);
                    udp(ends, &voice(stream.into(), 0, it.number))
                }
            };
            observe(&mut monitor, &packet, micros(it.micros));
        }
    }
    let mut reports: Vec<_> = monitor.flows().filter(|report| report.rtp.is_some()).collect();
    reports.sort_by_key(|report| report.sport);
    reports
}

/// Reports without any capture loss.
fn truth(sent: &[Sent]) -> Vec<FlowReport> {
    let sent: Vec<_> = sent.iter().map(|it| Sent { by_capture: false, ..*it }).collect();
    observed(&sent, &[], 0)
}

/// Bounds of the MOS.
fn bounds(rtp: &RtpReport) -> std::ops::RangeInclusive<f64> {
    // Floating-point sums in another order.
    rtp.mos_lowest.unwrap() - 1e-9..=rtp.mos_highest.unwrap() + 1e-9
}

/// Asserts that the true values of a stream are within the reported bounds.
fn check_bounds(found: &FlowReport, truth: &FlowReport) {
    let off = found.lost.unwrap().abs_diff(truth.lost.unwrap());
    let (found, truth) = (found.rtp.as_ref().unwrap(), truth.rtp.as_ref().unwrap());
    let uncertain = found.lost_uncertainty;
    assert!(off <= uncertain, "{off} with {uncertain} uncertain");
    let bounds = bounds(found);
    for mos in [found.mos, truth.mos].map(Option::unwrap) {
        assert!(bounds.contains(&mos), "{mos} in {bounds:?}");
    }
}

fn lost(reports: &[FlowReport]) -> Vec<u64> {
    reports.iter().filter_map(|report| report.lost).collect()
}

/// Disjoint intervals, from the second second on.
fn intervals(random: &mut Random, longest: u64) -> Vec<(i64, i64)> {
    let mut begin = 1_100_000;
    (0..4)
        .map(|_| {
            begin += 100_000 + random.below(3_000_000);
            let end = begin + random.below(longest * 1000);
            let interval = (i64::try_from(begin).unwrap(), i64::try_from(end).unwrap());
            begin = end;
            interval
        })
        .collect()
}

/// Includes cases where the network loses several in a hundred during the capture loss.
#[test]
fn mos_is_near_the_truth_despite_capture_loss() {
    let (mut streams, mut certain, mut max_error) = (0, 0, 0.0_f64);
    for seed in 0..300 {
        let mut random = Random(seed);
        let mut sent = sent(1 + u16::try_from(seed % 7).unwrap(), seed % 8, &mut random);
        let intervals = intervals(&mut random, 1 + seed % 199);
        let missed = capture(&mut sent, &intervals, 0);
        for (found, truth) in observed(&sent, &missed, 0).iter().zip(&truth(&sent)) {
            let (found, truth) = (found.rtp.as_ref().unwrap(), truth.rtp.as_ref().unwrap());
            streams += 1;
            certain += u32::from(found.mos_highest.unwrap() - found.mos_lowest.unwrap() < 0.05);
            max_error = max_error.max((found.mos.unwrap() - truth.mos.unwrap()).abs());
        }
    }
    assert!(4 * certain > 3 * streams, "{certain} of {streams}");
    assert!(max_error < 0.05, "{max_error}");
}

/// Packets of some streams, and the capture losses as reported with periodically read counters. The network loses
/// packets near the intervals only if `lost_by_both`.
fn with_rough_times(
    streams: u16,
    percent: u64,
    longest: u64,
    lost_by_both: bool,
    random: &mut Random,
) -> (Vec<Sent>, Vec<CaptureLoss>) {
    let mut sent = sent(streams, percent, random);
    let intervals = intervals(random, longest);
    for it in &mut sent {
        let near =
            |(from, until): &(i64, i64)| (from - 40_000..until + 40_000).contains(&it.micros);
        it.by_network &= lost_by_both || !intervals.iter().any(near);
    }
    capture(&mut sent, &intervals, 0);
    let missed = read_periodically(&sent, &intervals);
    (sent, missed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Exact for all streams together, and within the stated bounds for each. The bounds of the MOS differ by less
    /// than 0.05 where at most one packet is uncertain.
    #[test]
    fn total_network_loss_is_exact(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        report_delay in 0..200_000i64,
    ) {
        let mut random = Random(seed);
        let mut sent = sent(streams, percent, &mut random);
        let intervals = intervals(&mut random, longest);
        let missed = capture(&mut sent, &intervals, 0);
        let (found, truth) = (observed(&sent, &missed, report_delay), truth(&sent));
        prop_assert_eq!(lost(&found).iter().sum::<u64>(), lost(&truth).iter().sum::<u64>());
        for (found, truth) in found.iter().zip(&truth) {
            check_bounds(found, truth);
            let found = found.rtp.as_ref().unwrap();
            let (uncertain, bounds) = (found.lost_uncertainty, bounds(found));
            let width = bounds.end() - bounds.start();
            prop_assert!(uncertain > 1 || width < 0.05, "{:?} with {} uncertain", bounds, uncertain);
        }
    }

    /// Exact for all streams together; exact for each, too, if the network lost no packet near the intervals.
    #[test]
    fn bounds_hold_with_roughly_dated_losses(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        report_delay in 0..200_000i64, lost_by_both: bool,
    ) {
        let mut random = Random(seed);
        let (sent, missed) = with_rough_times(streams, percent, longest, lost_by_both, &mut random);
        let (found, truth) = (observed(&sent, &missed, report_delay), truth(&sent));
        prop_assert_eq!(lost(&found).iter().sum::<u64>(), lost(&truth).iter().sum::<u64>());
        for (found, truth) in found.iter().zip(&truth) {
            check_bounds(found, truth);
            let rtp = found.rtp.as_ref().unwrap();
            prop_assert!(lost_by_both || rtp.mos_lowest == rtp.mos_highest, "{:?}", found);
        }
    }

    #[test]
    fn bounds_hold_with_other_traffic(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        report_delay in 0..200_000i64, every in 2..50u16,
    ) {
        let mut random = Random(seed);
        let mut sent = sent(streams, percent, &mut random);
        add_unnumbered(&mut sent, every, &mut random);
        let intervals = intervals(&mut random, longest);
        let missed = capture(&mut sent, &intervals, 0);
        let (found, truth) = (observed(&sent, &missed, report_delay), truth(&sent));
        prop_assert_eq!(found.len(), usize::from(streams));
        found.iter().zip(&truth).for_each(|(found, truth)| check_bounds(found, truth));
    }

    /// Includes cases where the capture lost many packets outside RTP, if the network lost none near the intervals.
    #[test]
    fn network_loss_of_each_stream_is_exact(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        report_delay in 0..200_000i64, others in 0..1000u64,
    ) {
        let mut random = Random(seed);
        let mut sent = sent(streams, percent, &mut random);
        let intervals = intervals(&mut random, longest);
        for it in &mut sent {
            let near = |(from, until): &(i64, i64)| (from - 8000..until + 8000).contains(&it.micros);
            it.by_network &= !intervals.iter().any(near);
        }
        let missed = capture(&mut sent, &intervals, others);
        let (found, truth) = (observed(&sent, &missed, report_delay), truth(&sent));
        prop_assert_eq!(lost(&found), lost(&truth));
        for (found, truth) in found.iter().zip(&truth) {
            let (found, truth) = (found.rtp.as_ref().unwrap(), truth.rtp.as_ref().unwrap());
            prop_assert_eq!(found.mos, truth.mos);
            prop_assert!(bounds(found).contains(&truth.mos.unwrap()));
            prop_assert!(others > 0 || found.mos_lowest == found.mos_highest, "{:?}", found);
        }
    }
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
