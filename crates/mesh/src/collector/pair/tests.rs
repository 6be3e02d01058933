//! Batches of two points in any order, with crashes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use wirestamp_clock::{Domain, RawStamp, Stamp};
use wirestamp_metrics::Counts;
use wirestamp_packet::{FlowKey, PacketId};

use super::*;
use crate::collector::NotSynchronised;

const TIMING: Timing = Timing {
    window: Span::from_millis(100),
    matching: Config {
        timeout: Span::from_millis(200),
        skew: Span::from_millis(20),
        memory: 1 << 20,
    },
};

/// Time range of a batch.
const BATCH: i64 = 30;

fn at(millis: i64) -> Time<Utc> {
    Time::from_nanos(millis * 1_000_000)
}

fn observation(id: u64, micros: i64) -> Observation {
    let port = u16::try_from(id % 3).unwrap();
    let end = std::net::SocketAddr::from(([192, 0, 2, 1], port));
    let utc = Time::from_nanos(micros * 1000);
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(id),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc, error: Span::from_nanos(10) },
    }
}

/// B's clock is not synchronised from 1 s to 2 s.
fn clock(side: usize, time: Time<Utc>) -> MachineClock {
    let is_lost = side == 1 && (at(1000)..at(2000)).contains(&time);
    let error = (!is_lost).then_some(Span::from_micros(50));
    MachineClock { machine: [u8::try_from(side).unwrap(); 16], error }
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Comes(i64),
    ComesTwice(i64, i64),
    Lost,
    /// B's capture lost it.
    Missed(i64),
    /// A's capture lost it.
    Unseen(i64),
}

/// Captures lose one packet in this number.
fn fate(missed_one_in: u32) -> impl Strategy<Value = Fate> {
    let delay = || 0..150_000_i64;
    prop_oneof![
        missed_one_in => delay().prop_map(Fate::Comes),
        missed_one_in / 8 => (delay(), delay()).prop_map(|(one, other)| Fate::ComesTwice(one, other)),
        missed_one_in / 8 => Just(Fate::Lost),
        1 => delay().prop_map(Fate::Missed),
        1 => delay().prop_map(Fate::Unseen),
    ]
}

/// Batches of A and B, with a packet every 5 ms.
fn batches(fates: &[Fate]) -> [Vec<ObservationBatch>; 2] {
    let (mut seen, mut missed) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for (id, fate) in (0_u64..).zip(fates) {
        let sent = 5000 * id.cast_signed();
        let (after, lost) = match *fate {
            Fate::Comes(delay) => (vec![(0, 0), (1, delay)], None),
            Fate::ComesTwice(one, other) => (vec![(0, 0), (1, one), (1, other)], None),
            Fate::Lost => (vec![(0, 0)], None),
            Fate::Missed(delay) => (vec![(0, 0)], Some((1, delay))),
            Fate::Unseen(delay) => (vec![(1, delay)], Some((0, 0))),
        };
        after.into_iter().for_each(|(side, after)| seen[side].push(observation(id, sent + after)));
        lost.into_iter().for_each(|(side, after)| missed[side].push(sent + after));
    }
    seen.iter_mut().for_each(|seen| seen.sort_by_key(|it| it.stamp.utc));
    let end = 5 * i64::try_from(fates.len()).unwrap() + 2000;
    [0, 1].map(|side| {
        let batch = |nth: i64| {
            let times = at(BATCH * nth)..at(BATCH * (nth + 1));
            let within = seen[side].iter().filter(|it| times.contains(&it.stamp.utc));
            let lost = missed[side].iter().map(|micros| Time::from_nanos(micros * 1000));
            let lost = lost.filter(|it| times.contains(it)).count() as u64;
            let whole = CaptureLoss { from: times.start, until: times.end, packets: lost };
            ObservationBatch {
                observations: within.copied().collect(),
                missed: Some(whole).into_iter().filter(|it| it.packets > 0).collect(),
                complete_until: times.end,
                begin: (nth == 0).then_some(at(-1000)),
                clock: clock(side, times.start),
                answers: None,
            }
        };
        (0..end / BATCH).map(batch).collect()
    })
}

/// The point was not observed during these batches.
fn leave_out(batches: &mut Vec<ObservationBatch>, gone: std::ops::Range<usize>) {
    let begin = batches[gone.end - 1].complete_until;
    batches.drain(gone.clone());
    batches[gone.start].begin = Some(begin);
}

