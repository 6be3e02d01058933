//! The identity of a packet: what it is recognised by at another observation point.

use std::net::IpAddr;
use std::ops::Range;

use etherparse::{IpNumber, ip_number};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Packet;

/// How many bytes above IP take part in the identity.
///
/// Points with different snap lengths agree as long as each captures this much: with 60 bytes of
/// IPv4 header and an Ethernet header with two VLAN tags that is 178 bytes, below the 256 that
/// captures of headers commonly keep. It covers the longest TCP header (60 bytes) and what
/// distinguishes datagrams in the protocols carried by UDP (the sequence number of RTP, the
/// packet number of QUIC, the transaction number of DNS), which come first.
pub const IDENTITY_BYTES: usize = 96;

/// Addresses (32), fragment identification (4) and offset (2), protocol (1), IP version and "more
/// fragments" (1), length above IP (4).
const HEADER_BYTES: usize = 44;

/// The key of the hash. All points that are to recognise each other's packets use the same one; a
/// secret one keeps senders who never see an identity from making different packets that share
/// one. The hash (XXH3, 64 bits, the key as its seed) is not a cryptographic one: identities that
/// are published may give the key away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IdentityKey(pub u64);

/// What a packet is recognised by: equal at all points for the same packet and the same
/// [`IdentityKey`]. [`Packet::identity`] computes it.
///
/// A packet is recognised by a hash over fields that stay the same along its path and differ from
/// packet to packet. That is the input RFC 5475 section 6.2 asks of hash-based selection when
/// several observation points are to choose the same packets, and we hash for the same reason.
///
/// In the hash, for both versions of IP: source and destination address, the protocol above IP
/// (in IPv6 the one after the extension headers), the fragment's identification and offset and
/// whether more fragments follow, the length above IP, and the first [`IDENTITY_BYTES`] bytes above
/// IP, that is the transport header with its ports and sequence numbers, then payload. IPv4's
/// identification counts whether or not the packet is a fragment.
///
/// Not in the hash, because routers change it: hop limit (TTL), DSCP and ECN, the IP header
/// checksum, the flow label, IP options and extension headers, the "don't fragment" flag (cleared
/// by tunnels). Nor the checksum of TCP, UDP, UDP-Lite, DCCP, SCTP and ICMP: a packet captured on its
/// sender does not have it yet where the network card fills it in. Nor anything of the link:
/// addresses, VLAN tags, padding.
///
/// # What it cannot do
///
/// - A packet that is changed on the way (address translation, fragmentation, a proxy, a source
///   route in use) is another packet after it.
/// - So is a packet captured on its sender before the network card has cut a large segment up, or
///   on its receiver after segments were joined. Capture on another machine, or turn these
///   offloads off.
/// - Packets that are equal in all that is hashed have the same identity; a retransmitted IPv6
///   datagram is one. The correlator matches them in order.
/// - Two different packets share an identity with probability 2^-64 for a pair, so that among
///   n packets alive at once about n²/2^65 pairs do: with a million alive, 2.7e-8 pairs in all, and
///   a given packet shares its identity with one of the others with probability n/2^64 = 5.4e-14.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PacketId(pub u64);

impl Packet<'_> {
    /// The packet's identity, or `None` if less was captured than takes part in it: fewer than
    /// [`IDENTITY_BYTES`] bytes above IP of a packet that is longer, or not all of a packet that
    /// is shorter. An identity from fewer bytes would differ from that of a point which captured
    /// more.
    #[must_use]
    pub fn identity(&self, key: IdentityKey) -> Option<PacketId> {
        let window = self.body_length().unwrap_or(IDENTITY_BYTES).min(IDENTITY_BYTES);
        let body = self.body().get(..window)?;

        let mut input = [0; HEADER_BYTES + IDENTITY_BYTES];
        input[..HEADER_BYTES].copy_from_slice(&self.identifying_header());
        input[HEADER_BYTES..HEADER_BYTES + window].copy_from_slice(body);
        // Fragments after the first do not begin with a transport header.
        if self.fragment().offset == 0
            && let Some(checksum) = transport_checksum(IpNumber(self.flow().protocol))
        {
            input[HEADER_BYTES..][checksum].fill(0);
        }
        Some(PacketId(xxh3_64_with_seed(&input[..HEADER_BYTES + window], key.0)))
    }

    /// The fields of the IP header that count, the same for both versions of IP.
    fn identifying_header(&self) -> [u8; HEADER_BYTES] {
        let (flow, fragment) = (self.flow(), self.fragment());
        let version = if flow.source.is_ipv4() { 4 } else { 6 };
        // A length that the headers do not state gets a value that none can have.
        let length = self.body_length().and_then(|length| u32::try_from(length).ok());
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

/// Where the checksum is in the transport header: TCP (RFC 9293 section 3.1), UDP (RFC 768) and
/// UDP-Lite (RFC 3828 section 3.1), DCCP (RFC 4340 section 5.1), SCTP (RFC 9260 section 3.1), ICMP
/// (RFC 792) and ICMPv6 (RFC 4443 section 2.1).
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
    fn an_extension_header_that_routers_may_change_does_not_count() {
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
    fn fragments_of_one_packet_differ_by_their_offset() {
        let first = Datagram::new(&[0; 200]);
        let second = Datagram { fragment_offset: 25, ..first.clone() };
        assert_ne!(identities(&first)[0], identities(&second)[0]);
    }

    #[test]
    fn the_key_changes_the_identity() {
        let frame = Datagram::new(b"hello").ipv4();
        let packet = Packet::parse(LinkType::Ip, &frame).expect("an IP packet");
        assert_ne!(packet.identity(IdentityKey(0)), packet.identity(IdentityKey(1)));
    }

    #[test]
    fn both_link_types_give_the_same_identity() {
        let datagram = Datagram::new(b"hello");
        let [v4, _] = identities(&datagram);
        assert_eq!(v4, identity(LinkType::Ip, &datagram.ipv4()));
        assert!(v4.is_some());
    }

    #[test]
    fn a_short_frame_with_an_unset_length_has_no_identity() {
        let datagram = Datagram { padding: 18, ..Datagram::new(b"x") };
        let mut packet = datagram.ipv4();
        packet[2..4].fill(0);
        assert_eq!(identity(LinkType::Ethernet, &datagram.frame(&packet)), None);
    }

    /// The payload bytes within the window, after the UDP header.
    const WINDOW: usize = IDENTITY_BYTES - 8;

    proptest! {
        #[test]
        fn what_is_changed_on_the_way_does_not_count(
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
        fn a_changed_byte_counts_exactly_within_the_window(
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
        fn snap_lengths_agree_or_leave_no_identity(
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
