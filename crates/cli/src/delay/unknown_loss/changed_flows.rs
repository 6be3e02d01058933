//! Flows of which B observed other packets than A, beside traffic that is the same at both points.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use wirestamp_metrics::{Counts, FlowTable};
use wirestamp_packet::{FlowKey, MatchRule};
use wirestamp_session::PointState;

use super::tunnel::tunnel;

/// Packets are a considerable part of others if they are at least one in this many.
const CONSIDERABLE: u64 = 10;
/// A point has about as many packets as another if it has at least one in this many, and at most this many for one.
const COMPARABLE: u64 = 2;
/// Min packets of a flow at A from which it can be concluded that its packets are not matched.
const MIN_PACKETS: u64 = 10;

const TCP: u8 = 6;

/// What happened to the packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::delay) enum Change {
    Fragments,
    CutShort,
    Tunnel(&'static str),
    Contents,
    Addresses,
}

/// Flows whose loss is unknown, because B observed other packets that may be theirs.
#[derive(Debug)]
pub(in crate::delay) struct ChangedFlows {
    /// What happened to most of their packets.
    pub(in crate::delay) change: Change,
    /// Whether hardly any packet of A has an identity, because they were cut.
    pub(in crate::delay) is_a_cut: bool,
    flows: BTreeSet<FlowKey>,
}

impl Change {
    /// Whether the captures show the change itself. Otherwise it is likely, as B observed similar packets.
    const fn is_certain(self) -> bool {
        matches!(self, Self::Fragments | Self::CutShort)
    }
}

impl ChangedFlows {
    /// The changed flows, if they are a considerable part of the traffic.
    pub(in crate::delay) fn of(table: &FlowTable, points: [&PointState; 2]) -> Option<Self> {
        let (total, search) = (table.total(), Search::new(table, points));
        if let Some(cut) = search.cut_at_a(total.counts()) {
            return Some(cut);
        }
        let changes = search.changes();
        let lost = |is_meant: fn(Change) -> bool| -> u64 {
            let meant = changes.values().filter(|(change, _)| is_meant(*change));
            meant.map(|(_, lost)| lost).sum()
        };
        let (all, certain) = (lost(|_| true), lost(Change::is_certain));
        let Counts { sent, lost, .. } = *total.counts();
        let are_all = all.saturating_mul(CONSIDERABLE) >= sent || total.counts().are_unmatched();
        if !are_all && certain.saturating_mul(CONSIDERABLE) < lost {
            return None;
        }
        let meant = changes.iter().filter(|(_, (change, _))| are_all || change.is_certain());
        let mut by_change: BTreeMap<Change, u64> = BTreeMap::new();
        let mut flows = BTreeSet::new();
        for (flow, (change, lost)) in meant {
            *by_change.entry(*change).or_default() += lost;
            flows.insert(*flow);
        }
        let (change, _) = by_change.into_iter().max_by_key(|(_, lost)| *lost)?;
        Some(Self { change, is_a_cut: false, flows })
    }

    pub(in crate::delay) fn contains(&self, flow: &FlowKey) -> bool {
        self.flows.contains(flow)
    }
}

/// The flows of a measurement, and what B observed only.
struct Search<'a> {
    flows: Vec<(FlowKey, &'a Counts)>,
    a: &'a PointState,
    b: &'a PointState,
    only_at_b: OnlyAtB,
}

/// Flows that only B observed, with their packets.
#[derive(Default)]
struct OnlyAtB {
    /// Packets of each flow with this protocol and this source or destination.
    ends: BTreeMap<(u8, Option<SocketAddr>, Option<SocketAddr>), Vec<u64>>,
    /// Packets of tunnels that A does not have.
    tunnels: BTreeMap<&'static str, u64>,
    /// Names of all tunnels at B.
    all_tunnels: BTreeSet<&'static str>,
    /// Packets of all flows that are not the opposite direction of one at A.
    packets: u64,
}

