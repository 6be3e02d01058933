//! State of an observation point: identities, sample and flows.

use wirestamp_clock::Stamp;
use wirestamp_metrics::flow::{FlowConfig, FlowMonitor, FlowPacket, FlowReport};
use wirestamp_metrics::{Observation, Sampling};
use wirestamp_packet::{IdentityKey, LinkType, MatchRule, Packet, Reassembly, Recognised};

/// State of one point.
#[derive(Clone, Debug, Default)]
pub struct PointState {
    sampling: Option<Sampling>,
    monitor: Option<FlowMonitor>,
    rule: MatchRule,
    reassembly: Reassembly,
    /// Packets without identity: not IP, or cut too short. They are excluded.
    pub unidentified: u64,
    /// Packets that are not in the sample.
    pub not_chosen: u64,
    /// Packets of which the capture has the beginning only.
    pub cut: u64,
    /// Fragments of packets.
    pub fragments: u64,
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

    /// Takes the next frame: its captured bytes, its length on the wire, and its stamp. Returns `None` if the packet is
    /// excluded.
    pub fn take(
        &mut self,
        link: LinkType,
        bytes: &[u8],
        length: u32,
        stamp: Stamp,
    ) -> Option<Observation> {
        let packet = Packet::parse(link, bytes).ok();
        self.cut += u64::from(bytes.len() < usize::try_from(length).unwrap_or(usize::MAX));
        self.fragments += u64::from(packet.as_ref().is_some_and(Packet::is_fragment));
        if let Some((monitor, packet)) = self.monitor.as_mut().zip(packet.as_ref()) {
            monitor.observe(&FlowPacket { packet, length, time: stamp.utc });
        }
        let recognise = |packet| {
            self.rule.recognise(&packet, length, &mut self.reassembly, IdentityKey::default())
        };
        let observation = match packet.map_or(Recognised::Unidentified, recognise) {
            Recognised::As { id, flow, length } => Observation { id, flow, length, stamp },
            Recognised::Incomplete => return None,
            Recognised::Unidentified => {
                self.unidentified += 1;
                return None;
            }
        };
        let chosen = self.sampling.as_ref().is_none_or(|sampling| sampling.chooses(&observation));
        self.not_chosen += u64::from(!chosen);
        chosen.then_some(observation)
    }
}
