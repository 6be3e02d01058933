//! Identity of a packet, by which another observation point recognises it.

mod reassembly;
mod recognised;
mod rule;

use std::net::IpAddr;
use std::ops::Range;

use etherparse::{IpNumber, ip_number};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::internet::Fragment;
use crate::{FlowKey, Packet};
pub use reassembly::{JoinedDatagram, Reassembly};
pub use recognised::Recognised;
pub use rule::MatchRule;

/// Max bytes above IP in the identity.
///
/// Points with different snap lengths agree if each captures this much. With 60 bytes of IPv4 header and an Ethernet
/// header with two VLAN tags that is 178 bytes, below the 256 that captures of headers commonly keep. It covers the
/// longest TCP header (60 bytes), and the fields at the start of UDP payloads that distinguish datagrams: the
/// sequence number of RTP, the packet number of QUIC, the transaction number of DNS.
pub const IDENTITY_BYTES: usize = 96;

/// Addresses (32), fragment identification (4) and offset (2), protocol (1), IP version and "more
/// fragments" (1), length above IP (4).
const HEADER_BYTES: usize = 44;

/// Key of the hash. All points that compare packets use the same key. A secret key prevents senders who never see an
/// identity from making different packets with the same identity. The hash (XXH3, 64 bits, with the key as its seed)
/// is not cryptographic: published identities may reveal the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IdentityKey(pub u64);

/// Identity of a packet: equal at all points for the same packet and the same [`IdentityKey`]. [`Packet::identity`]
/// computes it.
///
/// It is a hash over fields that stay the same along the path and differ from packet to packet. RFC 5475 section 6.2
/// requires such input for hash-based selection of the same packets at several observation points.
///
/// Hashed for both versions of IP: source and destination address, the protocol above IP (in IPv6 the one after the
/// extension headers), the fragment's identification and offset and its "more fragments" flag, the length above IP,
/// and the first [`IDENTITY_BYTES`] bytes above IP. These are the transport header with its ports and sequence
/// numbers, then payload. IPv4's identification is included for packets that are no fragments too.
///
/// Not hashed, because routers change it: hop limit (TTL), DSCP and ECN, the IP header checksum, the flow label, IP
/// options and extension headers, the "don't fragment" flag (cleared by tunnels). The checksums of TCP, UDP,
/// UDP-Lite, DCCP, SCTP and ICMP are excluded too: with checksum offload a packet captured on its sender does not
/// have them yet. Link-layer fields (addresses, VLAN tags, padding) are also excluded.
///
/// # Limits
///
/// - A packet that is changed on the path (address translation, fragmentation, a proxy, a source route in use) is
///   another packet afterwards. [`MatchRule`] has identities for some of these cases.
/// - So is a packet captured on its sender before segmentation offload, or on its receiver after receive offload.
///   [`Segmentation`](crate::Segmentation) divides such segments of TCP.
/// - Packets with equal hashed fields have the same identity, for example a retransmitted IPv6 datagram. The
///   correlator matches them in order.
/// - Two different packets share an identity with probability 2^-64. Among n packets in flight about n²/2^65 pairs
///   do: 2.7e-8 pairs for a million. A given packet shares its identity with one of the others with probability
///   n/2^64 = 5.4e-14.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PacketId(pub u64);

impl Packet<'_> {
    /// Identity of the packet. `None` if too few bytes were captured: fewer than [`IDENTITY_BYTES`] bytes above IP of
    /// a longer packet, or not all of a shorter one. An identity from fewer bytes would differ from that of a point
    /// that captured more.
    #[must_use]
    pub fn identity(&self, key: IdentityKey) -> Option<PacketId> {
        self.identity_of_first(IDENTITY_BYTES, key)
    }

    /// Identity of the packet by its first bytes above IP, at most [`IDENTITY_BYTES`].
    fn identity_of_first(&self, bytes: usize, key: IdentityKey) -> Option<PacketId> {
        let window = self.body_length().unwrap_or(bytes).min(bytes);
        let body = self.body().get(..window)?;
        Some(self.header().identity(body, key))
    }

    fn header(&self) -> IdentifyingHeader {
        IdentifyingHeader {
            flow: self.flow(),
            fragment: self.fragment(),
            length: self.body_length(),
        }
    }
}

