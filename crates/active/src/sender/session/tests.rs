//! A session exchanges packets and answers with a reflector.

use std::net::{Ipv4Addr, SocketAddrV4};

use wirestamp_metrics::{TwoWayCounts, TwoWayResult};
use wirestamp_packet::stamp::Reflected;

use super::*;
use crate::reflector::{Arrival, Reflector};
use crate::sender::{ClockExchange, PacketSchedule};
use crate::system_clock::SystemClock;

const MILLI: i64 = 1_000_000;
const BEGIN: i64 = 1_700_000_000_000_000_000;
/// From the program's send time to the kernel's.
const LATER: i64 = 3_000;
const THERE: i64 = 400_000;
const BACK: i64 = 600_000;

const TO: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 7), 862));

struct At(i64, ClockState);

impl SystemClock for At {
    fn now(&self) -> Time<Utc> {
        Time::from_nanos(self.0)
    }

    fn state(&mut self) -> ClockState {
        self.1
    }
}

fn right() -> ClockState {
    ClockState { synchronised: true, error: Span::from_micros(20), tai: None }
}

fn key() -> Key {
    Key::new(b"a key that sender and reflector share").unwrap()
}

fn test(format: PacketFormat) -> TestConfig {
    TestConfig {
        to: TO,
        from: ([192, 0, 2, 1], 4000).into(),
        packets: None,
        lasting: None,
        schedule: PacketSchedule::Periodic(std::time::Duration::from_millis(1)),
        timeout: Span::from_millis(100),
        format,
        same_clock: false,
    }
}

/// Sends packets. Packets in `lost` do not arrive, and the answers to packets in `lost_answers` neither.
fn exchange(format: PacketFormat, packets: u64, lost: &[u64], lost_answers: &[u64]) -> TestReport {
    let mut reflector = Reflector::new(format.key.clone());
    let mut session = Session::new(&test(format), right());
    let (mut packet, mut answer) = (Vec::new(), Vec::new());
    for nth in 0..=packets {
        if nth == packets {
            if !session.needs_closing() {
                break;
            }
            session.close();
        }
        let now = BEGIN + i64::try_from(nth).unwrap() * MILLI;
        let sequence = session.packet(Time::from_nanos(now), &mut packet);
        assert_eq!(sequence, nth);
        session.left(sequence, Time::from_nanos(now + LATER));
        let came = now + LATER + THERE;
        if lost.contains(&nth) {
            continue;
        }
        let arrival = Arrival {
            bytes: &packet,
            from: ([192, 0, 2, 1], 4000).into(),
            to: None,
            at: Time::from_nanos(came),
            ttl: 64,
            class: 0,
        };
        let mut clock = At(came + 10_000, right());
        let reflection = reflector.reflect(&arrival, &mut clock, &mut answer).unwrap();
        let left = came + 10_000 + LATER;
        reflector.left(&reflection.session, reflection.number, Time::from_nanos(left));
        if !lost_answers.contains(&nth) {
            let back = Time::from_nanos(left + BACK);
            session.answer(&answer, TO, back).unwrap();
        }
        session.advance(Time::from_nanos(now + MILLI));
    }
    session.finish()
}

#[test]
fn delays_use_kernel_stamps_of_both_sides() {
    let report = exchange(PacketFormat::default(), 50, &[], &[]);
    let TwoWayResult { counts, is_counted, there, back, round_trip, .. } = &report.both;
    assert_eq!((counts.sent, counts.answered, counts.lost, is_counted), (50, 50, 0, &true));
    for (quality, truth) in [(there, THERE), (back, BACK)] {
        let delay = quality.delay().summary().unwrap();
        assert_eq!((delay.count, delay.min, delay.max), (50, truth, truth));
        let error = quality.clock_error().unwrap().max;
        assert!((40_000..41_000).contains(&error.as_nanos()), "{error}");
    }
    let trip = round_trip.summary().unwrap();
    assert_eq!((trip.min, trip.max), (THERE + BACK, THERE + BACK));
    assert_eq!((report.stamped_by_kernel, report.returned_by_kernel), (50, 50));
    assert_eq!(report.unknown_delay(), None);
    assert!(report.peer.stamps.is_some_and(|how| how.received_how == 2));
}

