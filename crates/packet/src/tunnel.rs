//! Packets inside of packets: tunnels without encryption.

use etherparse::{IpNumber, ip_number};

use crate::encapsulation::layer::EncapsulationKind::{Erspan, Geneve, Gre, GtpU, Ip, Pptp, Vxlan};
use crate::encapsulation::layer::EncapsulationLayer;
use crate::{LinkType, Packet};

/// Max depth of tunnels in tunnels.
pub(crate) const MAX_TUNNELS: usize = 4;

/// Generic Routing Encapsulation (RFC 2784), and MPLS in IP (RFC 4023).
const GRE: IpNumber = IpNumber(47);

/// Types of GRE: IP, Ethernet (RFC 7637), ERSPAN type II, PPP (RFC 2637).
const GRE_IPV4: u16 = 0x0800;
const GRE_IPV6: u16 = 0x86dd;
const GRE_ETHERNET: u16 = 0x6558;
const GRE_ERSPAN: u16 = 0x88be;
const GRE_PPP: u16 = 0x880b;
/// Flags of GRE that add four bytes each: checksum, key, sequence number; and the acknowledgment of PPTP.
const GRE_CHECKSUM: u16 = 0x8000;
const GRE_KEY: u16 = 0x2000;
const GRE_SEQUENCE: u16 = 0x1000;
const GRE_ACKNOWLEDGMENT: u16 = 0x0080;
const GRE_VERSION: u16 = 0x0007;
/// Bytes of ERSPAN's own header, which follows a sequence number.
const ERSPAN_HEADER: usize = 8;
/// The bits of its second field with the session.
const ERSPAN_SESSION: u16 = 0x03ff;

/// UDP ports: VXLAN (RFC 7348) and Linux's older default for it, Geneve (RFC 8926), GTP-U (3GPP TS 29.281).
const VXLAN: [u16; 2] = [4789, 8472];
const GENEVE: u16 = 6081;
const GTP_U: u16 = 2152;

/// A packet of a user in GTP-U (3GPP TS 29.281, table 6.1-1); the lower flags say that four more bytes follow.
const GTP_PDU: u8 = 255;
const GTP_OPTIONS: u8 = 0x07;
const GTP_EXTENSION: u8 = 0x04;

/// The flag of VXLAN that its network is valid (RFC 7348, section 5).
const VXLAN_HAS_NETWORK: u8 = 0x08;

/// A tunnel, and what it carries.
type Tunnelled<'a> = (EncapsulationLayer, LinkType, &'a [u8]);

impl<'a> Packet<'a> {
    /// The packet inside of this one: IPIP, 6in4, GRE, VXLAN, Geneve or GTP-U. None for any other packet, for fragments,
    /// and for content that is not IP or was not captured.
    #[must_use]
    pub fn inner(&self) -> Option<Self> {
        let (_, link, bytes) = self.tunnelled()?;
        Self::parse(link, bytes).ok()
    }

    /// The tunnel that this packet belongs to, and what it carries.
    pub(crate) fn tunnelled(&self) -> Option<Tunnelled<'a>> {
        if self.is_fragment() {
            return None;
        }
        match IpNumber(self.flow().protocol) {
            ip_number::IPV4 | ip_number::IPV6 => Some((Ip.with(None), LinkType::Ip, self.body())),
            GRE => inside_gre(self.body()),
            ip_number::UDP => inside_udp(self.flow().destination.port(), self.payload()),
            _ => None,
        }
    }

    /// The packet inside of all tunnels; the packet itself if it is in none.
    #[must_use]
    pub fn innermost(&self) -> Self {
        let mut packet = *self;
        for _ in 0..MAX_TUNNELS {
            match packet.inner() {
                Some(inner) => packet = inner,
                None => break,
            }
        }
        packet
    }
}

fn inside_gre(bytes: &[u8]) -> Option<Tunnelled<'_>> {
    let [flags, kind] = [u16_at(bytes, 0)?, u16_at(bytes, 2)?];
    let has = |flag: u16| usize::from(flags & flag != 0);
    let fields = has(GRE_CHECKSUM) + has(GRE_KEY) + has(GRE_SEQUENCE);
    let after = |fields: usize| bytes.get(4 + 4 * fields..);
    let key = || u32_at(bytes, 4 + 4 * has(GRE_CHECKSUM)).filter(|_| flags & GRE_KEY != 0);
    match (flags & GRE_VERSION, kind) {
        (0, GRE_IPV4 | GRE_IPV6) => Some((Gre.with(key()), LinkType::Ip, after(fields)?)),
        (0, GRE_ETHERNET) => Some((Gre.with(key()), LinkType::Ethernet, after(fields)?)),
        (0, GRE_ERSPAN) => {
            let header = ERSPAN_HEADER * has(GRE_SEQUENCE);
            let session = u16_at(after(fields)?, 2).filter(|_| header > 0);
            let session = session.map(|it| u32::from(it & ERSPAN_SESSION));
            Some((Erspan.with(session), LinkType::Ethernet, after(fields)?.get(header..)?))
        }
        (1, GRE_PPP) => {
            // The key is the length of the payload and the call (RFC 2637, section 4.1).
            let call = key().map(|key| key & 0xffff);
            Some((Pptp.with(call), LinkType::Ppp, after(fields + has(GRE_ACKNOWLEDGMENT))?))
        }
        _ => None,
    }
}

