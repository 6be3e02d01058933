//! State of an observation point: identities, sample and flows.

use wirestamp_clock::Stamp;
use wirestamp_metrics::flow::{FlowConfig, FlowMonitor, FlowPacket, FlowReport};
use wirestamp_metrics::{Observation, Sampling};
use wirestamp_packet::{
    Encapsulation, IdentityKey, LinkType, MatchRule, Packet, Reassembly, Recognised, Segmentation,
};

use crate::flow_counts::FlowCounts;

/// State of one point.
#[derive(Clone, Debug, Default)]
pub struct PointState {
    sampling: Option<Sampling>,
    monitor: Option<FlowMonitor>,
    rule: MatchRule,
    reassembly: Reassembly,
    /// Packets without identity: not IP, cut too short, or fragments that contradict each other. They are excluded.
    pub unidentified: u64,
    /// Packets that are not in the sample.
    pub not_chosen: u64,
    /// Packets of which the capture has the beginning only.
    pub cut: u64,
    /// Of `unidentified`, the IP packets of which the capture has the beginning only, by their flows.
    pub cut_flows: FlowCounts,
    /// Parts of divided TCP segments that have no identity, because the capture has the beginning of the segment only.
    pub cut_parts: u64,
    /// Fragments of packets.
    pub fragments: u64,
    /// Fragments of packets by their flows. Only the first fragment of a packet has ports.
    pub fragment_flows: FlowCounts,
    /// Division of TCP segments that are longer than the network carries.
    pub segmentation: Segmentation,
}

impl PointState {
    /// A point without packets. If there is a sample, only its packets are correlated.
    #[must_use]
    pub fn new(sampling: Option<&Sampling>) -> Self {
        Self { sampling: sampling.cloned(), ..Self::default() }
    }

    /// Recognises packets by this rule.
    #[must_use]
    pub fn recognising(self, rule: MatchRule) -> Self {
        Self { rule, ..self }
    }

    /// Begins again with another rule: packets so far are not counted. The flows are kept.
    pub(crate) fn switch(&mut self, rule: MatchRule) {
        let Self { sampling, monitor, .. } = std::mem::take(self);
        *self = Self { sampling, monitor, rule, ..Self::default() };
    }

    /// The rule by which packets are recognised.
    #[must_use]
    pub const fn rule(&self) -> MatchRule {
        self.rule
    }

    /// Also measures the flows. This uses all packets, not only the sample: streams and round trips are recognised from
    /// consecutive packets.
    #[must_use]
    pub fn watching(self, config: FlowConfig) -> Self {
        Self { monitor: Some(FlowMonitor::new(config)), ..self }
    }

    /// Flow reports of this point, unordered.
    pub fn flows(&mut self) -> impl Iterator<Item = FlowReport> {
        self.monitor.iter_mut().flat_map(FlowMonitor::flows)
    }

    /// Flows evicted because the table was full.
    #[must_use]
    pub fn evicted_flows(&self) -> u64 {
        self.monitor.as_ref().map_or(0, |monitor| monitor.evicted.flows)
    }

    /// Takes the next frame: its captured bytes, its length on the wire, and its stamp. Calls `observe` with its packet,
    /// unless that is excluded. A TCP segment that is longer than the network carries counts as the packets that the
    /// network carries for it ([`Segmentation`]), all with its stamp.
    pub fn take(
        &mut self,
        link: LinkType,
        bytes: &[u8],
        length: u32,
        stamp: Stamp,
        mut observe: impl FnMut(Observation),
    ) {
        let is_cut = bytes.len() < usize::try_from(length).unwrap_or(usize::MAX);
        self.cut += u64::from(is_cut);
        let Ok(mut packet) = Packet::parse(link, bytes) else {
            self.unidentified += 1;
            return;
        };
        packet.apply_frame_length(bytes.len(), length);
        self.fragments += u64::from(packet.is_fragment());
        self.fragment_flows.add(packet.flow(), packet.is_fragment().into());
        if let Some(monitor) = &mut self.monitor {
            let encapsulation = Encapsulation::of(link, bytes, false);
            let packet = &packet;
            monitor.observe(&FlowPacket { packet, length, time: stamp.utc, encapsulation });
        }
        let unidentified_before = self.unidentified;
        let Self { rule, reassembly, segmentation, sampling, unidentified, not_chosen, .. } = self;
        let mut recognise = |packet: &Packet<'_>, length| match rule.recognise(
            packet,
            length,
            stamp.utc,
            reassembly,
            IdentityKey::default(),
        ) {
            Recognised::As { id, flow, length } => {
                let observation = Observation { id, flow, length, stamp };
                if sampling.as_ref().is_none_or(|sampling| sampling.chooses(&observation)) {
                    observe(observation);
                } else {
                    *not_chosen += 1;
                }
            }
            Recognised::Incomplete => {}
            Recognised::Unidentified => *unidentified += 1,
        };
        let mut packet = rule.view(&packet);
        packet.apply_frame_length(bytes.len(), length);
        if segmentation.divide(&packet, length, &mut recognise) {
            self.cut_parts += self.unidentified - unidentified_before;
        } else {
            recognise(&packet, length);
        }
        if is_cut {
            self.cut_flows.add(packet.flow(), self.unidentified - unidentified_before);
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Span, Time};

    use super::*;

    /// An IPv4 packet with this field of flags and offset, and a UDP header or what has its place.
    fn packet(fragment: u16, payload: usize) -> Vec<u8> {
        let length = u16::try_from(28 + payload).unwrap().to_be_bytes();
        let fragment = fragment.to_be_bytes();
        let header = [0x45, 0, length[0], length[1], 0, 1, fragment[0], fragment[1], 64, 17, 0, 0];
        let datagram = u16::try_from(8 + payload).unwrap().to_be_bytes();
        let udp = [0x13, 0x88, 0x13, 0x89, datagram[0], datagram[1], 0, 0];
        [&header[..], &[10, 0, 0, 1], &[10, 0, 0, 2], &udp, &vec![7; payload]].concat()
    }

    fn state(frames: &[(&[u8], usize)]) -> PointState {
        let mut state = PointState::default();
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        let stamp = Stamp { raw, utc: Time::from_nanos(0), error: Span::ZERO };
        for (bytes, length) in frames {
            state.take(LinkType::Ip, bytes, u32::try_from(*length).unwrap(), stamp, |_| {});
        }
        state
    }

    #[test]
    fn packets_without_identity_because_they_are_cut_are_counted_by_flow() {
        let [short, long] = [20, 200].map(|payload| packet(0, payload));
        let state = state(&[(&short, 48), (&long[..100], 228), (&long[..180], 228), (&[0], 1)]);
        let flow = Packet::parse(LinkType::Ip, &short).unwrap().flow();
        assert_eq!((state.cut, state.unidentified), (2, 2));
        assert_eq!((state.cut_flows.of(&flow), state.cut_flows.total()), (1, 1));
    }

    #[test]
    fn first_fragments_are_counted_with_their_ports() {
        let [first, last] = [packet(0x2000, 16), packet(3, 16)];
        let state = state(&[(&first, 44), (&last, 44)]);
        let flow = Packet::parse(LinkType::Ip, &first).unwrap().flow();
        assert_eq!((flow.source.port(), state.fragment_flows.of(&flow)), (5000, 1));
        assert_eq!(state.fragment_flows.total(), 2);
    }
}
