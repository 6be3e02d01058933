//! Loss that is unknown: hardly any packet was matched, although B observed about as many packets as A, or B observed
//! other segments of TCP than A.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use wirestamp_metrics::{Counts, FlowTable, Quality};
use wirestamp_packet::{FlowKey, MatchRule};
use wirestamp_session::PointState;

/// Loss is unknown if less than one in this many packets of A was matched.
const HARDLY_ANY: u64 = 10;
/// A point has about as many packets as another if it has at least one in this many.
const COMPARABLE: u64 = 2;

/// IP protocols of tunnels (IANA's protocol numbers).
const TUNNELS: [(u8, &str); 5] =
    [(4, "IPIP"), (41, "6in4"), (47, "GRE"), (50, "ESP"), (115, "L2TP")];
/// UDP ports of tunnels (IANA's service names and port numbers; 3GPP TS 29.281 for GTP-U).
const TUNNEL_PORTS: [(u16, &str); 5] = [
    (2152, "GTP-U"),
    (4500, "ESP in UDP"),
    (4789, "VXLAN"),
    (6081, "Geneve"),
    (51820, "WireGuard"),
];
const UDP: u8 = 17;

/// Why packets of the same traffic were not recognised as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownLoss {
    Fragments,
    /// Segments of TCP are others at B; only the loss of such flows is unknown.
    OtherSegments,
    /// Datagrams of UDP are others at B, because one point observed merged ones; only the loss of such flows is unknown.
    OtherDatagrams,
    /// Merged segments of TCP were captured in part, so that not all packets in them are known.
    CutSegments,
    Tunnel(&'static str),
    NotIp,
    CutShort,
    Changed,
    OtherDirection,
    OtherAddresses,
    NothingInCommon,
}

/// Flows with their counts.
type Flows<'a> = Vec<(FlowKey, &'a Counts)>;

impl UnknownLoss {
    /// The reason, if the loss between A and B is unknown.
    pub(super) fn of(flows: &FlowTable, [a, b]: &[PointState; 2]) -> Option<Self> {
        let tcp = flows.tcp_differences();
        let of_tcp = tcp.total();
        if a.cut_parts + b.cut_parts > 0 && of_tcp.lost > 0 {
            return Some(Self::CutSegments);
        }
        // Behind NAT, the segments of A and those of B are of different flows.
        let are_others =
            tcp.are_both_in_any() || (a.rule() == MatchRule::Payload && of_tcp.are_both());
        Self::of_unmatched(flows, [a, b])
            .or(has_other_datagrams(flows, [a, b]).then_some(Self::OtherDatagrams))
            .or(are_others.then_some(Self::OtherSegments))
    }

