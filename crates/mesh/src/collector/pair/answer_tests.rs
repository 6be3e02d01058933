//! Answers of an active test in batches of both ends, with gaps and crashes.

use std::collections::BTreeMap;

use wirestamp_clock::{Domain, RawStamp, Stamp};
use wirestamp_packet::{FlowKey, PacketId};

use super::*;
use crate::protocol::{TestAnswer, TestAnswers};

const TIMING: Timing = Timing {
    window: Span::from_millis(100),
    matching: Config {
        timeout: Span::from_millis(200),
        skew: Span::from_millis(20),
        memory: 1 << 20,
    },
};

/// Time range of a batch, and between two packets, in milliseconds.
const BATCH: i64 = 20;
const EACH: i64 = 5;
const DELAY: Span = Span::from_micros(400);
const BACK: Span = Span::from_micros(600);
/// Time after which the sender has every answer.
const ANSWERED: i64 = 40;

fn at(millis: i64) -> Time<Utc> {
    Time::from_nanos(millis * 1_000_000)
}

fn observation(millis: i64, delay: Span) -> Observation {
    let end = std::net::SocketAddr::from(([192, 0, 2, 1], 862));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(millis.unsigned_abs()),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: at(millis) + delay, error: Span::ZERO },
    }
}

fn answer(millis: i64) -> TestAnswer {
    TestAnswer {
        identity: PacketId(millis.unsigned_abs()),
        sent: at(millis),
        round_trip: DELAY + BACK,
        back: BACK,
        error: Span::ZERO,
    }
}

/// Batches of the sender and the reflector during a second. Some packets are lost, and the answers to others. Each
/// answer is reported 30 ms after its packet was sent.
fn batches(lost: &[i64], lost_back: &[i64]) -> [Vec<ObservationBatch>; 2] {
    let packets = || (0..1000 / EACH).map(|nth| nth * EACH);
    let batch = |is_sender: bool, nth: i64| {
        let (from, until) = (nth * BATCH, (nth + 1) * BATCH);
        let observed = packets().filter(|it| (from..until).contains(it));
        let observed = observed.filter(|it| is_sender || !lost.contains(it));
        let delay = if is_sender { Span::ZERO } else { DELAY };
        let answered = packets().filter(|it| is_sender && (from..until).contains(&(it + 30)));
        let answered = answered.filter(|it| !lost.contains(it) && !lost_back.contains(it));
        ObservationBatch {
            observations: observed.map(|it| observation(it, delay)).collect(),
            missed: Vec::new(),
            complete_until: at(until),
            begin: (nth == 0).then_some(at(-1000)),
            clock: MachineClock { machine: [is_sender.into(); 16], error: Some(BACK) },
            answers: Some(TestAnswers {
                received: answered.map(answer).collect(),
                missed: Vec::new(),
                complete_until: is_sender.then_some(at(until - ANSWERED)),
                sending: Some(Span::from_micros(7)),
            }),
        }
    };
    [true, false].map(|is_sender| (0..80).map(|nth| batch(is_sender, nth)).collect())
}

/// Delivers all batches, without those that the sender dropped; the collector restarts after each batch number in
/// `crashes`.
fn collected(
    batches: &[Vec<ObservationBatch>; 2],
    dropped: std::ops::Range<u64>,
    crashes: &[u64],
) -> BTreeMap<Time<Utc>, Window> {
    let begin = || Pair::new(TIMING, at(-5000), [0, 0]).with_answers();
    let (mut pair, mut windows) = (begin(), BTreeMap::new());
    let deliver = |pair: &mut Pair, number: u64, point: Point| {
        let side = &batches[side(point)];
        let seen = &side[usize::try_from(number - 1).unwrap()];
        if point == Point::A && dropped.contains(&number) {
            pair.give_up(point, &(number..=number), seen.complete_until, 4);
        } else {
            pair.take(point, number, seen);
        }
    };
    let mut known = (at(-5000), [0, 0]);
    for number in 1..=batches[0].len() as u64 {
        for point in [Point::A, Point::B] {
            deliver(&mut pair, number, point);
            if let Some(settled) = pair.settle() {
                assert_eq!(settled.late, 0);
                known = (settled.until, settled.acknowledged);
                windows.extend(settled.windows);
            }
        }
        if crashes.contains(&number) {
            let (until, acknowledged) = known;
            pair = Pair::new(TIMING, until, acknowledged).with_answers();
            for point in [Point::A, Point::B] {
                let first = acknowledged[side(point)] + 1;
                (first..=number).for_each(|number| deliver(&mut pair, number, point));
            }
        }
    }
    windows
}

