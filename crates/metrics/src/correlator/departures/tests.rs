use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_packet::{FlowKey, PacketId};

use super::*;
use crate::Observation;

fn departure(number: u64, port: u16) -> Observation {
    let stamp = Stamp {
        raw: RawStamp { domain: Domain::Counter, value: 0 },
        utc: Time::from_nanos(0),
        error: Span::ZERO,
    };
    let flow = FlowKey {
        source: ([10, 77, 1, 1], port).into(),
        destination: ([10, 77, 2, 2], 1).into(),
        protocol: 17,
    };
    Observation { id: PacketId(number), flow, length: 60, stamp }
}

/// Adds a departure once there is room for its flow; returns how many were removed for it.
fn add(departures: &mut Departures, sent: &Observation) -> usize {
    let mut left = 0;
    loop {
        if let Some(flow) = departures.flow(&sent.flow, true) {
            departures.push(sent, flow, sent.stamp.utc);
            return left;
        }
        departures.pop().expect("flows without departures make room");
        left += 1;
    }
}

/// Adds, matches and removes a departure; returns its delay variation.
fn pass(departures: &mut Departures, sent: &Observation) -> Option<Span> {
    let now = sent.stamp.utc;
    add(departures, sent);
    let known = departures.of(sent.id).expect("it was added");
    let open = departures.open(known, now, now).expect("it was not matched");
    let matched = departures
        .set_matched(&open, Arrived { place: now, delay: Span::ZERO })
        .expect("it is open");
    departures.pop();
    matched.since_previous
}

#[test]
fn idle_flow_is_kept_until_room_is_needed() {
    let mut departures = Departures::new(100, 2);
    let mut pass = |id, port| pass(&mut departures, &departure(id, port));
    assert_eq!([pass(1, 1), pass(2, 2)], [None, None]);
    assert_eq!(pass(3, 1), Some(Span::ZERO));
    // Flow 2 has been idle for the longest time.
    assert_eq!([pass(4, 3), pass(5, 1)], [None, Some(Span::ZERO)]);
    assert_eq!([pass(6, 2), pass(7, 1)], [None, Some(Span::ZERO)]);
}

#[test]
fn sequence_grows_after_a_flow_was_removed() {
    let mut departures = Departures::new(100, 2);
    let mut places = Vec::new();
    for port in [1, 1, 2, 3, 4, 1] {
        add(&mut departures, &departure(port.into(), port));
        let Some((_, Departed::Unmatched(left))) = departures.pop() else {
            panic!("it was added, and not matched");
        };
        places.extend((port == 1).then_some(left.sequence));
    }
    assert_eq!(places[..2], [0, 1]);
    assert!(places[2] > 1, "{places:?}");
}

#[test]
fn new_flow_waits_for_an_idle_one() {
    let mut departures = Departures::new(100, 10);
    for port in 0..1000 {
        let left = add(&mut departures, &departure(port.into(), port));
        assert_eq!(left, usize::from(port >= 10));
        assert_eq!(departures.flows.len(), usize::from(port + 1).min(10));
    }
}

#[test]
fn removed_departures_leave_no_entries() {
    let mut departures = Departures::new(1000, 1);
    for id in 0..1000 {
        add(&mut departures, &departure(id % 700, 1));
    }
    let of = |departures: &Departures, id| departures.of(PacketId(id)).is_some();
    assert!((0..700).all(|id| of(&departures, id)) && !of(&departures, 700));
    assert_eq!(departures.shared.len(), 300);
    while departures.pop().is_some() {}
    assert!((0..700).all(|id| !of(&departures, id)));
    assert_eq!(departures.shared.len(), 0);
}

#[test]
fn departures_are_found_in_any_order() {
    let mut departures = Departures::new(1000, 1);
    for id in 0..1000 {
        add(&mut departures, &departure(id, 1));
    }
    // In order, with swapped neighbours, with gaps, and with distant numbers.
    let now = Time::from_nanos(0);
    let arrived = Arrived { place: now, delay: Span::ZERO };
    for id in (0..100).chain([101, 100, 102, 110, 111, 900, 103, 999, 104]) {
        let known = departures.of(PacketId(id)).expect("it was added");
        let open = departures.open(known, now, now).expect("it was not matched");
        assert_eq!(open.sent.id, PacketId(id));
        departures.set_matched(&open, arrived).expect("it is open");
        let known = departures.of(PacketId(id)).expect("it is there still");
        assert!(departures.open(known, now, now).is_none());
        assert_eq!(departures.matched(known, now).map(|sent| sent.id), Some(PacketId(id)));
    }
    assert!(departures.of(PacketId(1000)).is_none());
}
