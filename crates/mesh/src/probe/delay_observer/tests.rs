//! Observed packets in batches: their times, losses and answers, and a clock that is set back.

use std::net::SocketAddr;

use wirestamp_capture::CapturedPacket;
use wirestamp_clock::{Domain, RawStamp, Stamp};
use wirestamp_packet::{FlowKey, LinkType, PacketId};

use super::*;
use crate::protocol::{TestAnswer, TestAnswers};

const CLOCK: MachineClock = MachineClock { machine: [1; 16], error: None };

fn at(millis: i64) -> Time<Utc> {
    Time::from_nanos(millis * 1_000_000)
}

fn observation(millis: i64) -> Observation {
    let end = SocketAddr::from(([192, 0, 2, 1], 5004));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(millis.unsigned_abs()),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: at(millis), error: Span::ZERO },
    }
}

fn watch(begin: i64) -> DelayObserver {
    DelayObserver::new(Sampling::share(1.0).unwrap(), at(begin))
}

fn look(watch: &mut DelayObserver, millis: impl IntoIterator<Item = i64>) {
    millis.into_iter().for_each(|millis| watch.see(&observation(millis)));
}

fn one(batches: Vec<Batch>) -> Batch {
    let [batch] = batches.try_into().unwrap();
    batch
}

/// Times of the packets in a batch.
fn passed(batch: &Batch) -> (Vec<i64>, ObservationBatch) {
    let seen = ObservationBatch::decode(&batch.body).unwrap();
    let times = seen.observations.iter().map(|it| it.stamp.utc.as_nanos() / 1_000_000);
    (times.collect(), seen)
}

#[test]
fn each_packet_is_in_the_correct_batch() {
    let mut watch = watch(100);
    // The first two packets passed before the observer began.
    look(&mut watch, [98, 99, 100, 250, 349, 350, 351]);
    assert_eq!(watch.batches(at(299), CLOCK), []);
    let first = one(watch.batches(at(350), CLOCK));
    let (times, seen) = passed(&first);
    assert_eq!((times, seen.begin), (vec![100, 250, 349], Some(at(100))));
    assert_eq!((first.items, first.times), (3, 100_000_000..=350_000_000));
    look(&mut watch, [400]);
    let second = one(watch.batches(at(550), CLOCK));
    let (times, seen) = passed(&second);
    assert_eq!((times, seen.begin, seen.complete_until), (vec![350, 351, 400], None, at(550)));
    assert_eq!(second.times, 350_000_000..=550_000_000);
}