/// Fields of the IP header that identify a packet, the same for both versions of IP.
#[derive(Clone, Copy, Debug)]
struct IdentifyingHeader {
    flow: FlowKey,
    fragment: Fragment,
    /// Bytes above IP.
    length: Option<usize>,
}

impl IdentifyingHeader {
    /// The identity of a packet whose bytes above IP begin with `body`, at most [`IDENTITY_BYTES`].
    fn identity(&self, body: &[u8], key: IdentityKey) -> PacketId {
        let window = body.len().min(IDENTITY_BYTES);
        let mut input = [0; HEADER_BYTES + IDENTITY_BYTES];
        input[..HEADER_BYTES].copy_from_slice(&self.bytes());
        input[HEADER_BYTES..HEADER_BYTES + window].copy_from_slice(&body[..window]);
        // Fragments after the first do not begin with a transport header.
        if self.fragment.offset == 0
            && let Some(checksum) = transport_checksum(IpNumber(self.flow.protocol))
        {
            input[HEADER_BYTES..][checksum].fill(0);
        }
        PacketId(xxh3_64_with_seed(&input[..HEADER_BYTES + window], key.0))
    }

    fn bytes(&self) -> [u8; HEADER_BYTES] {
        let Self { flow, fragment, length } = self;
        let version = if flow.source.is_ipv4() { 4 } else { 6 };
        // An unknown length gets a value that no known length has.
        let length = length.and_then(|length| u32::try_from(length).ok());
        let mut header = [0; HEADER_BYTES];
        write_address(&mut header[..16], flow.source.ip());
        write_address(&mut header[16..32], flow.destination.ip());
        header[32..36].copy_from_slice(&fragment.identification.to_be_bytes());
        header[36..38].copy_from_slice(&fragment.offset.to_be_bytes());
        header[38] = flow.protocol;
        header[39] = version | u8::from(fragment.more) << 7;
        header[40..].copy_from_slice(&length.unwrap_or(u32::MAX).to_be_bytes());
        header
    }
}

/// Position of the checksum in the transport header: TCP (RFC 9293 section 3.1), UDP (RFC 768) and UDP-Lite (RFC 3828
/// section 3.1), DCCP (RFC 4340 section 5.1), SCTP (RFC 9260 section 3.1), ICMP (RFC 792) and ICMPv6 (RFC 4443
/// section 2.1).
fn transport_checksum(protocol: IpNumber) -> Option<Range<usize>> {
    match protocol {
        ip_number::TCP => Some(16..18),
        ip_number::UDP | ip_number::UDP_LITE | ip_number::DCCP => Some(6..8),
        ip_number::SCTP => Some(8..12),
        ip_number::ICMP | ip_number::IPV6_ICMP => Some(2..4),
        _ => None,
    }
}

/// Writes an address into 16 zeroed bytes; IPv4 takes the first four.
fn write_address(field: &mut [u8], address: IpAddr) {
    match address {
        IpAddr::V4(v4) => field[..4].copy_from_slice(&v4.octets()),
        IpAddr::V6(v6) => field.copy_from_slice(&v6.octets()),
    }
}

