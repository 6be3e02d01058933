//! Loss that is unknown: hardly any packet was matched, although B observed about as many packets as A, or B observed
//! other segments of TCP than A, or other packets of some flows, or A captured packets twice.

mod changed_flows;
mod text;
mod tunnel;
mod twice;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use wirestamp_capture::Method;
use wirestamp_metrics::{Counts, FlowTable, Quality};
use wirestamp_packet::{FlowKey, MatchRule};
use wirestamp_session::PointState;

pub(super) use self::changed_flows::ChangedFlows;
use self::changed_flows::{Change, ends};
use self::tunnel::tunnel;
use self::twice::{has_half_twice, packets_twice};

/// A point has about as many packets as another if it has at least one in this many.
const COMPARABLE: u64 = 2;

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
    /// Packets of some flows were changed; only the loss of these ([`ChangedFlows`]) is unknown.
    OfSomeFlows(Change),
    /// B, an interface, captured no packet with this method, and its direction was not given.
    NothingAtB(Method),
    /// A captured this number of packets twice, and B once.
    TwiceAtA(u64),
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
        let changed = ChangedFlows::of(flows, [a, b]);
        let is_a_cut = changed.as_ref().is_some_and(|changed| changed.is_a_cut);
        // Behind NAT, the segments of A and those of B are of different flows.
        let are_others =
            tcp.are_both_in_any() || (a.rule() == MatchRule::Payload && of_tcp.are_both());
        Self::of_unmatched(flows, [a, b])
            .or(packets_twice(flows).map(Self::TwiceAtA))
            .or(is_a_cut.then_some(Self::CutShort))
            .or(has_other_datagrams(flows, [a, b]).then_some(Self::OtherDatagrams))
            .or(changed.map(|changed| Self::OfSomeFlows(changed.change)))
            .or(are_others.then_some(Self::OtherSegments))
    }

    /// The reason, if another rule recognises packets that were not matched.
    pub(super) const fn of_rule(rule: MatchRule) -> Self {
        match rule {
            MatchRule::Reassembled => Self::Fragments,
            MatchRule::Beginning => Self::CutShort,
            MatchRule::Payload | MatchRule::Rtp => Self::Changed,
            MatchRule::Packet | MatchRule::Inner => Self::NothingInCommon,
        }
    }

    /// The reason why hardly any packet was matched.
    fn of_unmatched(table: &FlowTable, [a, b]: [&PointState; 2]) -> Option<Self> {
        let total = table.total();
        let total = total.counts();
        if !total.is_loss_unknown(b.unidentified) {
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
        } else if (a.cut > 0) != (b.cut > 0)
            || b.cut_flows.total().saturating_mul(COMPARABLE) >= total.lost
        {
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
            (
                Self::OtherSegments
                | Self::OtherDatagrams
                | Self::CutSegments
                | Self::OfSomeFlows(_)
                | Self::TwiceAtA(_),
                None,
            ) => true,
            (Self::TwiceAtA(_), Some(_)) if has_half_twice(of.counts()) => true,
            (Self::OtherDatagrams, Some(flow)) if flow.protocol == UDP => udp.of(flow).are_both(),
            (Self::CutSegments, Some(flow)) => tcp.of(flow).lost > 0,
            // Behind NAT, no flow has both.
            (Self::OtherSegments, Some(flow)) if !tcp.are_both_in_any() => tcp.of(flow).lost > 0,
            (_, flow) => flow.is_some_and(|flow| tcp.of(flow).are_both()),
        };
        has_others || (self.is_of_unmatched() && of.counts().are_unmatched())
    }

    /// The rules that may recognise the packets.
    pub(super) const fn rules(self) -> &'static [MatchRule] {
        match self.cause() {
            Self::Fragments => &[MatchRule::Reassembled],
            Self::Tunnel(_) | Self::NotIp => &[MatchRule::Inner],
            Self::CutShort => &[MatchRule::Beginning, MatchRule::Rtp],
            Self::Changed | Self::OtherAddresses => &[MatchRule::Payload, MatchRule::Rtp],
            Self::OtherDirection
            | Self::OtherSegments
            | Self::OtherDatagrams
            | Self::CutSegments
            | Self::OfSomeFlows(_)
            | Self::NothingAtB(_)
            | Self::TwiceAtA(_) => &[],
            Self::NothingInCommon => &[MatchRule::Inner, MatchRule::Payload, MatchRule::Rtp],
        }
    }

    /// Whether hardly any packet was matched.
    const fn is_of_unmatched(self) -> bool {
        !matches!(
            self,
            Self::OtherSegments
                | Self::OtherDatagrams
                | Self::CutSegments
                | Self::OfSomeFlows(_)
                | Self::TwiceAtA(_)
        )
    }

    /// The cause in general: that of some flows without this restriction.
    pub(super) const fn cause(self) -> Self {
        match self {
            Self::OfSomeFlows(Change::Fragments) => Self::Fragments,
            Self::OfSomeFlows(Change::CutShort) => Self::CutShort,
            Self::OfSomeFlows(Change::Tunnel(name)) => Self::Tunnel(name),
            Self::OfSomeFlows(Change::Contents) => Self::Changed,
            Self::OfSomeFlows(Change::Addresses) => Self::OtherAddresses,
            all => all,
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
