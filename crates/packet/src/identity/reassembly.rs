//! Fragments of packets, joined as far as the identity of the packet needs it.

use std::collections::{HashMap, VecDeque};

use super::recognised::Recognised;
use super::{IDENTITY_BYTES, IdentifyingHeader, IdentityKey, Packet, PacketId};
use crate::FlowKey;
use crate::internet::Fragment;

/// Max packets of which a part is missing. A further one replaces the oldest.
const INCOMPLETE_PACKETS: usize = 4096;

/// Fragments of one point.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    incomplete: HashMap<Whole, Parts>,
    /// The incomplete packets in the order of their first fragment; some may be complete by now.
    order: VecDeque<Whole>,
}

/// What all fragments of a packet have in common: flow without ports, and identification.
type Whole = (FlowKey, u32);

/// The parts of a packet that were observed.
#[derive(Clone, Debug)]
struct Parts {
    /// The flow, with the ports of the first fragment.
    flow: FlowKey,
    /// That of the packet without fragmentation: IPv6 has none then.
    identification: u32,
    /// The first bytes above IP, as far as observed.
    first: [u8; IDENTITY_BYTES],
    /// Bytes above IP that were observed, and of these how many are in `first`.
    observed: usize,
    observed_of_first: usize,
    /// Bytes above IP of the whole packet, from the last fragment.
    length: Option<usize>,
    /// Frames of all fragments, in bytes.
    frames: u32,
}

impl Reassembly {
    /// Adds a fragment. The packet is recognised with its last one, in whatever order they arrive. Overlapping and repeated
    /// fragments count as further ones.
    pub(super) fn add(&mut self, packet: &Packet<'_>, frame: u32, key: IdentityKey) -> Recognised {
        let (fragment, body) = (packet.fragment(), packet.body());
        let Some(length) = packet.body_length() else { return Recognised::Unidentified };
        let whole = (without_ports(packet.flow()), fragment.identification);
        if !self.incomplete.contains_key(&whole) {
            self.make_room();
            self.order.push_back(whole);
        }
        let parts = self.incomplete.entry(whole).or_insert_with(|| Parts::of(packet));
        let start = usize::from(fragment.offset) * 8;
        if start == 0 {
            parts.flow = packet.flow();
        }
        if let Some(into) = parts.first.get_mut(start..) {
            let needed = into.len().min(length);
            let Some(bytes) = body.get(..needed) else {
                self.incomplete.remove(&whole);
                return Recognised::Unidentified;
            };
            into[..needed].copy_from_slice(bytes);
            parts.observed_of_first += needed;
        }
        parts.observed += length;
        parts.frames = parts.frames.saturating_add(frame);
        if !fragment.more {
            parts.length = Some(start + length);
        }
        match parts.identity(key) {
            Some(id) => {
                let (flow, length) = (parts.flow, parts.frames);
                self.incomplete.remove(&whole);
                Recognised::As { id, flow, length }
            }
            None => Recognised::Incomplete,
        }
    }

    fn make_room(&mut self) {
        while self.order.len() >= INCOMPLETE_PACKETS {
            if let Some(oldest) = self.order.pop_front() {
                self.incomplete.remove(&oldest);
            }
        }
    }
}

impl Parts {
    fn of(packet: &Packet<'_>) -> Self {
        let flow = packet.flow();
        let is_v4 = flow.source.is_ipv4();
        Self {
            flow,
            identification: if is_v4 { packet.fragment().identification } else { 0 },
            first: [0; IDENTITY_BYTES],
            observed: 0,
            observed_of_first: 0,
            length: None,
            frames: 0,
        }
    }

    /// The identity that the packet has without fragmentation, if all parts were observed.
    fn identity(&self, key: IdentityKey) -> Option<PacketId> {
        let length = self.length.filter(|length| self.observed >= *length)?;
        let window = length.min(IDENTITY_BYTES);
        (self.observed_of_first >= window).then_some(())?;
        let fragment = Fragment { identification: self.identification, ..Fragment::default() };
        let header = IdentifyingHeader { flow: self.flow, fragment, length: Some(length) };
        Some(header.identity(&self.first[..window], key))
    }
}

fn without_ports(mut flow: FlowKey) -> FlowKey {
    flow.source.set_port(0);
    flow.destination.set_port(0);
    flow
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Datagram;
    use crate::{LinkType, MatchRule};

    /// The fragments of an IPv4 packet, with `bytes` above IP in each but the last.
    fn fragments(packet: &[u8], bytes: usize) -> Vec<Vec<u8>> {
        let (header, body) = packet.split_at(20);
        let pieces = body.len().div_ceil(bytes);
        let fragment = |(index, piece): (usize, &[u8])| {
            let mut fragment = [header, piece].concat();
            let length = u16::try_from(fragment.len()).unwrap();
            let offset = u16::try_from(index * bytes / 8).unwrap();
            let more = u16::from(index + 1 < pieces) << 13;
            fragment[2..4].copy_from_slice(&length.to_be_bytes());
            fragment[6..8].copy_from_slice(&(offset | more).to_be_bytes());
            fragment
        };
        body.chunks(bytes).enumerate().map(fragment).collect()
    }

    fn recognise(reassembly: &mut Reassembly, packet: &[u8]) -> Recognised {
        let length = u32::try_from(packet.len()).unwrap();
        let packet = Packet::parse(LinkType::Ip, packet).expect("an IP packet");
        MatchRule::Reassembled.recognise(&packet, length, reassembly, IdentityKey(1))
    }

    #[test]
    fn fragments_have_the_identity_of_their_packet_in_any_order() {
        let packet = Datagram::new(&[7; 300]).ipv4();
        let Recognised::As { id: whole, flow: of_whole, .. } =
            recognise(&mut Reassembly::default(), &packet)
        else {
            panic!("no identity")
        };
        for bytes in [16, 64, 128, 200] {
            let mut fragments = fragments(&packet, bytes);
            for _ in 0..fragments.len() {
                fragments.rotate_left(1);
                let mut reassembly = Reassembly::default();
                let found: Vec<_> =
                    fragments.iter().map(|it| recognise(&mut reassembly, it)).collect();
                let (last, others) = found.split_last().unwrap();
                assert!(others.iter().all(|it| *it == Recognised::Incomplete), "{found:?}");
                let Recognised::As { id, flow, .. } = *last else { panic!("{last:?}") };
                assert_eq!((id, flow), (whole, of_whole), "{bytes}");
            }
        }
    }

    #[test]
    fn packet_without_one_of_its_fragments_is_not_recognised() {
        let mut fragments = fragments(&Datagram::new(&[7; 300]).ipv4(), 64);
        fragments.remove(1);
        let mut reassembly = Reassembly::default();
        let found = fragments.iter().map(|it| recognise(&mut reassembly, it));
        assert!(found.into_iter().all(|it| it == Recognised::Incomplete));
    }

    #[test]
    fn later_packets_replace_incomplete_ones() {
        let first = |identification: u32| {
            let mut fragment = fragments(&Datagram::new(&[7; 300]).ipv4(), 64).swap_remove(0);
            let identification = u16::try_from(identification).unwrap();
            fragment[4..6].copy_from_slice(&identification.to_be_bytes());
            fragment
        };
        let mut reassembly = Reassembly::default();
        (0..10_000).for_each(|n| _ = recognise(&mut reassembly, &first(n)));
        assert!(reassembly.incomplete.len() <= INCOMPLETE_PACKETS);
        assert!(reassembly.order.len() <= INCOMPLETE_PACKETS);
    }
}