#[cfg(test)]
mod pairs;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::LinkType;
    use crate::samples::Datagram;

    const KEY: IdentityKey = IdentityKey(0);

    fn identity(link: LinkType, bytes: &[u8]) -> Option<PacketId> {
        Packet::parse(link, bytes).expect("an IP packet").identity(KEY)
    }

    /// Both versions of `datagram` as frames.
    fn frames(datagram: &Datagram) -> [Vec<u8>; 2] {
        [datagram.frame(&datagram.ipv4()), datagram.frame(&datagram.ipv6(17, &[]))]
    }

    fn identities(datagram: &Datagram) -> [Option<PacketId>; 2] {
        frames(datagram).map(|frame| identity(LinkType::Ethernet, &frame))
    }

    #[test]
    fn extension_headers_are_not_hashed() {
        let datagram = Datagram::new(b"hello");
        // Hop-by-hop options: next header UDP, 8 bytes long, one padding option.
        let options = [17, 0, 1, 4, 0, 0, 0, 0];
        assert_eq!(
            identity(LinkType::Ip, &datagram.ipv6(0, &options)),
            identity(LinkType::Ip, &datagram.ipv6(17, &[])),
        );
        assert_eq!(identity(LinkType::Ip, &datagram.ipv6(0, &options)[..44]), None);
    }

    #[test]
    fn fragments_differ_by_their_offset() {
        let first = Datagram::new(&[0; 200]);
        let second = Datagram { fragment_offset: 25, ..first.clone() };
        assert_ne!(identities(&first)[0], identities(&second)[0]);
    }

    #[test]
    fn key_changes_the_identity() {
        let frame = Datagram::new(b"hello").ipv4();
        let packet = Packet::parse(LinkType::Ip, &frame).expect("an IP packet");
        assert_ne!(packet.identity(IdentityKey(0)), packet.identity(IdentityKey(1)));
    }

    #[test]
    fn identity_is_independent_of_the_link() {
        let datagram = Datagram::new(b"hello");
        let [v4, _] = identities(&datagram);
        assert_eq!(v4, identity(LinkType::Ip, &datagram.ipv4()));
        assert!(v4.is_some());
    }

    #[test]
    fn short_frame_without_length_has_no_identity() {
        let datagram = Datagram { padding: 18, ..Datagram::new(b"x") };
        let mut packet = datagram.ipv4();
        packet[2..4].fill(0);
        assert_eq!(identity(LinkType::Ethernet, &datagram.frame(&packet)), None);
    }

    /// The payload bytes within the window, after the UDP header.
    const WINDOW: usize = IDENTITY_BYTES - 8;

    proptest! {
        #[test]
        fn mutable_fields_are_not_hashed(
            payload in prop::collection::vec(any::<u8>(), 0..200),
            (mac, vlan, padding) in (any::<u8>(), any::<Option<u16>>(), 0usize..50),
            (ttl, dscp_ecn, flow_label) in (any::<u8>(), any::<u8>(), any::<u16>()),
            (header_checksum, transport_checksum) in any::<(u16, u16)>(),
            flags in prop::sample::select(vec![0b000u8, 0b010]),
        ) {
            let sent = Datagram::new(&payload);
            let received = Datagram {
                mac, vlan, padding, ttl, dscp_ecn, flow_label, header_checksum, transport_checksum,
                flags, ..sent.clone()
            };
            let expected = identities(&sent);
            prop_assert!(expected.iter().all(Option::is_some));
            prop_assert_eq!(identities(&received), expected);
        }

        #[test]
        fn exactly_the_bytes_in_the_window_are_hashed(
            payload in prop::collection::vec(any::<u8>(), 1..200),
            place in any::<prop::sample::Index>(),
            change in 1u8..,
        ) {
            let place = place.index(payload.len());
            let sent = Datagram::new(&payload);
            let mut changed = sent.clone();
            changed.payload[place] ^= change;
            for (one, other) in identities(&sent).into_iter().zip(identities(&changed)) {
                prop_assert_eq!(one == other, place >= WINDOW);
            }
        }

        #[test]
        fn snap_lengths_agree_or_give_no_identity(
            payload in prop::collection::vec(any::<u8>(), 0..200),
            kept in any::<prop::sample::Index>(),
        ) {
            let datagram = Datagram::new(&payload);
            for (frame, header) in frames(&datagram).iter().zip([34, 54]) {
                let whole = identity(LinkType::Ethernet, frame);
                let kept = header + kept.index(frame.len() - header + 1);
                let cut = identity(LinkType::Ethernet, &frame[..kept]);
                let enough = kept - header >= IDENTITY_BYTES || kept == frame.len();
                prop_assert_eq!(cut, if enough { whole } else { None });
            }
        }
    }
}