#[test]
fn merged_segment_counts_as_the_packets_of_the_network() {
    // Ethernet, IPv4, TCP and 3000 bytes of payload.
    let ip = [0x45, 0, 0x0b, 0xe0, 0, 1, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    let tcp = [0, 80, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0];
    let frame = [&[0; 12], &[8, 0][..], &ip, &tcp, &[7; 3000]].concat();
    let Observation { stamp, .. } = observation(150);
    let mut watch = watch(100);
    watch.packet(&ObservedPacket::new(
        &CapturedPacket { stamp, kernel: None, bytes: &frame, length: 3054 },
        LinkType::Ethernet,
    ));
    let (times, seen) = passed(&one(watch.batches(at(300), CLOCK)));
    assert_eq!(times, [150, 150, 150]);
    let lengths: Vec<_> = seen.observations.iter().map(|it| it.length).collect();
    assert_eq!(lengths, [1514, 1514, 134]);
}

#[test]
fn missed_packets_are_reported_before_their_time_is_complete() {
    let mut watch = watch(100);
    let missed = |from, until| CaptureLoss { from: at(from), until: at(until), packets: 2 };
    // Before the observer began, while it began, across the end of the batch, and behind it.
    for it in [missed(50, 99), missed(90, 110), missed(290, 310), missed(300, 320)] {
        watch.missed(it);
    }
    let (_, seen) = passed(&one(watch.batches(at(300), CLOCK)));
    assert_eq!(seen.missed, [missed(100, 110), missed(290, 310)]);
    let (_, seen) = passed(&one(watch.batches(at(500), CLOCK)));
    assert_eq!(seen.missed, [missed(300, 320)]);
}

#[test]
fn missed_packets_are_in_the_batch_in_which_they_begin() {
    let mut watch = watch(100);
    for from in [120, 190] {
        watch.missed(CaptureLoss { from: at(from), until: at(900), packets: 2 });
    }
    look(&mut watch, std::iter::repeat_n(150, PACKETS).chain([160, 195]));
    let batches = watch.batches(at(200), CLOCK);
    let from = |batch| passed(batch).1.missed.iter().map(|it| it.from).collect::<Vec<_>>();
    assert_eq!(batches.iter().map(from).collect::<Vec<_>>(), [[at(120)], [at(190)]]);
}

#[test]
fn batch_size_is_limited() {
    let mut watch = watch(100);
    look(&mut watch, std::iter::repeat_n(100, PACKETS));
    assert_eq!(watch.batches(at(100), CLOCK), []);
    assert_eq!(one(watch.batches(at(101), CLOCK)).items, PACKETS as u64);
    let most = i64::try_from(PACKETS).unwrap();
    let many = (0..2 * most).map(|nth| 110 + nth / 1000).chain([105]);
    look(&mut watch, many);
    let batches = watch.batches(at(200), CLOCK);
    let sizes: Vec<_> = batches.iter().map(|it| it.items).collect();
    assert_eq!(sizes, [PACKETS as u64, PACKETS as u64, 1]);
    let times: Vec<_> = batches.iter().map(|it| it.times.clone()).collect();
    assert_eq!(times[0].start(), &101_000_000);
    assert!(times.windows(2).all(|it| it[0].end() == it[1].start()), "{times:?}");
    assert_eq!((passed(&batches[0]).0[0], times[2].end()), (105, &200_000_000));
}

#[test]
fn clock_set_back_leaves_a_gap() {
    let mut watch = watch(1000);
    look(&mut watch, [1100]);
    one(watch.batches(at(1200), CLOCK));
    look(&mut watch, [1150, 900, 901, 1300]);
    let (times, seen) = passed(&one(watch.batches(at(1400), CLOCK)));
    assert_eq!((times, seen.begin), (vec![], Some(at(1400))));
    look(&mut watch, [1500]);
    let (times, seen) = passed(&one(watch.batches(at(1600), CLOCK)));
    assert_eq!((times, seen.begin), (vec![1500], None));
}

#[test]
fn answers_after_a_clock_is_set_back_are_discarded() {
    let answer = |millis| {
        AnswerEvent::Received(TestAnswer {
            identity: PacketId(1),
            sent: at(millis),
            round_trip: Span::from_millis(5),
            back: Span::from_millis(2),
            error: Span::ZERO,
        })
    };
    let mut watch = DelayObserver::of_test(at(0));
    one(watch.batches(at(20_000), CLOCK));
    // Its answer is late.
    watch.answers(answer(10_000));
    let (_, seen) = passed(&one(watch.batches(at(21_000), CLOCK)));
    assert_eq!((seen.answers.unwrap().received.len(), seen.begin), (1, None));
    (0..1000).for_each(|millis| watch.answers(answer(millis)));
    let log = watch.answers.as_mut().unwrap();
    assert_eq!(log.take(at(21_000)).received, []);
    let (_, seen) = passed(&one(watch.batches(at(22_000), CLOCK)));
    assert_eq!((seen.answers, seen.begin), (Some(AnswerLog::none()), Some(at(22_000))));
}

#[test]
fn answers_of_a_test_are_in_the_last_batch_of_a_time_range() {
    let mut watch = DelayObserver::of_test(at(100));
    look(&mut watch, [150]);
    watch.answers(AnswerEvent::CompleteUntil(at(120)));
    let (times, seen) = passed(&one(watch.batches(at(300), CLOCK)));
    let answers = seen.answers.unwrap();
    assert_eq!((times, answers.complete_until), (vec![150], Some(at(120))));
    look(&mut watch, std::iter::repeat_n(350, PACKETS).chain([360]));
    watch.answers(AnswerEvent::CompleteUntil(at(200)));
    watch.answers(AnswerEvent::Returned(None));
    let batches = watch.batches(at(500), CLOCK);
    let answers: Vec<_> = batches.iter().map(|it| passed(it).1.answers.unwrap()).collect();
    let of = |it: &TestAnswers| (it.complete_until, it.sending);
    let expected = [(None, Some(Span::ZERO)), (Some(at(200)), None)];
    assert_eq!(answers.iter().map(of).collect::<Vec<_>>(), expected);
    // Packets of other points have no answers.
    let mut other = DelayObserver::new(Sampling::share(1.0).unwrap(), at(100));
    other.answers(AnswerEvent::CompleteUntil(at(120)));
    assert_eq!(passed(&one(other.batches(at(300), CLOCK))).1.answers, None);
}

#[test]
fn stopped_observer_sends_a_closing_batch() {
    let mut watch = watch(100);
    look(&mut watch, [120, 160]);
    let (batches, end) = Box::new(watch).close(at(150), CLOCK);
    let [(times, last), (nothing, closing)] = [passed(&batches[0]), passed(&batches[1])];
    assert_eq!((times, last.begin, last.complete_until), (vec![120], Some(at(100)), at(150)));
    assert_eq!((nothing, end), (vec![], at(150) + CLOSING));
    assert_eq!((closing.begin, closing.complete_until), (Some(end), end));
    // An observer that is detached before it begins does not delay the next one.
    let next = DelayObserver::new(Sampling::share(1.0).unwrap(), end);
    assert_eq!(Box::new(next).close(at(200), CLOCK), (vec![], end));
}