#[test]
fn losses_are_counted_by_direction() {
    let report = exchange(PacketFormat::default(), 20, &[3, 4, 9], &[5, 14]);
    let TwoWayCounts { answered, lost, lost_there, lost_back, undecided, .. } = report.both.counts;
    assert_eq!((answered, lost, lost_there, lost_back, undecided), (15, 5, 3, 2, 0));
    // The follow-ups of answers 4 and 13 were in lost answers.
    assert_eq!(report.returned_by_kernel, 13);
}

/// An answer that copies the packet's number, with the follow-up of answer `before`.
fn copied(packet: &[u8], before: u32, at: Time<Utc>) -> Vec<u8> {
    let sent = Sent::parse(packet, Mode::Open).unwrap();
    let time = Stamped::of(at, Format::Ntp, Span::ZERO);
    let mut answer = Vec::new();
    let Sent { sequence, error, .. } = sent;
    Reflected { sequence, timestamp: time, error, received: time, sent, ttl: 64 }
        .write(Mode::Open, &mut answer);
    let value = &FollowUp { number: before, left: time, how: 2 }.encode();
    let flags = ExtensionFlags::default();
    Extension { flags, kind: FollowUp::KIND, value }.write(&mut answer);
    answer
}

#[test]
fn copying_reflector_leaves_loss_direction_undecided() {
    for (lost, is_counted) in [(&[][..], true), (&[2], false)] {
        let mut session = Session::new(&test(PacketFormat::default()), right());
        let (mut packet, mut before) = (Vec::new(), 0);
        for nth in 0..6 {
            let now = Time::from_nanos(BEGIN + i64::from(nth) * MILLI);
            session.packet(now, &mut packet);
            if nth > 0 && !lost.contains(&nth) {
                session.answer(&copied(&packet, before, now), TO, now).unwrap();
                before = nth;
            }
        }
        let both = session.finish().both;
        let undecided = if is_counted { 0 } else { 2 };
        assert_eq!((both.is_counted, both.counts.undecided), (is_counted, undecided));
    }
}

#[test]
fn twamp_light_and_authenticated_packets_measure_equally() {
    let light = PacketFormat { light: true, length: 100, ..PacketFormat::default() };
    let signed =
        PacketFormat { key: Some(key()), length: 300, dscp: Some(46), ..PacketFormat::default() };
    for (format, has_stamp) in [(light, false), (signed, true)] {
        let report = exchange(format, 10, &[], &[]);
        assert_eq!(report.both.counts.answered, 10);
        assert_eq!(report.both.there.delay().summary().unwrap().max, THERE);
        assert_eq!(report.returned_by_kernel, if has_stamp { 10 } else { 0 });
        // Without follow-ups, the delay of answers includes the duration of sending.
        let back = report.both.back.delay().summary().unwrap().max;
        assert_eq!(back, if has_stamp { BACK } else { BACK + LATER });
    }
}

#[test]
fn packets_have_the_requested_length() {
    for (asked, has_key, length) in
        [(44, false, 72), (73, false, 76), (76, false, 76), (200, false, 200), (44, true, 160)]
    {
        let format =
            PacketFormat { length: asked, key: has_key.then(key), ..PacketFormat::default() };
        let mut session = Session::new(&test(format), right());
        let mut packet = Vec::new();
        session.packet(Time::from_nanos(BEGIN), &mut packet);
        assert_eq!(packet.len(), length);
    }
}