fn inside_udp(port: u16, payload: &[u8]) -> Option<Tunnelled<'_>> {
    // The 24 bits before a reserved byte.
    let network = || u32_at(payload, 4).map(|word| word >> 8);
    match port {
        _ if VXLAN.contains(&port) => {
            let is_valid = payload.first()? & VXLAN_HAS_NETWORK != 0;
            let network = network().filter(|_| is_valid);
            Some((Vxlan.with(network), LinkType::Ethernet, payload.get(8..)?))
        }
        GENEVE => {
            // Version (2 bits) and length of the options in words; flags; type.
            let options = usize::from(payload.first()? & 0x3f) * 4;
            let link = match u16_at(payload, 2)? {
                GRE_ETHERNET => LinkType::Ethernet,
                GRE_IPV4 | GRE_IPV6 => LinkType::Ip,
                _ => return None,
            };
            Some((Geneve.with(network()), link, payload.get(8 + options..)?))
        }
        GTP_U => Some((GtpU.with(u32_at(payload, 4)), LinkType::Ip, inside_gtp(payload)?)),
        _ => None,
    }
}

fn inside_gtp(payload: &[u8]) -> Option<&[u8]> {
    let [flags, kind] = *payload.first_chunk()?;
    // Version 1, protocol GTP.
    if flags >> 4 != 0x3 || kind != GTP_PDU {
        return None;
    }
    let mut header = 8;
    if flags & GTP_OPTIONS != 0 {
        header += 4;
        let mut next = if flags & GTP_EXTENSION == 0 { 0 } else { *payload.get(11)? };
        // Each extension has its length in words first, and the type of the next one last.
        while next != 0 {
            let words = usize::from(*payload.get(header)?);
            if words == 0 {
                return None;
            }
            header += words * 4;
            next = *payload.get(header - 1)?;
        }
    }
    payload.get(header..)
}

fn u16_at(bytes: &[u8], place: usize) -> Option<u16> {
    bytes.get(place..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

fn u32_at(bytes: &[u8], place: usize) -> Option<u32> {
    bytes.get(place..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::Datagram;

    const INNER: &str = "10.77.1.1:5000 > 10.77.2.2:5001 udp";

    /// The flow inside of a packet of `protocol` with this content.
    fn inside(protocol: u8, content: &[u8]) -> String {
        let mut packet = Datagram::new(&[]).ipv4()[..20].to_vec();
        packet[9] = protocol;
        packet[2..4].copy_from_slice(&u16::try_from(20 + content.len()).unwrap().to_be_bytes());
        packet.extend(content);
        let packet = Packet::parse(LinkType::Ip, &packet).expect("an IP packet");
        packet.innermost().flow().to_string()
    }

    /// The same in a UDP datagram to this port.
    fn inside_udp(port: u16, content: &[u8]) -> String {
        let length = u16::try_from(8 + content.len()).unwrap();
        let header: Vec<u8> =
            [33_000, port, length, 0].iter().flat_map(|field| field.to_be_bytes()).collect();
        inside(17, &[&header, content].concat())
    }

    #[test]
    fn packets_in_tunnels_are_found() {
        let datagram = Datagram::new(b"hello");
        let (packet, frame) = (datagram.ipv4(), datagram.frame(&datagram.ipv4()));
        let behind = |header: &[u8], inner: &[u8]| [header, inner].concat();
        assert_eq!(inside(4, &packet), INNER);
        assert_eq!(inside(47, &behind(&[0, 0, 0x08, 0x00], &packet)), INNER);
        let with_key = [0x20, 0, 0x65, 0x58, 0, 0, 0, 1];
        assert_eq!(inside(47, &behind(&with_key, &frame)), INNER);
        let pptp = [0x30, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0x21];
        assert_eq!(inside(47, &behind(&pptp, &packet)), INNER);
        assert_eq!(inside_udp(4789, &behind(&[8, 0, 0, 0, 0, 0, 1, 0], &frame)), INNER);
        let geneve = [1, 0, 0x65, 0x58, 0, 0, 1, 0, 0, 0, 0, 0];
        assert_eq!(inside_udp(6081, &behind(&geneve, &frame)), INNER);
        assert_eq!(inside_udp(2152, &behind(&[0x30, 255, 0, 0, 0, 0, 0, 1], &packet)), INNER);
        let extended = [0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0];
        assert_eq!(inside_udp(2152, &behind(&extended, &packet)), INNER);
        // IPIP in IPIP.
        let mut outer = Datagram::new(&[]).ipv4()[..20].to_vec();
        outer[9] = 4;
        outer[2..4].copy_from_slice(&u16::try_from(20 + packet.len()).unwrap().to_be_bytes());
        assert_eq!(inside(4, &behind(&outer, &packet)), INNER);
    }

    #[test]
    fn packets_in_no_tunnel_are_their_own_innermost() {
        let packet = Datagram::new(b"hello").ipv4();
        let packet = Packet::parse(LinkType::Ip, &packet).expect("an IP packet");
        assert!(packet.inner().is_none());
        assert_eq!(packet.innermost().flow().to_string(), INNER);
        assert!(inside(47, &[0, 0, 0x08]).starts_with("10.77.1.1"));
    }

    proptest! {
        #[test]
        fn arbitrary_content_does_not_panic(
            protocol in prop::sample::select(vec![4u8, 41, 47]),
            port in prop::sample::select(vec![4789u16, 6081, 2152]),
            content in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            inside(protocol, &content);
            inside_udp(port, &content);
        }
    }
}