impl<'a> Search<'a> {
    fn new(table: &'a FlowTable, [a, b]: [&'a PointState; 2]) -> Self {
        let flows: Vec<_> =
            table.flows().into_iter().map(|(flow, of)| (flow, of.counts())).collect();
        let only_at_b = OnlyAtB::of(&flows);
        Self { flows, a, b, only_at_b }
    }

    /// The flows that A has only cut, so that most of their packets have no identity.
    fn cut_at_a(&self, total: &Counts) -> Option<ChangedFlows> {
        let Self { a, b, .. } = self;
        if !self.uses_cut() {
            return None;
        }
        let identified = total.sent.saturating_add(a.not_chosen);
        let cut = a.cut_flows.total();
        let all = identified.saturating_add(cut);
        let found =
            |flows, is_a_cut| Some(ChangedFlows { change: Change::CutShort, is_a_cut, flows });
        if identified.saturating_mul(CONSIDERABLE) < all {
            return found(a.cut_flows.flows().copied().collect(), true);
        }
        let mut missing: u64 = 0;
        let mut flows = BTreeSet::new();
        for (flow, counts) in &self.flows {
            let at_a_only = a.cut_flows.of(flow).saturating_sub(b.cut_flows.of(flow));
            if at_a_only > 0 && is_comparable(counts.unexpected, at_a_only) {
                missing += at_a_only;
                flows.insert(*flow);
            }
        }
        let is_considerable = missing > 0 && missing.saturating_mul(CONSIDERABLE) >= all;
        is_considerable.then(|| found(flows, false))?
    }

    /// The changed flows with lost packets, and their numbers.
    fn changes(&self) -> BTreeMap<FlowKey, (Change, u64)> {
        let lost = self.flows.iter().filter(|(_, counts)| counts.lost > 0);
        let change = |(flow, counts): &(FlowKey, &Counts)| {
            Some((*flow, (self.change(flow, counts)?, counts.lost)))
        };
        let mut changes: BTreeMap<_, _> = lost.clone().filter_map(change).collect();
        // Fragments after the first have no ports.
        let is_fragmented = |(_, (change, _)): &(_, &(Change, u64))| *change == Change::Fragments;
        let fragmented: BTreeSet<_> =
            changes.iter().filter(is_fragmented).map(|(flow, _)| hosts(flow)).collect();
        for (flow, counts) in lost {
            let has_ports = flow.source.port() != 0 || flow.destination.port() != 0;
            if !has_ports && self.a.fragment_flows.of(flow) > 0 && fragmented.contains(&hosts(flow))
            {
                changes.entry(*flow).or_insert((Change::Fragments, counts.lost));
            }
        }
        changes
    }

    /// What happened to the packets of a flow, if B observed other packets that may be theirs.
    fn change(&self, flow: &FlowKey, counts: &Counts) -> Option<Change> {
        let Self { a, b, only_at_b, .. } = self;
        let (lost, rule) = (counts.lost, a.rule());
        let fragments = [a, b].map(|point| point.fragment_flows.of(flow));
        let fragments = match fragments {
            [0, at_b] => at_b,
            [_, 0] => counts.unexpected,
            _ => 0,
        };
        if rule != MatchRule::Reassembled && is_comparable(fragments, lost) {
            return Some(Change::Fragments);
        }
        let cut = b.cut_flows.of(flow).saturating_sub(a.cut_flows.of(flow));
        if self.uses_cut() && is_comparable(cut, lost) {
            return Some(Change::CutShort);
        }
        if counts.sent < MIN_PACKETS || !counts.are_unmatched() {
            return None;
        }
        // The loss of TCP with other segments is unknown anyway.
        if flow.protocol != TCP && rule != MatchRule::Rtp && is_comparable(counts.unexpected, lost)
        {
            return Some(Change::Contents);
        }
        let has_addresses = !matches!(rule, MatchRule::Payload | MatchRule::Rtp);
        if has_addresses && only_at_b.has_similar(flow, lost) {
            return Some(Change::Addresses);
        }
        let name = match tunnel(flow) {
            Some(name) => (!only_at_b.all_tunnels.contains(name)
                && is_comparable(only_at_b.packets, lost))
            .then_some(name),
            None => only_at_b.tunnel(lost),
        };
        name.map(Change::Tunnel)
    }

    /// Whether the rule needs more bytes than a cut packet may have.
    fn uses_cut(&self) -> bool {
        self.a.rule() != MatchRule::Rtp
    }
}

impl OnlyAtB {
    fn of(flows: &[(FlowKey, &Counts)]) -> Self {
        let at_a: BTreeSet<_> =
            flows.iter().filter(|(_, counts)| counts.sent > 0).map(|(flow, _)| *flow).collect();
        let tunnels_at_a: BTreeSet<_> = at_a.iter().filter_map(tunnel).collect();
        let mut found = Self::default();
        for (flow, counts) in flows {
            if counts.received > 0 {
                found.all_tunnels.extend(tunnel(flow));
            }
            if counts.sent > 0 || counts.unexpected == 0 {
                continue;
            }
            for end in ends(flow) {
                found.ends.entry(end).or_default().push(counts.unexpected);
            }
            if let Some(name) = tunnel(flow).filter(|name| !tunnels_at_a.contains(name)) {
                *found.tunnels.entry(name).or_default() += counts.unexpected;
            }
            let reversed = FlowKey { source: flow.destination, destination: flow.source, ..*flow };
            if !at_a.contains(&reversed) {
                found.packets += counts.unexpected;
            }
        }
        found
    }

    /// Whether B has a flow of about as many packets that differs in one end only.
    fn has_similar(&self, flow: &FlowKey, packets: u64) -> bool {
        let is_similar =
            |others: &u64| is_comparable(*others, packets) && is_comparable(packets, *others);
        ends(flow)
            .iter()
            .filter_map(|end| self.ends.get(end))
            .any(|others| others.iter().any(is_similar))
    }

    /// A tunnel that may have this many packets.
    fn tunnel(&self, packets: u64) -> Option<&'static str> {
        self.tunnels
            .iter()
            .find(|(_, others)| is_comparable(**others, packets))
            .map(|(name, _)| *name)
    }
}

/// Whether there are other packets, at least half as many.
const fn is_comparable(others: u64, packets: u64) -> bool {
    others > 0 && others.saturating_mul(COMPARABLE) >= packets
}

/// The source and the destination, each with the protocol.
pub(super) const fn ends(flow: &FlowKey) -> [(u8, Option<SocketAddr>, Option<SocketAddr>); 2] {
    let FlowKey { source, destination, protocol } = *flow;
    [(protocol, Some(source), None), (protocol, None, Some(destination))]
}

const fn hosts(flow: &FlowKey) -> (u8, IpAddr, IpAddr) {
    (flow.protocol, flow.source.ip(), flow.destination.ip())
}
