//! Segments of TCP and datagrams of UDP that are others at B.

use super::*;

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
