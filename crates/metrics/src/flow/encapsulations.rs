//! What carried the packets of a flow: VLANs, labels, tunnels.

use serde::{Deserialize, Serialize};
use wirestamp_packet::Encapsulation;

/// Max number of encapsulations of a flow whose packets are counted apart.
const MAX_APART: usize = 4;

/// Packets of a flow by their encapsulation. Those without any are not counted here.
#[derive(Clone, Debug, Default)]
pub(super) struct Encapsulations {
    apart: Vec<(Encapsulation, u64)>,
    others: u64,
}

/// Encapsulations of a flow.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EncapsulationsReport {
    /// Different encapsulations, at most four, that with the most packets first. Packets of the flow that none of them has
    /// were not encapsulated, or are counted in `others`.
    pub kinds: Vec<EncapsulationReport>,
    /// Packets with further encapsulations.
    pub others: u64,
}

/// An encapsulation of a flow.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EncapsulationReport {
    /// Headers between the link header and the IP packet of the flow, from the outside.
    pub layers: Vec<LayerReport>,
    /// Packets of the flow, those of all RTP streams together.
    pub packets: u64,
}

/// A header of an encapsulation.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerReport {
    /// Kind: vlan, mpls, pppoe, ip, gre, erspan, pptp, vxlan, geneve, gtp-u.
    pub kind: String,
    /// Identifier: number of the VLAN, label of MPLS, session of PPPoE and ERSPAN, key of GRE, call of PPTP, network of VXLAN
    /// and Geneve, tunnel of GTP-U. Null if the header has none.
    pub id: Option<u32>,
}

impl Encapsulations {
    /// Counts a packet.
    pub(super) fn record(&mut self, encapsulation: Encapsulation) {
        let known = self.apart.iter_mut().find(|(known, _)| *known == encapsulation);
        if let Some((_, packets)) = known {
            *packets += 1;
        } else if self.apart.len() < MAX_APART {
            self.apart.push((encapsulation, 1));
        } else {
            self.others += 1;
        }
    }

    pub(super) fn report(&self) -> EncapsulationsReport {
        let mut kinds: Vec<_> = self.apart.iter().map(EncapsulationReport::of).collect();
        // Stable: the first seen is first among equals.
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.packets));
        EncapsulationsReport { kinds, others: self.others }
    }
}

impl EncapsulationsReport {
    /// That with the most packets.
    #[must_use]
    pub fn main(&self) -> Option<&EncapsulationReport> {
        self.kinds.first()
    }
}

impl EncapsulationReport {
    fn of((encapsulation, packets): &(Encapsulation, u64)) -> Self {
        let layers = encapsulation.layers();
        let layers = layers.map(|it| LayerReport { kind: it.kind.name().to_owned(), id: it.id });
        Self { layers: layers.collect(), packets: *packets }
    }

    /// Numbers of its VLANs, from the outside, such as `100.42`. None without a VLAN.
    #[must_use]
    pub fn vlan(&self) -> Option<String> {
        let vlans = self.layers.iter().filter(|layer| layer.kind == "vlan");
        let numbers: Vec<_> = vlans.filter_map(|layer| Some(layer.id?.to_string())).collect();
        (!numbers.is_empty()).then(|| numbers.join("."))
    }

    /// All headers, from the outside, such as `vlan 100, vxlan 42`.
    #[must_use]
    pub fn text(&self) -> String {
        let layers = self.layers.iter().map(|layer| match layer.id {
            Some(id) => format!("{} {id}", layer.kind),
            None => layer.kind.clone(),
        });
        layers.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestamp_packet::LinkType;

    /// The encapsulation of a frame with this VLAN.
    fn vlan(number: u8) -> Encapsulation {
        let frame = [&[2; 12], &[0x81, 0, 0, number, 8, 0][..], &[0; 20]].concat();
        Encapsulation::of(LinkType::Ethernet, &frame, false).unwrap()
    }

    #[test]
    fn packets_are_counted_by_encapsulation_in_bounded_memory() {
        let mut all = Encapsulations::default();
        for number in [1, 2, 2, 3, 4, 5, 6, 5] {
            all.record(vlan(number));
        }
        let report = all.report();
        let kinds: Vec<_> = report.kinds.iter().map(|it| (it.text(), it.packets)).collect();
        let expected = [("vlan 2", 2), ("vlan 1", 1), ("vlan 3", 1), ("vlan 4", 1)];
        assert_eq!(kinds, expected.map(|(text, packets)| (text.to_owned(), packets)));
        assert_eq!(report.others, 3);
        assert_eq!(report.main().and_then(EncapsulationReport::vlan).as_deref(), Some("2"));
    }

    #[test]
    fn vlans_are_one_value_and_other_headers_are_none() {
        let layer = |kind: &str, id| LayerReport { kind: kind.to_owned(), id };
        let of = |layers: Vec<LayerReport>| EncapsulationReport { layers, packets: 1 };
        let both = of(vec![layer("vlan", Some(100)), layer("vlan", Some(42)), layer("gre", None)]);
        assert_eq!(
            (both.vlan().as_deref(), &*both.text()),
            (Some("100.42"), "vlan 100, vlan 42, gre")
        );
        // A tag with a priority only.
        assert_eq!(of(vec![layer("vlan", None)]).vlan(), None);
    }
}
