use std::net::{Ipv4Addr, SocketAddrV4};

use wirestamp_metrics::{TwoWayCounts, TwoWayResult};

use super::*;
use crate::reflector::{Arrival, Reflector};
use crate::sender::{Exchange, Rhythm};
use crate::system_clock::SystemClock;

const MILLI: i64 = 1_000_000;
const BEGIN: i64 = 1_700_000_000_000_000_000;
/// From the program's time of sending to the kernel's.
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

fn test(form: Form) -> Test {
    Test {
        to: TO,
        from: ([192, 0, 2, 1], 4000).into(),
        packets: None,
        lasting: None,
        rhythm: Rhythm::Periodic(std::time::Duration::from_millis(1)),
        timeout: Span::from_millis(100),
        form,
        same_clock: false,
    }
}

/// Sends packets, of which those in `lost` never arrive, and the answers to those in `unheard` neither.
fn exchange(form: Form, packets: u64, lost: &[u64], unheard: &[u64]) -> Report {
    let mut reflector = Reflector::new(form.key.clone());
    let mut session = Session::new(&test(form), right());
    let (mut packet, mut answer) = (Vec::new(), Vec::new());
    for nth in 0..=packets {
        if nth == packets {
            if !session.wants_closing() {
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
        if !unheard.contains(&nth) {
            let back = Time::from_nanos(left + BACK);
            session.answer(&answer, TO, back).unwrap();
        }
        session.advance(Time::from_nanos(now + MILLI));
    }
    session.finish()
}

#[test]
fn delays_are_from_the_kernels_stamps_of_both_sides() {
    let report = exchange(Form::default(), 50, &[], &[]);
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
fn losses_are_told_apart_by_direction() {
    let report = exchange(Form::default(), 20, &[3, 4, 9], &[5, 14]);
    let TwoWayCounts { answered, lost, lost_there, lost_back, undecided, .. } = report.both.counts;
    assert_eq!((answered, lost, lost_there, lost_back, undecided), (15, 5, 3, 2, 0));
    // The word of answers 4 and 13 was in those that were lost.
    assert_eq!(report.returned_by_kernel, 13);
}

/// An answer that copies the packet's number, and tells when `before` left.
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
fn a_reflector_that_copies_numbers_does_not_tell_where_packets_were_lost_whatever_it_says() {
    for (lost, is_counted) in [(&[][..], true), (&[2], false)] {
        let mut session = Session::new(&test(Form::default()), right());
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
fn twamp_light_and_authenticated_packets_measure_the_same() {
    let light = Form { light: true, length: 100, ..Form::default() };
    let signed = Form { key: Some(key()), length: 300, dscp: Some(46), ..Form::default() };
    for (form, is_told) in [(light, false), (signed, true)] {
        let report = exchange(form, 10, &[], &[]);
        assert_eq!(report.both.counts.answered, 10);
        assert_eq!(report.both.there.delay().summary().unwrap().max, THERE);
        assert_eq!(report.returned_by_kernel, if is_told { 10 } else { 0 });
        // Without word of when answers left, they seem to take what sending takes more.
        let back = report.both.back.delay().summary().unwrap().max;
        assert_eq!(back, if is_told { BACK } else { BACK + LATER });
    }
}

#[test]
fn packets_are_as_long_as_asked_for() {
    for (asked, has_key, length) in
        [(44, false, 72), (73, false, 76), (76, false, 76), (200, false, 200), (44, true, 160)]
    {
        let form = Form { length: asked, key: has_key.then(key), ..Form::default() };
        let mut session = Session::new(&test(form), right());
        let mut packet = Vec::new();
        session.packet(Time::from_nanos(BEGIN), &mut packet);
        assert_eq!(packet.len(), length);
    }
}

#[test]
fn a_clock_that_is_not_synchronised_is_told_of() {
    let free = ClockState { synchronised: false, error: Span::from_secs(16), tai: None };
    let mut session = Session::new(&test(Form::default()), free);
    let mut packet = Vec::new();
    session.packet(Time::from_nanos(BEGIN), &mut packet);
    let reason = session.finish().unknown_delay().unwrap();
    assert!(reason.starts_with("this machine's clock"), "{reason}");
}

#[test]
fn what_is_no_answer_is_counted() {
    let form = Form { key: Some(key()), ..Form::default() };
    let mut session = Session::new(&test(form), right());
    let at = Time::from_nanos(BEGIN);
    assert!(session.answer(&[0; 30], TO, at).is_err());
    assert!(session.answer(&[0; 112], TO, at).is_err());
    let report = session.finish();
    assert_eq!((report.not_stamp, report.forged), (1, 1));
}

#[test]
fn an_answer_tells_how_far_the_clocks_are_apart_and_what_they_claim() {
    for (ahead, is_wrong) in [(30_000, false), (5 * MILLI, true)] {
        let mut reflector = Reflector::new(None);
        let form = Form { light: true, ..Form::default() };
        let mut session = Session::new(&test(form), right());
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
        let exchange = Exchange::of(&session.heard().unwrap()).unwrap();
        // Half of what the way back takes longer.
        assert_eq!(exchange.ahead.as_nanos(), ahead - (BACK - THERE) / 2);
        assert_eq!((exchange.at, exchange.bound.as_nanos()), (back, (THERE + BACK) / 2 + 1));
        assert_eq!(exchange.own, Some(right().error));
        let theirs = exchange.theirs.unwrap();
        assert!(theirs >= right().error && theirs < right().error + Span::from_micros(1));
        assert_eq!(exchange.contradicts_the_clocks(), is_wrong);
    }
}
