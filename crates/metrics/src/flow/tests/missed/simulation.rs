//! Simulated streams of which the network and the capture lose packets.

use super::*;

/// Pseudo-random numbers (the generator of D. Knuth's MMIX).
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below the bound.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A packet in flight.
#[derive(Clone, Copy)]
pub(super) struct Sent {
    stream: u16,
    number: u16,
    pub(super) micros: i64,
    pub(super) by_network: bool,
    by_capture: bool,
}

const PACKETS: u16 = 1000;

/// Stream number of packets outside streams.
const UNNUMBERED: u16 = u16::MAX;

/// Packets of some streams, every 20 ms each and up to a millisecond late, in the order of arrival; the network loses
/// `percent` of a hundred.
pub(super) fn sent(streams: u16, percent: u64, random: &mut Random) -> Vec<Sent> {
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
pub(super) fn add_unnumbered(sent: &mut Vec<Sent>, every: u16, random: &mut Random) {
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
pub(super) fn capture(
    sent: &mut [Sent],
    intervals: &[(i64, i64)],
    others: u64,
) -> Vec<CaptureLoss> {
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
pub(super) fn observed(
    sent: &[Sent],
    missed: &[CaptureLoss],
    report_delay: i64,
) -> Vec<FlowReport> {
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
pub(super) fn truth(sent: &[Sent]) -> Vec<FlowReport> {
    let sent: Vec<_> = sent.iter().map(|it| Sent { by_capture: false, ..*it }).collect();
    observed(&sent, &[], 0)
}

/// Disjoint intervals, from the second second on.
pub(super) fn intervals(random: &mut Random, longest: u64) -> Vec<(i64, i64)> {
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

/// Packets of some streams, and the capture losses as reported with periodically read counters. The network loses
/// packets near the intervals only if `lost_by_both`.
pub(super) fn with_rough_times(
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
