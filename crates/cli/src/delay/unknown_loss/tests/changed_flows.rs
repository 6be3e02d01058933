//! Changed flows beside matched ones.

use super::*;

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
