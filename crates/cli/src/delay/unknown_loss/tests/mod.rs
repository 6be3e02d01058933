//! Tests of unknown loss and its reasons.

mod changed_flows;
mod segments;
mod twice;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_metrics::{Observation, Outcome};
use wirestamp_packet::PacketId;

use super::*;

const TCP: u8 = 6;
const CALL: FlowKey = flow([10, 0, 0, 1], 5000, [10, 0, 1, 1], 6000, UDP);

const fn flow(from: [u8; 4], sport: u16, to: [u8; 4], dport: u16, protocol: u8) -> FlowKey {
    FlowKey { source: end(from, sport), destination: end(to, dport), protocol }
}

const fn end([a, b, c, d]: [u8; 4], port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), port)
}

fn seen(flow: FlowKey) -> Observation {
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    let stamp = Stamp { raw, utc: Time::from_nanos(0), error: Span::ZERO };
    Observation { id: PacketId(1), flow, length: 60, stamp }
}

fn matched(flow: FlowKey, sequence: u64) -> Outcome {
    let (sent, received) = (seen(flow), seen(flow));
    let (delay, error) = (Span::from_millis(1), Span::ZERO);
    let (reordered, since_previous, until_next) = (false, None, None);
    Outcome::Matched {
        sent,
        received,
        sequence,
        delay,
        error,
        reordered,
        since_previous,
        until_next,
    }
}

/// Packets of one flow at A that were not matched, and of others at B.
fn unmatched(at_a: (FlowKey, u64), at_b: &[(FlowKey, u64)]) -> FlowTable {
    let mut flows = FlowTable::new(100);
    for sequence in 0..at_a.1 {
        flows.record(&Outcome::Lost { sent: seen(at_a.0), sequence });
    }
    for (flow, packets) in at_b {
        (0..*packets).for_each(|_| flows.record(&Outcome::Unexpected { received: seen(*flow) }));
    }
    flows
}

fn reason(at_b: &[(FlowKey, u64)], a: PointState, b: PointState) -> Option<UnknownLoss> {
    UnknownLoss::of(&unmatched((CALL, 100), at_b), &[a, b])
}

fn with(change: fn(&mut PointState)) -> PointState {
    let mut state = PointState::default();
    change(&mut state);
    state
}

fn plain(at_b: FlowKey) -> Option<UnknownLoss> {
    reason(&[(at_b, 100)], PointState::default(), PointState::default())
}

#[test]
fn reasons_are_those_of_the_flows() {
    let nat = flow([192, 0, 2, 1], 40_000, [10, 0, 1, 1], 6000, UDP);
    assert_eq!(plain(nat), Some(UnknownLoss::OtherAddresses));
    let gre = flow([10, 9, 0, 1], 0, [10, 9, 0, 2], 0, 47);
    assert_eq!(plain(gre), Some(UnknownLoss::Tunnel("GRE")));
    let vxlan = flow([10, 9, 0, 1], 33_000, [10, 9, 0, 2], 4789, UDP);
    assert_eq!(plain(vxlan), Some(UnknownLoss::Tunnel("VXLAN")));
    let answers = flow([10, 0, 1, 1], 6000, [10, 0, 0, 1], 5000, UDP);
    assert_eq!(plain(answers), Some(UnknownLoss::OtherDirection));
    let other = flow([10, 5, 0, 1], 1, [10, 5, 0, 2], 2, 6);
    assert_eq!(plain(other), Some(UnknownLoss::NothingInCommon));
    assert_eq!(plain(CALL), Some(UnknownLoss::Changed));
}

#[test]
fn reasons_are_those_of_the_captures() {
    let all = PointState::default;
    let fragments = with(|state| state.fragments = 50);
    assert_eq!(reason(&[(CALL, 50)], all(), fragments), Some(UnknownLoss::Fragments));
    let cut = with(|state| state.cut = 100);
    assert_eq!(reason(&[(CALL, 100)], cut, all()), Some(UnknownLoss::CutShort));
    let not_ip = with(|state| state.unidentified = 100);
    assert_eq!(reason(&[], all(), not_ip), Some(UnknownLoss::NotIp));
}

#[test]
fn loss_is_known_where_b_has_no_such_traffic_or_packets_match() {
    let other = flow([10, 5, 0, 1], 1, [10, 5, 0, 2], 2, 6);
    let of = |at_b: &[(FlowKey, u64)]| reason(at_b, PointState::default(), PointState::default());
    assert_eq!(of(&[(other, 49)]), None);
    assert_eq!(of(&[]), None);
    let mut flows = unmatched((CALL, 90), &[(other, 90)]);
    (0..10).for_each(|sequence| flows.record(&matched(CALL, sequence)));
    let points = [PointState::default(), PointState::default()];
    assert_eq!(UnknownLoss::of(&flows, &points), None);
}

#[test]
fn direction_of_b_is_suspected_in_the_text() {
    let text = UnknownLoss::NothingAtB(Method::Ring).to_string();
    assert!(text.contains("-Q inout,") && text.contains("-Q in "), "{text}");
    let text = UnknownLoss::NothingAtB(Method::XdpPass).to_string();
    assert!(text.contains("-Q inout --method ring,"), "{text}");
}
