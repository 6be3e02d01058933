//! Random filters: arithmetic of every kind on fields of packets.

use proptest::prelude::*;

/// A number in a filter, as pcap-filter(7) has them.
fn number() -> impl Strategy<Value = String> {
    let constant = prop_oneof![0_u32..70, Just(0x8100), Just(0xffff), any::<u32>()];
    let leaf = prop_oneof![
        constant.prop_map(|k| k.to_string()),
        Just("len".to_owned()),
        (header(), 0_u32..30, size()).prop_map(|(h, at, size)| format!("{h}[{at}:{size}]")),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let operators = vec!["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"];
        let operator = prop::sample::select(operators);
        let shift = prop::sample::select(vec!["<<", ">>"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone()).prop_map(|(a, o, b)| format!("({a} {o} {b})")),
            (inner.clone(), shift, 0_u32..32).prop_map(|(a, o, bits)| format!("({a} {o} {bits})")),
            inner.clone().prop_map(|a| format!("(-{a})")),
            (header(), inner, size()).prop_map(|(h, at, size)| format!("{h}[{at}:{size}]")),
        ]
    })
}

fn header() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["ip", "ip6", "udp", "tcp", "arp", "ether"])
}

fn size() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![1, 2, 4])
}

/// A filter of comparisons, with and without tags before them.
pub(super) fn expression() -> impl Strategy<Value = String> {
    let relation = prop::sample::select(vec!["=", "!=", "<", ">", "<=", ">="]);
    let comparison =
        (number(), relation, number()).prop_map(|(a, r, b)| format!("{a} {r} {b}")).boxed();
    let first = prop::sample::select(vec!["", "not ", "vlan and ", "vlan 7 and ", "udp or "]);
    let second = prop::sample::select(vec![" and ", " or ", " and not "]);
    (first, comparison.clone(), second, comparison)
        .prop_map(|(first, a, second, b)| format!("{first}({a}){second}({b})"))
}
