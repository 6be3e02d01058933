//! The capture and the network lose packets at the same time, and the truth of both is known.

use proptest::prelude::*;

use super::*;
use crate::CaptureLoss;

const LOST: CaptureLoss = CaptureLoss { from: at(1990), until: at(2990), packets: 60 };

/// A call whose capture lost 50 packets within a second, and whose network lost one that was due long
/// after. The capture tells of it before this packet.
fn call(told_before: u16) -> FlowMonitor {
    let mut monitor = monitor();
    for number in (0..300u16).filter(|it| !(100..150).contains(it) && *it != 200) {
        if number == told_before {
            monitor.missed(LOST);
        }
        observe(&mut monitor, &udp(ENDS, &voice(7, 0, number)), at(20 * i64::from(number)));
    }
    monitor
}

#[test]
fn what_the_capture_lost_is_not_the_networks_and_does_not_move_the_opinion() {
    for told_before in [101, 150, 151, 230, 299] {
        let mut monitor = call(told_before.max(150));
        let [report] = &reports(&mut monitor)[..] else { panic!("one flow") };
        let rtp = report.rtp.as_ref().expect("RTP");
        assert_eq!((report.lost, rtp.capture_lost, rtp.expected), (Some(1), 50, 300));
        assert_eq!((rtp.loss_periods, rtp.cumulative_lost), (1, 51));
        assert!(rtp.mos > Some(4.3), "{rtp:?}");
        let lossy: Vec<_> = rtp.loss_over_time.iter().map(|ratio| *ratio > Some(0.0)).collect();
        assert_eq!(lossy, [false, false, false, false, true, false], "told before {told_before}");
    }
}

#[test]
fn news_changes_what_was_reported_before_it() {
    let mut monitor = call(u16::MAX);
    assert_eq!(reports(&mut monitor)[0].lost, Some(51));
    monitor.missed(LOST);
    assert_eq!((reports(&mut monitor)[0].lost, monitor.capture_missed()), (Some(1), 60));
}