/// State of a clock that marks a malformed batch.
const MALFORMED: MachineClock = MachineClock { machine: [0xff; 16], error: None };

/// The stored results, which survive a crash.
#[derive(Default)]
struct Stored {
    until: Option<Time<Utc>>,
    windows: BTreeMap<Time<Utc>, Window>,
    acknowledged: [u64; 2],
    /// Of point B.
    dropped: u64,
}

impl Stored {
    fn pair(&self) -> Pair {
        let beginning = Time::from_nanos(i64::MIN);
        Pair::new(TIMING, self.until.unwrap_or(beginning), self.acknowledged)
    }

    fn store(&mut self, settled: Settled) {
        let Settled { until, windows, acknowledged, dropped, late, .. } = settled;
        assert_eq!(late, 0);
        self.until = Some(until);
        self.acknowledged = acknowledged;
        self.dropped += dropped[1];
        for (begin, window) in windows {
            let before = self.windows.insert(begin, window);
            assert!(before.is_none(), "{begin:?} is settled twice");
        }
    }
}

/// Delivers all batches in the order of `steps`, except of a point that is ahead, and crashes at steps of 0. After the
/// last step, points alternate.
fn collected(batches: &[Vec<ObservationBatch>; 2], steps: &[(bool, u8)]) -> Stored {
    let mut stored = Stored::default();
    let (mut pair, mut delivered) = (stored.pair(), [0, 0]);
    let in_turn = [(false, 1), (true, 1)];
    let mut steps = steps.iter().chain(in_turn.iter().cycle());
    while delivered != batches.each_ref().map(Vec::len) {
        let (is_b, crash) = *steps.next().unwrap();
        let wanted = usize::from(is_b);
        let is_ahead = pair.is_ahead([Point::A, Point::B][wanted]);
        let is_over = delivered[wanted] == batches[wanted].len();
        let side = if is_ahead || is_over { 1 - wanted } else { wanted };
        let seen = &batches[side][delivered[side]];
        delivered[side] += 1;
        let point = [Point::A, Point::B][side];
        let number = delivered[side] as u64;
        let delivery = if seen.clock == MALFORMED {
            pair.leave_out(point, number)
        } else {
            pair.take(point, number, seen)
        };
        assert_eq!(delivery, Delivery::Taken);
        if let Some(settled) = pair.settle() {
            stored.store(settled);
        }
        if crash == 0 {
            pair = stored.pair();
            delivered = stored.acknowledged.map(|it| usize::try_from(it).unwrap());
        }
    }
    stored
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

fn counts(stored: &Stored) -> Vec<(Time<Utc>, Counts)> {
    stored.windows.iter().map(|(begin, it)| (*begin, *it.quality.counts())).collect()
}

fn sum(stored: &Stored, of: impl Fn(&Counts) -> u64) -> u64 {
    stored.windows.values().map(|it| of(it.quality.counts())).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn crashes_change_nothing_and_nothing_is_counted_twice(
        fates in prop::collection::vec(fate(100), 100..600),
        steps in prop::collection::vec((any::<bool>(), 0..30_u8), 1..400),
        gap in prop::option::of((0..2_usize, 1..60_usize, 1..20_usize)),
        malformed in prop::option::of((0..2_usize, 1..60_usize, 1..4_usize)),
    ) {
        let mut batches = batches(&fates);
        if let Some((side, from, length)) = gap {
            leave_out(&mut batches[side], from..from + length);
        }
        if let Some((side, from, count)) = malformed {
            batches[side][from..from + count].iter_mut().for_each(|it| it.clock = MALFORMED);
        }
        // After a longer silence, the variation of a flow is not exact. The batch after a malformed one is silent, too.
        let silent = gap.map_or(0, |it| it.2) + malformed.map_or(0, |it| it.2 + 1);
        let silence = i64::try_from(silent).unwrap() * BATCH;
        let is_short = at(silence) + TIMING.matching.skew < at(0) + TIMING.matching.timeout;
        let (through, crashed) = (collected(&batches, &[]), collected(&batches, &steps));
        prop_assert_eq!(counts(&crashed), counts(&through));
        for (one, other) in crashed.windows.values().zip(through.windows.values()) {
            prop_assert_eq!(one.offset, other.offset);
            let [one, other] = [one, other].map(|it| &it.quality);
            prop_assert_eq!(format!("{:?}", one.delay()), format!("{:?}", other.delay()));
            if is_short {
                prop_assert_eq!(one.variation().summary(), other.variation().summary());
            }
        }
    }

    /// If the path keeps the order, it is known which packets a capture lost.
    #[test]
    fn every_packet_counts_with_its_outcome(
        fates in prop::collection::vec(fate(8), 1..200), delay in 0..150_000_i64,
    ) {
        let steady = |fate| match fate {
            Fate::Comes(_) => Fate::Comes(delay),
            Fate::ComesTwice(..) => Fate::ComesTwice(delay, delay),
            Fate::Lost => Fate::Lost,
            Fate::Missed(_) => Fate::Missed(delay),
            Fate::Unseen(_) => Fate::Unseen(delay),
        };
        let fates: Vec<_> = fates.into_iter().map(steady).collect();
        let stored = collected(&batches(&fates), &[]);
        let number = |of: &dyn Fn(&Fate) -> bool| fates.iter().filter(|it| of(it)).count() as u64;
        let comes = number(&|it| matches!(it, Fate::Comes(_) | Fate::ComesTwice(..)));
        prop_assert_eq!(sum(&stored, |it| it.matched), comes);
        let twice = number(&|it| matches!(it, Fate::ComesTwice(..)));
        prop_assert_eq!(sum(&stored, |it| it.duplicated), twice);
        let lost = number(&|it| matches!(it, Fate::Lost));
        let missed = number(&|it| matches!(it, Fate::Missed(_)));
        let undetermined = sum(&stored, |it| it.undetermined_sent);
        prop_assert_eq!((sum(&stored, |it| it.lost), undetermined), (lost, missed));
        let unseen = number(&|it| matches!(it, Fate::Unseen(_)));
        let undetermined = sum(&stored, |it| it.undetermined_received);
        prop_assert_eq!((sum(&stored, |it| it.unexpected), undetermined), (0, unseen));
    }

    /// On any other path, all packets are counted, and network losses are not attributed to captures.
    #[test]
    fn every_packet_is_counted_once(fates in prop::collection::vec(fate(8), 1..200)) {
        let stored = collected(&batches(&fates), &[]);
        let number = |of: &dyn Fn(&Fate) -> bool| fates.iter().filter(|it| of(it)).count() as u64;
        let lost = number(&|it| matches!(it, Fate::Lost));
        let sent = number(&|it| !matches!(it, Fate::Unseen(_)));
        let comes = number(&|it| matches!(it, Fate::Comes(_) | Fate::ComesTwice(..)));
        prop_assert_eq!(sum(&stored, |it| it.sent), sent);
        prop_assert_eq!(sum(&stored, |it| it.matched), comes);
        prop_assert_eq!(sum(&stored, |it| it.lost + it.undetermined_sent), sent - comes);
        prop_assert!(sum(&stored, |it| it.lost) >= lost);
        let unseen = number(&|it| matches!(it, Fate::Unseen(_)));
        prop_assert_eq!(sum(&stored, |it| it.unexpected + it.undetermined_received), unseen);
    }
}

/// The probe at A is disconnected for three seconds, in which the network loses everything; then A delivers all.
#[test]
fn disconnected_point_leaves_no_loss_uncounted() {
    let fates = [vec![Fate::Comes(1000); 200], vec![Fate::Lost; 600], vec![Fate::Comes(1000); 200]];
    let [a, b] = batches(&fates.concat());
    let (mut stored, mut delivered) = (Stored::default(), [0, 0]);
    let mut pair = stored.pair();
    while delivered != [a.len(), b.len()] {
        let side = usize::from(!pair.is_ahead(Point::B) && delivered[1] < b.len());
        let (point, batches) = [(Point::A, &a), (Point::B, &b)][side];
        let seen = &batches[delivered[side]];
        delivered[side] += 1;
        assert_eq!(pair.take(point, delivered[side] as u64, seen), Delivery::Taken);
        if let Some(settled) = pair.settle() {
            stored.store(settled);
        }
    }
    assert_eq!((sum(&stored, |it| it.lost), sum(&stored, |it| it.matched)), (600, 400));
}

#[test]
fn batch_is_taken_once_and_in_order() {
    let [a, _] = batches(&[Fate::Comes(1000)].repeat(20));
    let mut pair = Pair::new(TIMING, at(0), [6, 0]);
    assert_eq!(pair.take(Point::A, 6, &a[0]), Delivery::Duplicate);
    assert_eq!(pair.take(Point::A, 8, &a[0]), Delivery::Expected(7));
    assert_eq!(pair.take(Point::A, 7, &a[0]), Delivery::Taken);
    assert_eq!(pair.take(Point::A, 7, &a[0]), Delivery::Duplicate);
    assert_eq!(pair.give_up(Point::A, &(9..=10), at(90), 0), Delivery::Expected(8));
    assert_eq!(pair.give_up(Point::A, &(8..=9), at(90), 0), Delivery::Taken);
    assert_eq!(pair.take(Point::A, 10, &a[3]), Delivery::Taken);
}

#[test]
fn dropped_batches_are_excluded_from_loss() {
    let fates = [Fate::Comes(1000)].repeat(200);
    let all = batches(&fates);
    let mut stored = Stored::default();
    let mut pair = stored.pair();
    for (number, (a, b)) in (1..).zip(all[0].iter().zip(&all[1])) {
        pair.take(Point::A, number, a);
        // From 300 to 600 ms.
        match number {
            1..11 | 21.. => {
                pair.take(Point::B, number, b);
            }
            20 => {
                pair.give_up(Point::B, &(11..=20), at(600), 60);
            }
            _ => {}
        }
        // The probe reconnects, and then the collector is killed.
        if number == 22 {
            pair = stored.pair();
            let [first, second] = stored.acknowledged;
            assert!(first < 10 && second < 10, "{first} {second}");
            let [a, b] = all.each_ref().map(|it| (1..).zip(it.iter().take(22)));
            a.skip(index(first)).for_each(|(number, seen)| {
                pair.take(Point::A, number, seen);
            });
            b.skip(index(second)).for_each(|(number, seen)| match number {
                11 => {
                    pair.give_up(Point::B, &(11..=20), at(600), 60);
                }
                12..21 => {}
                _ => {
                    pair.take(Point::B, number, seen);
                }
            });
        }
        if let Some(settled) = pair.settle() {
            stored.store(settled);
        }
    }
    assert_eq!((sum(&stored, |it| it.lost), sum(&stored, |it| it.undetermined_sent)), (0, 60));
    assert_eq!((sum(&stored, |it| it.matched), stored.dropped), (140, 60));
}

/// B's probe does not run from 300 to 600 ms, and has lost its spool afterwards.
#[test]
fn stopped_probe_is_excluded_from_loss() {
    let all = batches(&[Fate::Comes(1000)].repeat(200));
    let mut stored = Stored::default();
    let mut pair = stored.pair();
    for (number, (a, b)) in (1..).zip(all[0].iter().zip(&all[1])) {
        pair.take(Point::A, number, a);
        match number {
            1..11 => {
                pair.take(Point::B, number, b);
            }
            21.. => {
                let begin = (number == 21).then_some(at(600));
                if begin.is_some() {
                    pair.number_anew(Point::B, 0);
                }
                let seen = ObservationBatch { begin, ..b.clone() };
                assert_eq!(pair.take(Point::B, number - 20, &seen), Delivery::Taken);
            }
            _ => {}
        }
        if let Some(settled) = pair.settle() {
            stored.store(settled);
        }
    }
    assert_eq!((sum(&stored, |it| it.lost), sum(&stored, |it| it.undetermined_sent)), (0, 60));
    assert_eq!(sum(&stored, |it| it.matched), 140);
}

#[test]
fn window_contains_the_clock_offset() {
    let stored = collected(&batches(&[Fate::Comes(1000)].repeat(600)), &[]);
    let offset = |millis| stored.windows[&at(millis)].offset;
    let synchronised = Ok(Span::from_micros(100));
    // Packets of the adjacent windows may have passed while B's clock was not synchronised.
    assert_eq!([offset(600), offset(2100)], [synchronised; 2]);
    assert_eq!([offset(800), offset(1900)], [Err(NotSynchronised::Second); 2]);
    let window = &stored.windows[&at(600)];
    assert_eq!(window.error(), Ok(Span::from_nanos(100_020)));
    assert!(!window.contradicts_the_clocks());
}

#[test]
fn impossible_delay_contradicts_the_clocks() {
    let alarm = |delay| {
        let stored = collected(&batches(&[Fate::Comes(delay); 200]), &[]);
        stored.windows[&at(500)].contradicts_the_clocks()
    };
    assert_eq!([alarm(-100), alarm(-101)], [false, true]);
}
