//! Batches of two points in any order, with crashes.

mod clocks;
mod gaps;
mod outcomes;

use std::collections::BTreeMap;

use proptest::prelude::*;
use wirestamp_clock::{Domain, RawStamp, Stamp};
use wirestamp_metrics::Counts;
use wirestamp_packet::{FlowKey, PacketId};

use super::*;

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

fn sum(stored: &Stored, of: impl Fn(&Counts) -> u64) -> u64 {
    stored.windows.values().map(|it| of(it.quality.counts())).sum()
}