#[test]
fn a_packet_that_comes_late_was_lost_by_nobody() {
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
fn what_was_due_outside_of_the_stretch_is_the_networks_however_much_the_capture_lost() {
    let mut monitor = monitor();
    for number in (0..100u16).filter(|it| !(50..53).contains(it)) {
        observe(&mut monitor, &udp(ENDS, &voice(7, 0, number)), at(20 * i64::from(number)));
    }
    // Other packets than these, too.
    monitor.missed(CaptureLoss { from: at(1015), until: at(1025), packets: 1000 });
    let report = reports(&mut monitor).remove(0);
    let by_capture = report.rtp.map(|rtp| (rtp.capture_lost, rtp.loss_periods));
    assert_eq!((report.lost, by_capture), (Some(2), Some((1, 2))));
}

#[test]
fn more_stretches_than_are_remembered_account_for_what_was_lost_in_them() {
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

/// A packet of an MPEG transport stream, of which there is one every 10 ms.
fn video(number: u16) -> Vec<u8> {
    let head = [[0x80, 33], number.to_be_bytes()];
    let timestamp = (u32::from(number) * 900).to_be_bytes();
    udp(ENDS, &[head.as_flattened(), &timestamp, &[0, 0, 0, 9], &[0x47; 1316]].concat())
}

/// The network loses a packet every second, and the capture so many within one, of which it tells when
/// the packet `told_at` comes. Somebody looks before that.
fn delivery(by_capture: std::ops::Range<u16>, told_at: u16) -> VideoReport {
    let mut monitor = monitor();
    for number in 0..1050u16 {
        if number == told_at {
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
fn what_the_capture_lost_does_not_move_the_media_delivery_index() {
    let truth = delivery(0..0, u16::MAX);
    assert_eq!((truth.loss_rate, truth.max_loss_rate), (7.0, 7.0));
    // At once, seconds later, and at the very end.
    for told_at in [530, 531, 800, 1049] {
        let found = delivery(510..530, told_at);
        assert_eq!((found.loss_rate, found.max_loss_rate), (7.0, 7.0), "told at {told_at}");
        let [one, other] = [found, truth].map(|it| it.max_delay_factor_ms.unwrap());
        assert!((one - other).abs() < 0.5, "told at {told_at}: {one} for {other}");
        assert!((found.media_rate_bps / truth.media_rate_bps - 1.0).abs() < 1e-3, "{found:?}");
    }
}

#[test]
fn a_second_in_which_the_capture_lost_packets_has_no_delay_factor() {
    // The index is taken from 1.01 s on; the newest whole second ends at 10.01 s.
    assert!(delivery(0..0, u16::MAX).delay_factor_ms.is_some());
    assert_eq!(delivery(960..970, 1049).delay_factor_ms, None);
    assert_eq!(delivery(960..970, 1049).loss_rate, 7.0);
}

/// A sequence of numbers that look random (the generator of D. Knuth's MMIX).
struct Chance(u64);

impl Chance {
    /// A number below the bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A packet on its way.
#[derive(Clone, Copy)]
struct Sent {
    stream: u16,
    number: u16,
    micros: i64,
    by_network: bool,
    by_capture: bool,
}

const PACKETS: u16 = 1000;

/// The number of a stream that is none.
const UNNUMBERED: u16 = u16::MAX;

/// Packets of some streams, every 20 ms each and up to a millisecond late, in the order of arrival;
/// in a hundred the network loses so many.
fn sent(streams: u16, percent: u64, chance: &mut Chance) -> Vec<Sent> {
    let mut sent = Vec::new();
    for stream in 0..streams {
        let phase = chance.below(20_000);
        for number in 0..PACKETS {
            let micros = u64::from(number) * 20_000 + phase + chance.below(1000);
            let by_network = (50..PACKETS - 10).contains(&number) && chance.below(100) < percent;
            let micros = i64::try_from(micros).unwrap();
            sent.push(Sent { stream, number, micros, by_network, by_capture: false });
        }
    }
    sent.sort_by_key(|it| it.micros);
    sent
}

/// Adds packets of no stream, one every so many milliseconds and up to one more, for as long as there are
/// streams: of a flow that ends while the capture loses packets nobody knows that it had more.
fn add_unnumbered(sent: &mut Vec<Sent>, every: u16, chance: &mut Chance) {
    for number in 0..PACKETS * 20 / every {
        let micros = u64::from(number) * u64::from(every) * 1000 + chance.below(1000);
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

/// The capture loses what comes in these stretches, and so many packets that are none of the streams'.
fn capture(sent: &mut [Sent], intervals: &[(i64, i64)], others: u64) -> Vec<CaptureLoss> {
    let lose = |(from, until): &(i64, i64)| {
        let within = |it: &&mut Sent| (*from..=*until).contains(&it.micros) && !it.by_network;
        let lost = sent.iter_mut().filter(within).map(|it| it.by_capture = true).count();
        CaptureLoss { from: micros(*from), until: micros(*until), packets: lost as u64 + others }
    };
    intervals.iter().map(lose).collect()
}

/// What the capture lost in these stretches, as it tells of it that reads its counts every 10 ms and dates
/// losses up to as much too early.
fn read_in_passing(sent: &[Sent], intervals: &[(i64, i64)]) -> Vec<CaptureLoss> {
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

/// What is reported of each stream, by the order of the streams.
fn observed(sent: &[Sent], missed: &[CaptureLoss], told_late: i64) -> Vec<FlowReport> {
    let (mut monitor, mut reported) = (monitor(), 0);
    for it in sent {
        while missed.get(reported).is_some_and(|next| next.until < micros(it.micros - told_late)) {
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

/// The streams as they would be had the capture lost nothing.
fn truth(sent: &[Sent]) -> Vec<FlowReport> {
    let sent: Vec<_> = sent.iter().map(|it| Sent { by_capture: false, ..*it }).collect();
    observed(&sent, &[], 0)
}

/// The opinions that there may be.
fn bounds(rtp: &RtpReport) -> std::ops::RangeInclusive<f64> {
    // Sums of floating-point numbers in another order.
    rtp.mos_lowest.unwrap() - 1e-9..=rtp.mos_highest.unwrap() + 1e-9
}

/// That the truth of a stream is between the bounds that are reported.
fn check_bounds(found: &FlowReport, truth: &FlowReport) {
    let off = found.lost.unwrap().abs_diff(truth.lost.unwrap());
    let (found, truth) = (found.rtp.as_ref().unwrap(), truth.rtp.as_ref().unwrap());
    let undecided = found.lost_uncertainty;
    assert!(off <= undecided, "{off} with {undecided} undecided");
    let bounds = bounds(found);
    for mos in [found.mos, truth.mos].map(Option::unwrap) {
        assert!(bounds.contains(&mos), "{mos} in {bounds:?}");
    }
}

fn lost(reports: &[FlowReport]) -> Vec<u64> {
    reports.iter().filter_map(|report| report.lost).collect()
}

/// Stretches that do not touch, from the second second on.
fn intervals(chance: &mut Chance, longest: u64) -> Vec<(i64, i64)> {
    let mut begin = 1_100_000;
    (0..4)
        .map(|_| {
            begin += 100_000 + chance.below(3_000_000);
            let end = begin + chance.below(longest * 1000);
            let interval = (i64::try_from(begin).unwrap(), i64::try_from(end).unwrap());
            begin = end;
            interval
        })
        .collect()
}

/// Also where the network loses several in a hundred while the capture loses packets.
#[test]
fn most_opinions_are_known_to_a_twentieth_and_all_that_are_reported_are_near_the_truth() {
    let (mut streams, mut known, mut moved) = (0, 0, 0.0_f64);
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let mut sent = sent(1 + u16::try_from(seed % 7).unwrap(), seed % 8, &mut chance);
        let intervals = intervals(&mut chance, 1 + seed % 199);
        let missed = capture(&mut sent, &intervals, 0);
        for (found, truth) in observed(&sent, &missed, 0).iter().zip(&truth(&sent)) {
            let (found, truth) = (found.rtp.as_ref().unwrap(), truth.rtp.as_ref().unwrap());
            streams += 1;
            known += u32::from(found.mos_highest.unwrap() - found.mos_lowest.unwrap() < 0.05);
            moved = moved.max((found.mos.unwrap() - truth.mos.unwrap()).abs());
        }
    }
    assert!(4 * known > 3 * streams, "{known} of {streams}");
    assert!(moved < 0.05, "{moved}");
}

/// Packets of some streams and what the capture lost of them, as it tells of it that reads its counts in
/// passing; the network loses some near the stretches only if `lost_by_both`.
fn dated_roughly(
    streams: u16,
    percent: u64,
    longest: u64,
    lost_by_both: bool,
    chance: &mut Chance,
) -> (Vec<Sent>, Vec<CaptureLoss>) {
    let mut sent = sent(streams, percent, chance);
    let intervals = intervals(chance, longest);
    for it in &mut sent {
        let near =
            |(from, until): &(i64, i64)| (from - 40_000..until + 40_000).contains(&it.micros);
        it.by_network &= lost_by_both || !intervals.iter().any(near);
    }
    capture(&mut sent, &intervals, 0);
    let missed = read_in_passing(&sent, &intervals);
    (sent, missed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Of all streams together to the packet, and of each between the bounds that it states, which are
    /// less than 0.05 of an opinion apart wherever one packet more or less is all that is in doubt.
    #[test]
    fn network_loss_is_exact_and_opinions_stay_whatever_the_capture_lost(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        told_late in 0..200_000i64,
    ) {
        let mut chance = Chance(seed);
        let mut sent = sent(streams, percent, &mut chance);
        let intervals = intervals(&mut chance, longest);
        let missed = capture(&mut sent, &intervals, 0);
        let (found, truth) = (observed(&sent, &missed, told_late), truth(&sent));
        prop_assert_eq!(lost(&found).iter().sum::<u64>(), lost(&truth).iter().sum::<u64>());
        for (found, truth) in found.iter().zip(&truth) {
            check_bounds(found, truth);
            let found = found.rtp.as_ref().unwrap();
            let (undecided, bounds) = (found.lost_uncertainty, bounds(found));
            let apart = bounds.end() - bounds.start();
            prop_assert!(undecided > 1 || apart < 0.05, "{:?} with {} undecided", bounds, undecided);
        }
    }

    /// Of all streams together to the packet; of each, too, if the network lost none near the stretches.
    #[test]
    fn each_stream_is_between_its_bounds_however_roughly_losses_of_the_capture_are_dated(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        told_late in 0..200_000i64, lost_by_both: bool,
    ) {
        let mut chance = Chance(seed);
        let (sent, missed) = dated_roughly(streams, percent, longest, lost_by_both, &mut chance);
        let (found, truth) = (observed(&sent, &missed, told_late), truth(&sent));
        prop_assert_eq!(lost(&found).iter().sum::<u64>(), lost(&truth).iter().sum::<u64>());
        for (found, truth) in found.iter().zip(&truth) {
            check_bounds(found, truth);
            let rtp = found.rtp.as_ref().unwrap();
            prop_assert!(lost_by_both || rtp.mos_lowest == rtp.mos_highest, "{:?}", found);
        }
    }

    #[test]
    fn each_stream_is_between_its_bounds_whatever_else_is_on_the_wire(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        told_late in 0..200_000i64, every in 2..50u16,
    ) {
        let mut chance = Chance(seed);
        let mut sent = sent(streams, percent, &mut chance);
        add_unnumbered(&mut sent, every, &mut chance);
        let intervals = intervals(&mut chance, longest);
        let missed = capture(&mut sent, &intervals, 0);
        let (found, truth) = (observed(&sent, &missed, told_late), truth(&sent));
        prop_assert_eq!(found.len(), usize::from(streams));
        found.iter().zip(&truth).for_each(|(found, truth)| check_bounds(found, truth));
    }

    /// Also where the capture lost many packets that are none of RTP, if the network lost none near
    /// the stretches.
    #[test]
    fn network_loss_of_each_stream_is_exact_where_it_can_be_known(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        told_late in 0..200_000i64, others in 0..1000u64,
    ) {
        let mut chance = Chance(seed);
        let mut sent = sent(streams, percent, &mut chance);
        let intervals = intervals(&mut chance, longest);
        for it in &mut sent {
            let near = |(from, until): &(i64, i64)| (from - 8000..until + 8000).contains(&it.micros);
            it.by_network &= !intervals.iter().any(near);
        }
        let missed = capture(&mut sent, &intervals, others);
        let (found, truth) = (observed(&sent, &missed, told_late), truth(&sent));
        prop_assert_eq!(lost(&found), lost(&truth));
        for (found, truth) in found.iter().zip(&truth) {
            let (found, truth) = (found.rtp.as_ref().unwrap(), truth.rtp.as_ref().unwrap());
            prop_assert_eq!(found.mos, truth.mos);
            prop_assert!(bounds(found).contains(&truth.mos.unwrap()));
            prop_assert!(others > 0 || found.mos_lowest == found.mos_highest, "{:?}", found);
        }
    }
}