#[test]
fn unsynchronized_clock_is_reported() {
    let free = ClockState { synchronised: false, error: Span::from_secs(16), tai: None };
    let mut session = Session::new(&test(PacketFormat::default()), free);
    let mut packet = Vec::new();
    session.packet(Time::from_nanos(BEGIN), &mut packet);
    let reason = session.finish().unknown_delay().unwrap();
    assert!(reason.starts_with("this machine's clock"), "{reason}");
}

#[test]
fn invalid_answers_are_counted() {
    let format = PacketFormat { key: Some(key()), ..PacketFormat::default() };
    let mut session = Session::new(&test(format), right());
    let at = Time::from_nanos(BEGIN);
    assert!(session.answer(&[0; 30], TO, at).is_err());
    assert!(session.answer(&[0; 112], TO, at).is_err());
    let report = session.finish();
    assert_eq!((report.not_stamp, report.forged), (1, 1));
}

#[test]
fn answer_gives_clock_offset_and_error_bounds() {
    for (ahead, is_wrong) in [(30_000, false), (5 * MILLI, true)] {
        let mut reflector = Reflector::new(None);
        let format = PacketFormat { light: true, ..PacketFormat::default() };
        let mut session = Session::new(&test(format), right());
        let (mut packet, mut answer) = (Vec::new(), Vec::new());
        session.packet(Time::from_nanos(BEGIN), &mut packet);
        let arrival = Arrival {
            bytes: &packet,
            from: ([192, 0, 2, 1], 4000).into(),
            to: None,
            at: Time::from_nanos(BEGIN + THERE + ahead),
            ttl: 64,
            class: 0,
        };
        let mut clock = At(BEGIN + THERE + ahead + 10_000, right());
        reflector.reflect(&arrival, &mut clock, &mut answer).unwrap();
        let back = Time::from_nanos(BEGIN + THERE + 10_000 + BACK);
        session.answer(&answer, TO, back).unwrap();
        let exchange = ClockExchange::of(&session.next_answer().unwrap()).unwrap();
        // Half of the difference of both delays.
        assert_eq!(exchange.ahead.as_nanos(), ahead - (BACK - THERE) / 2);
        assert_eq!((exchange.at, exchange.bound.as_nanos()), (back, (THERE + BACK) / 2 + 1));
        assert_eq!(exchange.own, Some(right().error));
        let theirs = exchange.theirs.unwrap();
        assert!(theirs >= right().error && theirs < right().error + Span::from_micros(1));
        assert_eq!(exchange.contradicts_the_clocks(), is_wrong);
    }
}

#[test]
fn packet_without_a_stamp_has_the_error_of_the_system_call() {
    let format = PacketFormat { light: true, ..PacketFormat::default() };
    for (left, error) in [(Some(LATER), 0), (None, 2 * LATER)] {
        let mut reflector = Reflector::new(None);
        let config = TestConfig { same_clock: true, ..test(format.clone()) };
        let mut session = Session::new(&config, right());
        let (mut packet, mut answer) = (Vec::new(), Vec::new());
        let at = |nanos| Time::from_nanos(BEGIN + nanos);
        let sequence = session.packet(at(0), &mut packet);
        session.sent(sequence, at(2 * LATER));
        left.into_iter().for_each(|left| session.left(sequence, at(left)));
        let arrival = Arrival {
            bytes: &packet,
            from: ([192, 0, 2, 1], 4000).into(),
            to: None,
            at: at(THERE),
            ttl: 64,
            class: 0,
        };
        let mut clock = At(BEGIN + THERE, right());
        let reflection = reflector.reflect(&arrival, &mut clock, &mut answer).unwrap();
        assert_eq!(reflection.stated, at(THERE));
        session.answer(&answer, TO, at(THERE + BACK)).unwrap();
        let answer = session.next_answer().unwrap();
        let sent = answer.sent.unwrap();
        assert_eq!((sent.utc, sent.error), (at(left.unwrap_or(0)), Span::from_nanos(error)));
        assert_eq!(answer.mark, reflection.made.0);
    }
}
