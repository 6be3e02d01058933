//! What carries an IP packet on a link: VLANs, labels, tunnels.

pub(crate) mod layer;

use std::fmt;

use self::layer::EncapsulationLayer;
use crate::tunnel::MAX_TUNNELS;
use crate::{LinkType, Packet};

/// Max number of headers that are kept; those further inside are left out.
const MAX_LAYERS: usize = 6;

/// The headers between the link header and an IP packet, from the outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encapsulation {
    layers: [Option<EncapsulationLayer>; MAX_LAYERS],
}

impl Encapsulation {
    /// The encapsulation of the IP packet in a captured frame; with `inner`, that of the packet inside of all tunnels. None for
    /// an IP packet directly after the link header.
    #[must_use]
    pub fn of(link: LinkType, frame: &[u8], inner: bool) -> Option<Self> {
        if !inner && link.is_plain(frame) {
            return None;
        }
        let mut found = Self::default();
        link.tags(frame, &mut |layer| found.push(layer));
        if inner && let Ok(packet) = Packet::parse(link, frame) {
            found.push_tunnels(packet);
        }
        (found != Self::default()).then_some(found)
    }

    /// The headers, from the outside.
    pub fn layers(&self) -> impl Iterator<Item = EncapsulationLayer> {
        self.layers.into_iter().flatten()
    }

    fn push(&mut self, layer: EncapsulationLayer) {
        if let Some(free) = self.layers.iter_mut().find(|place| place.is_none()) {
            *free = Some(layer);
        }
    }

    /// Adds the tunnels that `packet` belongs to, and what carries the packets in them.
    fn push_tunnels(&mut self, mut packet: Packet<'_>) {
        for _ in 0..MAX_TUNNELS {
            let Some((tunnel, link, bytes)) = packet.tunnelled() else { return };
            let Ok(inner) = Packet::parse(link, bytes) else { return };
            self.push(tunnel);
            link.tags(bytes, &mut |layer| self.push(layer));
            packet = inner;
        }
    }
}

/// `vlan 100, vxlan 42`.
impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, EncapsulationLayer { kind, id }) in self.layers().enumerate() {
            f.write_str(if number == 0 { "" } else { ", " })?;
            f.write_str(kind.name())?;
            id.map_or(Ok(()), |id| write!(f, " {id}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::Datagram;

    fn of(frame: &[u8], inner: bool) -> Option<String> {
        Encapsulation::of(LinkType::Ethernet, frame, inner).map(|it| it.to_string())
    }

    /// An Ethernet frame with this type and content.
    fn frame(ether_type: u16, content: &[u8]) -> Vec<u8> {
        [&[2; 12], &ether_type.to_be_bytes()[..], content].concat()
    }

    /// An IPv4 packet of this protocol.
    fn ipv4(protocol: u8, content: &[u8]) -> Vec<u8> {
        let mut packet = Datagram::new(&[]).ipv4()[..20].to_vec();
        packet[9] = protocol;
        packet[2..4].copy_from_slice(&u16::try_from(20 + content.len()).unwrap().to_be_bytes());
        [packet, content.to_vec()].concat()
    }

    fn udp(port: u16, content: &[u8]) -> Vec<u8> {
        let length = u16::try_from(8 + content.len()).unwrap();
        let header = [33_000, port, length, 0].map(u16::to_be_bytes);
        ipv4(17, &[header.as_flattened(), content].concat())
    }

    #[test]
    fn plain_packets_have_none() {
        let packet = Datagram::new(b"hello").ipv4();
        assert_eq!(of(&frame(0x0800, &packet), false), None);
        assert_eq!(of(&frame(0x0800, &packet), true), None);
        assert_eq!(Encapsulation::of(LinkType::Ip, &packet, false), None);
    }

    #[test]
    fn tags_are_found_from_the_outside() {
        let packet = Datagram::new(b"hello").ipv4();
        let tagged = |tci: u16, ether_type: u16, content: &[u8]| {
            [&tci.to_be_bytes()[..], &ether_type.to_be_bytes(), content].concat()
        };
        // Priority 5.
        let inner = tagged(0xa000 | 42, 0x0800, &packet);
        assert_eq!(of(&frame(0x8100, &inner), false).as_deref(), Some("vlan 42"));
        let both = tagged(100, 0x8100, &inner);
        assert_eq!(of(&frame(0x88a8, &both), true).as_deref(), Some("vlan 100, vlan 42"));
        let priority = tagged(0xa000, 0x0800, &packet);
        assert_eq!(of(&frame(0x8100, &priority), false).as_deref(), Some("vlan"));
        // Labels 16 (not the last) and 1000.
        let labels = [&[0, 1, 0, 64, 0, 0x3e, 0x81, 64][..], &packet].concat();
        assert_eq!(of(&frame(0x8847, &labels), false).as_deref(), Some("mpls 16, mpls 1000"));
        let session = [&[0x11, 0, 0, 7, 0, 0, 0, 0x21][..], &packet].concat();
        assert_eq!(of(&frame(0x8864, &session), false).as_deref(), Some("pppoe 7"));
    }

    #[test]
    fn tunnels_have_their_identifiers() {
        let datagram = Datagram::new(b"hello");
        let packet = datagram.ipv4();
        let tagged = frame(0x8100, &[&[0, 42, 8, 0][..], &packet].concat());
        let behind = |header: &[u8], inner: &[u8]| [header, inner].concat();
        let cases = [
            (ipv4(4, &packet), "ip"),
            (ipv4(47, &behind(&[0, 0, 8, 0], &packet)), "gre"),
            (ipv4(47, &behind(&[0xa0, 0, 8, 0, 9, 9, 9, 9, 0, 0, 1, 1], &packet)), "gre 257"),
            (
                ipv4(
                    47,
                    &behind(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 5, 0, 0, 0, 0], &tagged),
                ),
                "erspan 5, vlan 42",
            ),
            (
                ipv4(47, &behind(&[0x30, 0x01, 0x88, 0x0b, 0, 9, 0, 3, 0, 0, 0, 2, 0x21], &packet)),
                "pptp 3",
            ),
            (udp(4789, &behind(&[8, 0, 0, 0, 0, 1, 0, 0], &tagged)), "vxlan 256, vlan 42"),
            (udp(4789, &behind(&[0, 0, 0, 0, 0, 1, 0, 0], &tagged)), "vxlan, vlan 42"),
            (udp(6081, &behind(&[0, 0, 8, 0, 0, 0, 7, 0], &packet)), "geneve 7"),
            (udp(2152, &behind(&[0x30, 255, 0, 0, 0, 0, 1, 0], &packet)), "gtp-u 256"),
        ];
        for (packet, expected) in cases {
            let frame = frame(0x0800, &packet);
            assert_eq!(of(&frame, true).as_deref(), Some(expected));
            assert_eq!(of(&frame, false), None, "{expected}: without the inner packet");
        }
        let twice = frame(0x0800, &ipv4(4, &ipv4(47, &behind(&[0, 0, 8, 0], &packet))));
        assert_eq!(of(&twice, true).as_deref(), Some("ip, gre"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(
            link in 0u32..300,
            bytes in prop::collection::vec(any::<u8>(), 0..150),
            inner in any::<bool>(),
        ) {
            if let Some(link) = LinkType::of_number(link) {
                let _ = Encapsulation::of(link, &bytes, inner);
            }
        }
    }
}
