//! Packets that A captured twice.

use super::*;

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
