use proptest::prelude::*;
use wirestamp_clock::{Domain, RawStamp};

use super::*;

const TIMEOUT: Span = Span::from_millis(100);
const MILLI: i64 = 1_000_000;

fn flow() -> FlowKey {
    let end = |last| ([192, 0, 2, last], 862).into();
    FlowKey { source: end(1), destination: end(2), protocol: 17 }
}

fn stamp(nanos: i64) -> Stamp {
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_micros(1) }
}

/// Path of a packet.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// Delay in each direction in microseconds; none if lost there.
    there: Option<i64>,
    back: Option<i64>,
}

/// Sends a packet each millisecond; the clock of the reflector is ahead.
fn run(paths: &[Path], ahead: Span, counts: bool) -> TwoWayResult {
    let mut test = TwoWayTest::new(flow(), TIMEOUT);
    if counts {
        test.set_counted(true);
    }
    let sent = |nth: usize| i64::try_from(nth).unwrap() * MILLI;
    let mut arrivals: Vec<_> = (0..paths.len())
        .filter_map(|nth| Some((sent(nth) + paths[nth].there? * 1000, nth)))
        .collect();
    arrivals.sort_unstable();
    let mut answers: Vec<_> = arrivals
        .into_iter()
        .enumerate()
        .filter_map(|(number, (received, nth))| {
            let returned = received + 10_000;
            let number = if counts { number } else { nth };
            Some((returned + paths[nth].back? * 1000, nth, number, received, returned))
        })
        .collect();
    answers.sort_unstable();
    let mut answers = answers.into_iter().peekable();
    for now in 0..paths.len() + 200 {
        if now < paths.len() {
            test.send(stamp(sent(now)), 86);
        }
        while let Some((back, nth, number, received, returned)) =
            answers.next_if(|answer| answer.0 < sent(now + 1))
        {
            let theirs = |nanos| stamp(nanos + ahead.as_nanos());
            test.take(Reply {
                sequence: nth as u64,
                number: number as u64,
                received: theirs(received),
                returned: theirs(returned),
                back: stamp(back),
                length: 86,
            });
        }
        test.advance(Time::from_nanos(sent(now)));
    }
    test.finish()
}

const GOOD: Path = Path { there: Some(300), back: Some(700) };
const LOST_THERE: Path = Path { there: None, back: None };
const LOST_BACK: Path = Path { there: Some(300), back: None };

#[test]
fn losses_are_assigned_to_their_direction() {
    let paths = [GOOD, LOST_THERE, LOST_BACK, GOOD, LOST_BACK, GOOD, LOST_THERE, GOOD, LOST_BACK];
    let found = run(&paths, Span::ZERO, true);
    let TwoWayCounts { sent, answered, lost, lost_there, lost_back, undecided, .. } = found.counts;
    assert_eq!((sent, answered, lost, lost_there, lost_back, undecided), (9, 4, 5, 2, 2, 1));
    let (there, back) = (found.there.counts(), found.back.counts());
    assert_eq!((there.sent, there.matched, there.lost, there.undetermined_sent), (9, 4, 2, 3));
    assert_eq!((back.sent, back.matched, back.lost), (6, 4, 2));
    assert_eq!(found.there.delay().summary().unwrap().max, 300_000);
    assert_eq!(found.back.delay().summary().unwrap().min, 700_000);
    assert_eq!(found.round_trip.summary().unwrap().max, 1_000_000);
    assert_eq!(found.response.summary().unwrap().min, 10_000);
}

#[test]
fn reflector_that_copies_numbers_leaves_direction_unknown() {
    let found = run(&[GOOD, LOST_THERE, LOST_BACK, GOOD], Span::ZERO, false);
    assert!(!found.is_counted);
    let TwoWayCounts { lost, undecided, lost_there, lost_back, .. } = found.counts;
    assert_eq!((lost, undecided, lost_there, lost_back), (2, 2, 0, 0));
}

#[test]
fn clocks_a_day_apart_affect_only_the_delays() {
    let day = Span::from_secs(-86_400);
    let found = run(&[GOOD, GOOD, LOST_THERE, GOOD], day, true);
    assert_eq!((found.counts.answered, found.counts.lost_there), (3, 1));
    assert_eq!((found.counts.impossible_there, found.counts.impossible_back), (3, 0));
    assert_eq!(found.there.delay().summary().unwrap().max, 300_000 + day.as_nanos());
    assert_eq!(found.there.variation().summary().unwrap().max, 0);
    assert_eq!(found.round_trip.summary().unwrap().max, 1_000_000);
}

