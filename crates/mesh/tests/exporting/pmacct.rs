//! nfacctd (pmacct) adds exported records up.

use super::*;

/// Packets of the records with this value of a key, as nfacctd adds them up.
fn packets(records: &[Value], key: &str, value: &Value) -> u64 {
    records.iter().filter(|it| it[key] == *value).filter_map(|it| it["packets"].as_u64()).sum()
}

/// It prints what it has added up each second, so there may be several records with the same key.
fn added_up(messages: &[Vec<u8>], keys: &str, packets: u64) -> Vec<Value> {
    let sum =
        |records: &[Value]| records.iter().filter_map(|it| it["packets"].as_u64()).sum::<u64>();
    let records = printed_until(messages, keys, PRIMITIVES, |found| sum(found) >= packets);
    assert_eq!(sum(&records), packets, "{records:?}");
    records
}

#[test]
fn nfacctd_sums_are_the_packets_of_flows() {
    // The flow with 80 packets was reported again with 90.
    let records = added_up(&flows::exported(), "dst_port", 97);
    assert_eq!(packets(&records, "port_dst", &5004.into()), 90, "{records:?}");
    assert_eq!(packets(&records, "port_dst", &443.into()), 7, "{records:?}");
}