    /// The reason why hardly any packet was matched.
    fn of_unmatched(table: &FlowTable, [a, b]: [&PointState; 2]) -> Option<Self> {
        let total = table.total();
        let total = total.counts();
        let only_at_b = total.unexpected + b.unidentified;
        let is_unknown = total.lost > 0
            && total.matched.saturating_mul(HARDLY_ANY) < total.sent
            && only_at_b.saturating_mul(COMPARABLE) >= total.lost;
        if !is_unknown {
            return None;
        }
        let flows: Flows<'_> =
            table.flows().into_iter().map(|(flow, of)| (flow, of.counts())).collect();
        let [at_a, at_b]: [Flows<'_>; 2] =
            [|counts: &Counts| counts.sent > 0, |counts: &Counts| counts.received > 0].map(
                |is_there| flows.iter().copied().filter(|(_, counts)| is_there(counts)).collect(),
            );
        let in_common = flows.iter().any(|(_, counts)| counts.sent > 0 && counts.received > 0);
        let reason = if (a.fragments > 0) != (b.fragments > 0) {
            Self::Fragments
        } else if let Some(tunnel) = tunnel_at_one_point(&at_a, &at_b) {
            Self::Tunnel(tunnel)
        } else if b.unidentified.saturating_mul(COMPARABLE) >= total.lost && b.cut == 0 {
            Self::NotIp
        } else if (a.cut > 0) != (b.cut > 0) {
            Self::CutShort
        } else if has_other_datagrams(table, [a, b]) {
            Self::OtherDatagrams
        } else if in_common {
            Self::Changed
        } else if are_answers(&at_a, &at_b) {
            Self::OtherDirection
        } else if have_other_addresses(&at_a, &at_b) {
            Self::OtherAddresses
        } else {
            Self::NothingInCommon
        };
        Some(reason)
    }

    /// Whether the loss of a flow in the table is unknown; `flow` is none for all flows or several of them.
    pub(super) fn includes(self, flow: Option<&FlowKey>, of: &Quality, all: &FlowTable) -> bool {
        let (tcp, udp) = (all.tcp_differences(), all.udp_differences());
        let has_others = match (self, flow) {
            (Self::OtherSegments | Self::OtherDatagrams | Self::CutSegments, None) => true,
            (Self::OtherDatagrams, Some(flow)) if flow.protocol == UDP => udp.of(flow).are_both(),
            (Self::CutSegments, Some(flow)) => tcp.of(flow).lost > 0,
            // Behind NAT, no flow has both.
            (Self::OtherSegments, Some(flow)) if !tcp.are_both_in_any() => tcp.of(flow).lost > 0,
            (_, flow) => flow.is_some_and(|flow| tcp.of(flow).are_both()),
        };
        let Counts { sent, matched, .. } = *of.counts();
        has_others
            || (self.is_of_unmatched() && sent > 0 && matched.saturating_mul(HARDLY_ANY) < sent)
    }

    /// Whether hardly any packet was matched.
    const fn is_of_unmatched(self) -> bool {
        !matches!(self, Self::OtherSegments | Self::OtherDatagrams | Self::CutSegments)
    }
}

impl Display for UnknownLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::OtherSegments {
            return f.write_str(
                "loss of TCP is unknown: segments that A observed are missing at B, and B observed others of the same \
                 connection; a network card or kernel merged short segments (GRO) or divided them differently (TSO), a \
                 device on the path changes the connection, or packets took longer than --timeout; switch offloads off \
                 with `ethtool -K IF gro off lro off tso off gso off`, or capture on another machine",
            );
        }
        if *self == Self::OtherDatagrams {
            return f.write_str(
                "loss of some flows is unknown: packets that A observed are missing at B, and B observed others of the \
                 same flow; the capture at one point contains UDP datagrams that are longer than 1500 bytes, which are \
                 several datagrams on the network (UDP GSO, GRO); switch offloads off with `ethtool -K IF \
                 tx-udp-segmentation off rx-udp-gro-forwarding off gro off`, or capture on another machine",
            );
        }
        if *self == Self::CutSegments {
            return f.write_str(
                "loss of TCP is unknown: merged segments (GRO, TSO) were captured only in part, so that not all packets \
                 in them are known; capture with a larger snap length, or switch offloads off with \
                 `ethtool -K IF gro off lro off tso off gso off`",
            );
        }
        f.write_str("loss is unknown: hardly any packet was matched, although B observed about as many as A; ")?;
        match self {
            Self::OtherSegments | Self::OtherDatagrams | Self::CutSegments => Ok(()),
            Self::Fragments => f.write_str(
                "packets are fragments at one point only; capture both points before packets are fragmented, or \
                 avoid it with a smaller packet size or a larger MTU",
            ),
            Self::Tunnel(name) => write!(
                f,
                "packets are in a tunnel ({name}) at one point only; capture both points inside of it, or both outside"
            ),
            Self::NotIp => f.write_str(
                "packets at B are not plain IP, as in a tunnel (MPLS, PPPoE); capture both points inside of it, or \
                 both outside",
            ),
            Self::CutShort => f.write_str(
                "the capture at one point has only the beginning of each packet (snap length), and packets are \
                 recognised by all of their bytes; capture both points with the same snap length, or without one",
            ),
            Self::Changed => f.write_str(
                "flows have the same addresses, but other contents, as behind a proxy; capture both points on the same \
                 side of it",
            ),
            Self::OtherDirection => f.write_str(
                "B observed the opposite direction only; a router sends out what it forwards: add -Q inout, or capture B \
                 behind the router",
            ),
            Self::OtherAddresses => f.write_str(
                "packets have other addresses or ports at B, as behind NAT; capture both points on the same side of it",
            ),
            Self::NothingInCommon => {
                f.write_str("the two captures have no flow in common; are they of the same traffic?")
            }
        }
    }
}

