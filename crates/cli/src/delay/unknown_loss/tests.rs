//! Tests of unknown loss and its reasons.

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
fn other_segments_make_the_loss_of_tcp_unknown() {
    let tcp = FlowKey { protocol: TCP, ..CALL };
    let mut flows = unmatched((tcp, 30), &[(tcp, 4)]);
    (0..100).for_each(|sequence| {
        flows.record(&Outcome::Lost { sent: seen(CALL), sequence });
    });
    let points = [PointState::default(), PointState::default()];
    let reason = UnknownLoss::of(&flows, &points).unwrap();
    assert_eq!(reason, UnknownLoss::OtherSegments);
    let includes: Vec<_> = flows
        .flows()
        .iter()
        .filter(|(flow, of)| reason.includes(Some(flow), of, &flows))
        .map(|(flow, _)| flow.protocol)
        .collect();
    assert_eq!(includes, [TCP]);
    assert!(reason.includes(None, &flows.total(), &flows));
    assert!(reason.to_string().contains("ethtool -K"), "{reason}");
}

/// A device changes one segment, and another one fragments the calls.
#[test]
fn other_segments_do_not_hide_other_reasons() {
    let tcp = FlowKey { protocol: TCP, ..CALL };
    let mut flows = unmatched((CALL, 100), &[(CALL, 100)]);
    flows.record(&Outcome::Lost { sent: seen(tcp), sequence: 0 });
    flows.record(&Outcome::Unexpected { received: seen(tcp) });
    let points = [PointState::default(), with(|state| state.fragments = 100)];
    let reason = UnknownLoss::of(&flows, &points).unwrap();
    assert_eq!(reason, UnknownLoss::Fragments);
    let all = flows.flows();
    assert!(all.iter().all(|(flow, of)| reason.includes(Some(flow), of, &flows)));
}

#[test]
fn segments_outside_the_other_capture_are_no_others() {
    let tcp = FlowKey { protocol: TCP, ..CALL };
    let mut flows = unmatched((tcp, 30), &[]);
    let late = Outcome::Unexpected { received: seen(tcp) };
    flows.record(&late);
    flows.note_outside_capture(&late);
    let points = [PointState::default(), PointState::default()];
    assert_eq!(UnknownLoss::of(&flows, &points), None);
}

#[test]
fn segments_behind_nat_are_compared_over_all_flows() {
    let [tcp, nat] = [5000, 6000].map(|port| flow([10, 0, 0, 1], port, [10, 0, 1, 1], 80, TCP));
    let mut flows = unmatched((tcp, 40), &[(nat, 4)]);
    (0..60).for_each(|sequence| flows.record(&matched(tcp, sequence)));
    let point = || PointState::default().recognising(MatchRule::Payload);
    let reason = UnknownLoss::of(&flows, &[point(), point()]).unwrap();
    assert_eq!(reason, UnknownLoss::OtherSegments);
    assert!(reason.includes(Some(&tcp), flows.flows()[0].1, &flows));
    assert_eq!(UnknownLoss::of(&flows, &[PointState::default(), point()]), None);
}

#[test]
fn segments_that_were_captured_in_part_make_the_loss_unknown() {
    let tcp = FlowKey { protocol: TCP, ..CALL };
    let mut flows = unmatched((tcp, 80), &[]);
    (0..20).for_each(|sequence| flows.record(&matched(tcp, sequence)));
    let points = [PointState::default(), with(|state| state.cut_parts = 80)];
    let reason = UnknownLoss::of(&flows, &points).unwrap();
    assert_eq!(reason, UnknownLoss::CutSegments);
    assert!(reason.includes(Some(&tcp), flows.flows()[0].1, &flows));
    assert!(reason.to_string().contains("snap length"), "{reason}");
}