/// Answered, lost on the way back, undetermined, and number of round trips of a window.
fn counts(windows: &BTreeMap<Time<Utc>, Window>, millis: i64) -> (u64, u64, u64, u64) {
    let path = windows[&at(millis)].return_path.as_ref().unwrap();
    (path.answered, path.lost, path.undetermined, path.round_trip.count())
}

#[test]
fn losses_are_counted_by_direction() {
    let found = collected(&batches(&[300, 310], &[315, 395, 400]), 0..0, &[]);
    assert_eq!(counts(&found, 200), (20, 0, 0, 20));
    assert_eq!(counts(&found, 300), (16, 2, 0, 16));
    assert_eq!(counts(&found, 400), (19, 1, 0, 19));
    let Window { quality, return_path, offset, .. } = &found[&at(300)];
    assert_eq!((quality.counts().lost, quality.counts().matched), (2, 18));
    let path = return_path.as_ref().unwrap();
    let [trip, back] = [&path.round_trip, &path.delay].map(|it| it.summary().unwrap());
    assert_eq!((trip.min, trip.max), ((DELAY + BACK).as_nanos(), (DELAY + BACK).as_nanos()));
    assert_eq!((back.min, back.max), (BACK.as_nanos(), BACK.as_nanos()));
    assert_eq!(path.round_trip_error(), Some(Span::from_micros(7)));
    assert_eq!(path.delay_error(offset.ok()), Some(BACK + BACK + Span::from_micros(7)));
}

#[test]
fn restart_of_the_collector_changes_no_result() {
    let all = batches(&[300, 310], &[315, 395, 400]);
    let through = collected(&all, 0..0, &[]);
    for crashes in [vec![20], vec![33, 34, 50], (1..80).collect()] {
        let crashed = collected(&all, 0..0, &crashes);
        for millis in (0..1000).step_by(100) {
            assert_eq!(counts(&crashed, millis), counts(&through, millis), "{crashes:?}");
        }
    }
}

#[test]
fn dropped_batches_leave_answers_undetermined_and_never_lost() {
    // From 400 to 460 ms: the packets sent then, and answers to packets sent from 360 ms on.
    let found = collected(&batches(&[], &[]), 21..24, &[]);
    let (answered, lost, undetermined, trips) = counts(&found, 300);
    assert_eq!((answered, lost, answered + undetermined), (14, 0, 20));
    assert_eq!((trips, counts(&found, 500)), (14, (20, 0, 0, 20)));
    let path = found[&at(400)].return_path.as_ref().unwrap();
    assert_eq!((path.answered + path.undetermined, path.lost), (8, 0));
}

#[test]
fn missed_answers_are_undetermined() {
    let mut all = batches(&[], &[215, 310, 315]);
    let missed = CaptureLoss { from: at(305), until: at(312), packets: 1 };
    all[0][17].answers.as_mut().unwrap().missed.push(missed);
    let found = collected(&all, 0..0, &[]);
    assert_eq!(counts(&found, 200), (19, 1, 0, 19));
    assert_eq!(counts(&found, 300), (18, 1, 1, 18));
}

#[test]
fn probes_of_earlier_versions_leave_the_return_path_unknown() {
    let [mut sender, mut reflector] = batches(&[], &[215]);
    reflector.iter_mut().for_each(|batch| batch.answers = None);
    let all = [sender.clone(), reflector];
    let found = collected(&all, 0..0, &[]);
    // Without the reflector's report, the error is unknown.
    assert_eq!(counts(&found, 200), (19, 1, 0, 19));
    assert_eq!(found[&at(200)].return_path.as_ref().unwrap().round_trip_error(), None);
    let [_, reflector] = all;
    sender.iter_mut().for_each(|batch| batch.answers = None);
    let found = collected(&[sender, reflector], 0..0, &[]);
    assert!(found.values().all(|it| it.return_path.is_none()));
}

#[test]
fn answers_are_undetermined_until_the_sender_has_reported_all() {
    let mut all = batches(&[], &[215]);
    for batch in &mut all[0] {
        let answers = batch.answers.as_mut().unwrap();
        answers.complete_until = answers.complete_until.min(Some(at(210)));
    }
    let found = collected(&all, 0..0, &[]);
    assert_eq!(counts(&found, 200), (19, 0, 1, 19));
}