/// Whether one point observed UDP datagrams that the other one observed as several.
fn has_other_datagrams(flows: &FlowTable, [a, b]: [&PointState; 2]) -> bool {
    let [at_a, at_b] = [a, b].map(|point| point.segmentation.long_datagrams);
    let udp = flows.udp_differences();
    at_a != at_b
        && (udp.are_both_in_any() || (a.rule() == MatchRule::Payload && udp.total().are_both()))
}

/// The tunnel of the flows at one point, if there is none at the other.
fn tunnel_at_one_point(at_a: &Flows<'_>, at_b: &Flows<'_>) -> Option<&'static str> {
    let tunnel = |flows: &Flows<'_>| flows.iter().find_map(|(flow, _)| tunnel(flow));
    match (tunnel(at_a), tunnel(at_b)) {
        (Some(name), None) | (None, Some(name)) => Some(name),
        _ => None,
    }
}

fn tunnel(flow: &FlowKey) -> Option<&'static str> {
    let by_protocol = TUNNELS.iter().find(|(protocol, _)| flow.protocol == *protocol);
    let port = flow.destination.port();
    let by_port = TUNNEL_PORTS.iter().find(|(number, _)| flow.protocol == UDP && port == *number);
    by_protocol.map(|(_, name)| *name).or_else(|| by_port.map(|(_, name)| *name))
}

/// Whether the flows at B are those of A in the opposite direction.
fn are_answers(at_a: &Flows<'_>, at_b: &Flows<'_>) -> bool {
    let at_b: BTreeSet<_> = at_b.iter().map(|(flow, _)| *flow).collect();
    let reversed = |flow: &FlowKey| FlowKey {
        source: flow.destination,
        destination: flow.source,
        protocol: flow.protocol,
    };
    at_a.iter().any(|(flow, _)| at_b.contains(&reversed(flow)))
}

/// Whether flows at both points differ in an address or a port of one end only, and have about as many packets.
fn have_other_addresses(at_a: &Flows<'_>, at_b: &Flows<'_>) -> bool {
    let ends = |flow: &FlowKey| {
        let [source, destination] = [flow.source, flow.destination];
        [(flow.protocol, Some(source), None), (flow.protocol, None, Some(destination))]
    };
    let mut received: BTreeMap<_, u64> = BTreeMap::new();
    for (flow, counts) in at_b {
        for end in ends(flow) {
            *received.entry(end).or_default() += counts.received;
        }
    }
    at_a.iter().any(|(flow, counts)| {
        let is_comparable = |received: &u64| received.saturating_mul(COMPARABLE) >= counts.sent;
        ends(flow).iter().any(|end| received.get(end).is_some_and(is_comparable))
    })
}

#[cfg(test)]
mod tests {
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
            (0..*packets)
                .for_each(|_| flows.record(&Outcome::Unexpected { received: seen(*flow) }));
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
        let of =
            |at_b: &[(FlowKey, u64)]| reason(at_b, PointState::default(), PointState::default());
        assert_eq!(of(&[(other, 49)]), None);
        assert_eq!(of(&[]), None);
        let mut flows = unmatched((CALL, 90), &[(other, 90)]);
        (0..10).for_each(|sequence| flows.record(&matched(CALL, sequence)));
        let points = [PointState::default(), PointState::default()];
        assert_eq!(UnknownLoss::of(&flows, &points), None);
    }
}