#[test]
fn merged_datagrams_make_the_loss_of_udp_unknown() {
    let mut flows = unmatched((CALL, 3), &[(CALL, 90)]);
    (0..60).for_each(|sequence| flows.record(&matched(CALL, sequence)));
    let points = || [PointState::default(), PointState::default()];
    assert_eq!(UnknownLoss::of(&flows, &points()), None);
    let [mut a, b] = points();
    a.segmentation.long_datagrams = 3;
    let reason = UnknownLoss::of(&flows, &[a.clone(), b.clone()]).unwrap();
    assert_eq!(reason, UnknownLoss::OtherDatagrams);
    assert!(reason.includes(Some(&CALL), flows.flows()[0].1, &flows));
    assert!(reason.includes(None, &flows.total(), &flows));
    // Datagrams of a network with a larger MTU.
    assert_eq!(UnknownLoss::of(&flows, &[a.clone(), a]), None);
    assert!(reason.to_string().contains("UDP GSO"), "{reason}");
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

/// Flows, each with its lost, matched and unexpected packets.
fn table(flows: &[(FlowKey, [u64; 3])]) -> FlowTable {
    let mut table = FlowTable::new(100);
    for (flow, [lost, arrived, unexpected]) in flows {
        (0..*lost).for_each(|sequence| {
            table.record(&Outcome::Lost { sent: seen(*flow), sequence });
        });
        (0..*arrived).for_each(|sequence| table.record(&matched(*flow, lost + sequence)));
        (0..*unexpected).for_each(|_| {
            table.record(&Outcome::Unexpected { received: seen(*flow) });
        });
    }
    table
}

/// A flow whose packets match, beside others.
const OTHER: FlowKey = flow([10, 0, 0, 9], 700, [10, 0, 1, 9], 800, UDP);
/// The call behind NAT, and another one of the same host.
const NAT: FlowKey = flow([192, 0, 2, 1], 40_000, [10, 0, 1, 1], 6000, UDP);
const SECOND: FlowKey = flow([10, 0, 0, 1], 5002, [10, 0, 1, 1], 6002, UDP);

fn of_some(flows: &[(FlowKey, [u64; 3])], [a, b]: [PointState; 2]) -> Option<UnknownLoss> {
    UnknownLoss::of(&table(flows), &[a, b])
}

fn plain_points() -> [PointState; 2] {
    [PointState::default(), PointState::default()]
}

#[test]
fn changed_flow_beside_matched_ones_has_unknown_loss() {
    let beside = |at_a: [u64; 3], at_b: FlowKey, packets: u64| {
        of_some(&[(CALL, at_a), (OTHER, [1, 300, 0]), (at_b, [0, 0, packets])], plain_points())
    };
    let some = |change| Some(UnknownLoss::OfSomeFlows(change));
    assert_eq!(beside([100, 0, 0], NAT, 90), some(Change::Addresses));
    assert_eq!(beside([100, 5, 0], NAT, 90), some(Change::Addresses));
    let gre = flow([10, 9, 0, 1], 0, [10, 9, 0, 2], 0, 47);
    assert_eq!(beside([100, 0, 0], gre, 90), some(Change::Tunnel("GRE")));
    assert_eq!(beside([100, 0, 90], SECOND, 0), some(Change::Contents));
    let reason = beside([100, 0, 0], NAT, 90).unwrap();
    assert_eq!(reason.cause(), UnknownLoss::OtherAddresses);
    let text = reason.to_string();
    assert!(text.starts_with("loss of some flows") && text.contains("NAT"), "{text}");
}

#[test]
fn only_changed_flows_have_unknown_loss() {
    let flows =
        [(CALL, [100, 0, 0]), (SECOND, [100, 0, 0]), (OTHER, [5, 300, 0]), (NAT, [0, 0, 100])];
    let (flows, [a, b]) = (table(&flows), plain_points());
    let changed = ChangedFlows::of(&flows, [&a, &b]).unwrap();
    assert_eq!(
        [CALL, SECOND, OTHER, NAT].map(|flow| changed.contains(&flow)),
        [true, false, false, false]
    );
    let reason = UnknownLoss::of(&flows, &[a, b]).unwrap();
    assert!(reason.includes(None, &flows.total(), &flows));
    let all = flows.flows();
    assert!(all.iter().all(|(flow, of)| !reason.includes(Some(flow), of, &flows)));
}

#[test]
fn lost_flow_beside_unrelated_packets_is_loss() {
    let beside = |at_b: FlowKey, packets: u64| {
        of_some(
            &[(CALL, [100, 0, 0]), (OTHER, [1, 300, 0]), (at_b, [0, 0, packets])],
            plain_points(),
        )
    };
    let unrelated = flow([10, 5, 0, 1], 1, [10, 5, 0, 2], 2, UDP);
    let answers = flow([10, 0, 1, 1], 6000, [10, 0, 0, 1], 5000, UDP);
    assert_eq!([beside(unrelated, 100), beside(answers, 100)], [None; 2]);
    assert_eq!([beside(NAT, 40), beside(NAT, 300)], [None; 2], "another number of packets");
    let tcp = FlowKey { protocol: TCP, ..NAT };
    assert_eq!(beside(tcp, 100), None, "another protocol");
}

#[test]
fn small_changed_flows_are_no_considerable_part() {
    let of = |lost: u64, matched: u64, at_b: u64| {
        of_some(
            &[(CALL, [lost, 0, 0]), (OTHER, [0, matched, 0]), (NAT, [0, 0, at_b])],
            plain_points(),
        )
    };
    assert_eq!(of(9, 50, 9), None, "too few packets");
    assert_eq!(of(20, 300, 20), None, "a twentieth of all packets");
    assert!(of(40, 300, 40).is_some());
}

#[test]
fn one_translated_call_of_a_lost_trunk_has_unknown_loss() {
    let calls = (0..20).map(|call| {
        (flow([10, 0, 0, 1], 5000 + 2 * call, [10, 0, 1, 1], 6000 + 2 * call, UDP), [50, 0, 0])
    });
    let flows: Vec<_> = calls.chain([(NAT, [0, 0, 50])]).collect();
    let reason = of_some(&flows, plain_points());
    assert_eq!(reason, Some(UnknownLoss::OfSomeFlows(Change::Addresses)));
    assert_eq!(of_some(&flows[..20], plain_points()), None, "B observed nothing");
}

#[test]
fn rule_without_addresses_does_not_suspect_them() {
    let flows = [(CALL, [100, 0, 0]), (OTHER, [1, 300, 0]), (NAT, [0, 0, 100])];
    let points = || plain_points().map(|point| point.recognising(MatchRule::Payload));
    assert_eq!(of_some(&flows, points()), None);
}

#[test]
fn long_packets_of_a_flow_that_were_cut_have_unknown_loss() {
    let flows = [(CALL, [20, 400, 0]), (OTHER, [5, 3000, 0])];
    let cut = |flow: FlowKey, packets: u64| {
        let mut point = PointState::default();
        point.unidentified = packets;
        point.cut_flows.add(flow, packets);
        point
    };
    let at_b = |b| of_some(&flows, [PointState::default(), b]);
    assert_eq!(at_b(cut(CALL, 20)), Some(UnknownLoss::OfSomeFlows(Change::CutShort)));
    assert_eq!(at_b(cut(SECOND, 20)), None, "another flow");
    assert_eq!(of_some(&flows, [cut(CALL, 20), cut(CALL, 20)]), None, "cut at both points");
}

#[test]
fn fragments_of_a_flow_at_one_point_make_its_loss_unknown() {
    let later = FlowKey {
        source: end([10, 0, 0, 1], 0),
        destination: end([10, 0, 1, 1], 0),
        protocol: UDP,
    };
    let fragments = || {
        let mut point = PointState::default();
        point.fragment_flows.add(CALL, 20);
        point.fragment_flows.add(later, 40);
        point
    };
    let some = Some(UnknownLoss::OfSomeFlows(Change::Fragments));
    let at_b = [(CALL, [20, 400, 20]), (OTHER, [1, 3000, 0]), (later, [0, 0, 40])];
    assert_eq!(of_some(&at_b, [PointState::default(), fragments()]), some);
    assert_eq!(of_some(&at_b, [fragments(), fragments()]), None);
    let joined =
        [PointState::default(), fragments()].map(|point| point.recognising(MatchRule::Reassembled));
    assert_eq!(of_some(&at_b, joined), None, "fragments are joined");
    let at_a = [(CALL, [20, 400, 20]), (OTHER, [1, 3000, 0]), (later, [40, 0, 0])];
    let points = [fragments(), PointState::default()];
    let changed = ChangedFlows::of(&table(&at_a), [&points[0], &points[1]]).unwrap();
    assert!(changed.contains(&CALL) && changed.contains(&later) && !changed.contains(&OTHER));
}

#[test]
fn cut_packets_at_a_make_the_loss_unknown() {
    let cut = |packets: u64| {
        let mut point = PointState::default();
        (point.cut, point.unidentified) = (packets, packets);
        point.cut_flows.add(CALL, packets);
        point
    };
    let of = |flows: &[(FlowKey, [u64; 3])], a| of_some(flows, [a, PointState::default()]);
    let reason = of(&[(CALL, [0, 0, 100])], cut(100)).unwrap();
    assert_eq!(reason, UnknownLoss::CutShort);
    assert!(reason.to_string().contains("snap length"), "{reason}");
    assert_eq!(of(&[], cut(100)), Some(UnknownLoss::CutShort));
    let beside = [(CALL, [0, 0, 100]), (OTHER, [1, 300, 0])];
    assert_eq!(of(&beside, cut(100)), Some(UnknownLoss::OfSomeFlows(Change::CutShort)));
    let excluded = [(OTHER, [1, 300, 0])];
    assert_eq!(of(&excluded, cut(100)), None, "B observed none of them");
    let (flows, points) = (table(&beside), [cut(100), PointState::default()]);
    let changed = ChangedFlows::of(&flows, [&points[0], &points[1]]).unwrap();
    assert!(changed.contains(&CALL) && !changed.contains(&OTHER));
}

#[test]
fn direction_of_b_is_suspected_in_the_text() {
    let text = UnknownLoss::NothingAtB(Method::Ring).to_string();
    assert!(text.contains("-Q inout,") && text.contains("-Q in "), "{text}");
    let text = UnknownLoss::NothingAtB(Method::XdpPass).to_string();
    assert!(text.contains("-Q inout --method ring,"), "{text}");
}

/// Packets that A captured twice; of each two, `matched` are matched with a packet of B.
fn twice(packets: u64, matched_packets: u64) -> FlowTable {
    let mut flows = FlowTable::new(100);
    for sequence in 0..packets {
        let first = if sequence < matched_packets {
            matched(CALL, 2 * sequence)
        } else {
            Outcome::Lost { sent: seen(CALL), sequence: 2 * sequence }
        };
        flows.record(&first);
        flows.record(&Outcome::Identical { sent: seen(CALL) });
        flows.record(&Outcome::Lost { sent: seen(CALL), sequence: 2 * sequence + 1 });
    }
    flows
}

#[test]
fn loss_of_packets_captured_twice_at_a_is_unknown() {
    let points = [PointState::default(), PointState::default()];
    let mut flows = twice(100, 96);
    let other = FlowKey { protocol: TCP, ..CALL };
    (0..10).for_each(|sequence| flows.record(&matched(other, sequence)));
    flows.record(&Outcome::Lost { sent: seen(other), sequence: 10 });
    let reason = UnknownLoss::of(&flows, &points).unwrap();
    assert_eq!(reason, UnknownLoss::TwiceAtA(100));
    assert!(reason.to_string().contains("A has 100 packets twice"), "{reason}");
    assert!(reason.includes(None, &flows.total(), &flows));
    let of = |flow| reason.includes(Some(&flow), flows.get(&flow).unwrap(), &flows);
    assert_eq!([CALL, other].map(of), [true, false]);
    assert!(reason.rules().is_empty());
}

#[test]
fn identical_packets_of_b_too_are_no_reason() {
    let points = [PointState::default(), PointState::default()];
    let mut flows = FlowTable::new(100);
    for sequence in 0..100 {
        flows.record(&matched(CALL, sequence));
        if sequence % 2 == 1 {
            flows.record(&Outcome::Identical { sent: seen(CALL) });
        }
    }
    flows.record(&Outcome::Lost { sent: seen(CALL), sequence: 100 });
    assert_eq!(UnknownLoss::of(&flows, &points), None);
    // Heartbeats: nearly all packets are identical to an earlier one.
    let mut flows = twice(100, 96);
    (0..90).for_each(|_| flows.record(&Outcome::Identical { sent: seen(CALL) }));
    assert_eq!(UnknownLoss::of(&flows, &points), None);
}