#[test]
fn duplicates_are_assigned_to_their_direction() {
    let mut test = TwoWayTest::new(flow(), TIMEOUT);
    for _ in 0..2 {
        test.send(stamp(0), 86);
    }
    let answer = |sequence, number| Reply {
        sequence,
        number,
        received: stamp(MILLI),
        returned: stamp(MILLI),
        back: stamp(2 * MILLI),
        length: 86,
    };
    use ReplyKind::{Duplicate, First, Foreign};
    let came = [(0, 0), (0, 1), (0, 1), (1, 2), (1, 2), (7, 3)];
    let taken = came.map(|(sequence, number)| test.take(answer(sequence, number)));
    assert_eq!(taken, [First, Duplicate, Duplicate, First, Duplicate, Foreign]);
    let found = test.finish();
    assert_eq!((found.there.counts().duplicated, found.back.counts().duplicated), (1, 2));
    assert_eq!((found.counts.answered, found.counts.foreign), (2, 1));
}

#[test]
fn closing_reply_assigns_the_last_losses() {
    let mut test = TwoWayTest::new(flow(), TIMEOUT);
    test.set_counted(true);
    for _ in 0..5 {
        test.send(stamp(0), 86);
    }
    // The reflector received three of them.
    test.end(3, stamp(MILLI));
    let TwoWayCounts { lost, lost_there, lost_back, undecided, .. } = test.finish().counts;
    assert_eq!((lost, lost_there, lost_back, undecided), (5, 2, 3, 0));
}

#[test]
fn reply_after_the_timeout_is_lost_and_late() {
    let slow = Path { there: Some(90_000), back: Some(20_000) };
    let found = run(&[GOOD, slow, GOOD], Span::ZERO, true);
    let TwoWayCounts { answered, lost, late, undecided, .. } = found.counts;
    assert_eq!((answered, lost, late, undecided), (2, 1, 1, 1));
}

fn path() -> impl Strategy<Value = Path> {
    let way = || prop_oneof![1 => Just(None), 9 => (100..5_000_i64).prop_map(Some)];
    (way(), way()).prop_map(|(there, back)| Path { there, back })
}

proptest! {
    #[test]
    fn counts_balance_and_delays_are_exact(
        paths in prop::collection::vec(path(), 1..60), ahead in -5_000..5_000_i64,
    ) {
        let found = run(&paths, Span::from_micros(ahead), true);
        let counts = found.counts;
        prop_assert_eq!(counts.sent, paths.len() as u64);
        prop_assert_eq!(counts.sent, counts.answered + counts.lost);
        prop_assert_eq!(counts.lost, counts.lost_there + counts.lost_back + counts.undecided);
        let arrived = paths.iter().filter(|path| path.there.is_some() && path.back.is_some());
        prop_assert_eq!(counts.answered, arrived.clone().count() as u64);
        let truth = arrived.clone().map(|path| path.there.unwrap() + ahead).min();
        let least = found.there.delay().summary().map(|delay| delay.min);
        prop_assert_eq!(least, truth.map(|micros| micros * 1000));
        let truth = arrived.map(|path| path.there.unwrap() + path.back.unwrap()).max();
        let longest = found.round_trip.summary().map(|trip| trip.max);
        prop_assert_eq!(longest, truth.map(|micros| micros * 1000));
    }

    #[test]
    fn losses_without_reordering_are_assigned_exactly(
        lost in prop::collection::vec((any::<bool>(), any::<bool>()), 1..60),
    ) {
        let way = |lost: bool, micros| (!lost).then_some(micros);
        let paths: Vec<_> = lost
            .iter()
            .map(|&(there, back)| Path { there: way(there, 300), back: way(back, 700) })
            .collect();
        let last = paths.iter().rposition(|path| path.there.is_some() && path.back.is_some());
        let located = &paths[..last.unwrap_or(0)];
        let found = run(&paths, Span::ZERO, true);
        let there = located.iter().filter(|path| path.there.is_none()).count() as u64;
        let back = located.iter().filter(|it| it.there.is_some() && it.back.is_none()).count();
        prop_assert_eq!((found.counts.lost_there, found.counts.lost_back), (there, back as u64));
    }
}
