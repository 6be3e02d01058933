//! The ring, queue or fill ring between the kernel and the process is full.

use wirestamp_capture::{Config, Cores, Ledger, Method, Pair};

use crate::bed::{Wire, assert_accounted, config, pairs, shareable_pairs};

/// More than fits into the smallest ring or queue of any method.
const COUNT: u32 = 6000;

/// A capture with little memory.
fn small(pair: &Pair) -> Config {
    Config { ring_bytes: 64 << 10, ..config(pair) }
}

/// The ledger without double counts: a veth also counts AF_XDP drops (`veth_xdp_rcv_one` in drivers/net/veth.c).
fn once(pair: &Pair, ledger: Ledger) -> Ledger {
    if pair.method != Method::Xdp {
        return ledger;
    }
    assert_eq!(ledger.interface_dropped, ledger.fill_ring_empty, "{ledger:?}");
    Ledger { interface_dropped: 0, ..ledger }
}

#[test]
fn drops_of_a_full_ring_or_queue_are_counted() {
    let Some(mut wire) = Wire::new() else { return };
    for pair in pairs() {
        let (facts, ledger) = wire.overload(small(pair), COUNT);
        let name = format!("{} {}", facts.method, facts.stamp);
        assert_accounted(&name, wire.sender.sent, &once(pair, ledger));
        assert_eq!((ledger.seen, ledger.left_behind), (COUNT.into(), 0), "{name}: {ledger:?}");
        assert!(ledger.kernel_dropped > 0 && ledger.delivered > 0, "{name}: {ledger:?}");
        // All its memory is in use: the only way for AF_XDP to have no room.
        let from_the_fill_ring = if pair.method == Method::Xdp { ledger.kernel_dropped } else { 0 };
        assert_eq!(ledger.fill_ring_empty, from_the_fill_ring, "{name}: {ledger:?}");
    }
}

#[test]
fn drops_of_several_full_rings_are_added() {
    let Some(mut wire) = Wire::new() else { return };
    for pair in shareable_pairs() {
        let lanes = vec![Cores::default(); 3];
        let config = Config { lanes, ring_bytes: 3 * (64 << 10), ..config(pair) };
        // libpcap's rings have min half a megabyte each.
        let (facts, ledger) = wire.overload(config, 4 * COUNT);
        let name = format!("{} {}", facts.method, facts.stamp);
        assert_accounted(&name, wire.sender.sent, &ledger);
        assert!(ledger.kernel_dropped > 0 && ledger.delivered > 0, "{name}: {ledger:?}");
    }
}

#[test]
fn ledger_excludes_only_packets_filtered_by_kernel() {
    let Some(mut wire) = Wire::new() else { return };
    // Half of the flows pass either filter. A socket does not support the second, whose number crosses the position
    // of a VLAN tag: it runs in the consumer.
    let filters = ["udp[1] & 1 = 0", "udp[1] & 1 = 0 and ether[10:4] = 0x00010800"];
    for (pair, filter) in pairs().flat_map(|pair| filters.map(|filter| (pair, filter))) {
        let config = Config { filter: Some(filter.to_owned()), ..small(pair) };
        let (facts, ledger) = wire.overload(config, COUNT);
        let name = format!("{} {} '{filter}'", facts.method, facts.stamp);
        let refused = u64::from(COUNT) - ledger.seen;
        assert!(refused == 0 || refused == u64::from(COUNT) / 2, "{name}: {ledger:?}");
        assert_accounted(&name, wire.sender.sent - refused, &once(pair, ledger));
        assert!(ledger.kernel_dropped > 0 && ledger.delivered > 0, "{name}: {ledger:?}");
    }
}
