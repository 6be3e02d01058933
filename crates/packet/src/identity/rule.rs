//! By what packets of two points are recognised as the same, where the path changes them.

use std::fmt::{self, Display};
use std::str::FromStr;

use etherparse::{IpNumber, ip_number};
use serde::Serialize;
use wirestamp_clock::{Time, Utc};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::recognised::Recognised;
use super::{IDENTITY_BYTES, IdentityKey, Packet, PacketId, Reassembly, transport_checksum};
use crate::rtp::Rtp;

/// Bytes above IP that [`MatchRule::Beginning`] uses: with the headers of Ethernet, two VLAN tags and IPv6 they are within
/// a snap length of 104 bytes.
const BEGINNING_BYTES: usize = 42;

/// Bytes before the payload in the input of [`MatchRule::Payload`]: protocol (1), identification (4), length (4), and the
/// fields of TCP that translation does not change (10).
const PAYLOAD_HEADER: usize = 19;

/// The rule by which packets of two points are recognised as the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum MatchRule {
    /// Addresses, ports and content ([`Packet::identity`]): for paths that leave packets as they are.
    #[default]
    Packet,
    /// The same with fewer bytes: for captures with a short snap length.
    Beginning,
    /// Whole packets, which may be fragments at one point: fragments are joined.
    Reassembled,
    /// The packet inside of all tunnels.
    Inner,
    /// The payload without addresses and ports: for address translation.
    Payload,
    /// Source (SSRC), sequence number, time and payload type of RTP: for address translation and relays of media.
    Rtp,
}

impl MatchRule {
    /// All rules.
    pub const ALL: [Self; 6] =
        [Self::Packet, Self::Beginning, Self::Reassembled, Self::Inner, Self::Payload, Self::Rtp];

    /// The name on the command line and in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Beginning => "beginning",
            Self::Reassembled => "reassembled",
            Self::Inner => "inner",
            Self::Payload => "payload",
            Self::Rtp => "rtp",
        }
    }

    /// The packet that the rule looks at: the one inside of all tunnels for [`Self::Inner`], otherwise the packet itself.
    #[must_use]
    pub fn view<'a>(self, packet: &Packet<'a>) -> Packet<'a> {
        if self == Self::Inner { packet.innermost() } else { *packet }
    }

    /// Recognises a packet of [`Self::view`] that was captured at `time`, and whose frame has `length` bytes on the wire.
    /// `reassembly` holds the fragments so far of this point; it is used, with the time, by [`Self::Reassembled`] only.
    #[must_use]
    pub fn recognise(
        self,
        packet: &Packet<'_>,
        length: u32,
        time: Time<Utc>,
        reassembly: &mut Reassembly,
        key: IdentityKey,
    ) -> Recognised {
        if self == Self::Reassembled && packet.is_fragment() {
            return reassembly.add(packet, length, time, key);
        }
        let id = match self {
            Self::Packet | Self::Reassembled | Self::Inner => packet.identity(key),
            Self::Beginning => packet.identity_of_first(BEGINNING_BYTES, key),
            Self::Payload => packet.payload_identity(key),
            Self::Rtp => packet.rtp_identity(key),
        };
        id.map_or(Recognised::Unidentified, |id| Recognised::As { id, flow: packet.flow(), length })
    }
}

impl Packet<'_> {
    /// Identity by protocol, payload and IPv4's identification; by the sequence numbers of TCP, too. ICMP's identifier is
    /// excluded, as translation changes it. `None` if too few bytes were captured, and for fragments.
    fn payload_identity(&self, key: IdentityKey) -> Option<PacketId> {
        if self.is_fragment() {
            return None;
        }
        let protocol = IpNumber(self.flow().protocol);
        let (content, length) = match protocol {
            ip_number::TCP | ip_number::UDP => (self.payload(), self.payload_length()),
            _ => (self.body(), self.body_length()),
        };
        let window = length.unwrap_or(IDENTITY_BYTES).min(IDENTITY_BYTES);
        let content = content.get(..window)?;
        let mut input = [0; PAYLOAD_HEADER + IDENTITY_BYTES];
        input[0] = protocol.0;
        input[1..5].copy_from_slice(&self.fragment().identification.to_be_bytes());
        let length = length.and_then(|length| u32::try_from(length).ok()).unwrap_or(u32::MAX);
        input[5..9].copy_from_slice(&length.to_be_bytes());
        if protocol == ip_number::TCP {
            // Sequence number, acknowledgment, data offset and flags.
            input[9..PAYLOAD_HEADER].copy_from_slice(self.body().get(4..14)?);
        }
        let rest = &mut input[PAYLOAD_HEADER..];
        rest[..window].copy_from_slice(content);
        if protocol != ip_number::TCP && protocol != ip_number::UDP {
            let checksum = transport_checksum(protocol);
            checksum.into_iter().for_each(|checksum| rest[checksum].fill(0));
        }
        if matches!(protocol, ip_number::ICMP | ip_number::IPV6_ICMP) {
            rest[4..6].fill(0);
        }
        Some(PacketId(xxh3_64_with_seed(&input[..PAYLOAD_HEADER + window], key.0)))
    }

    /// Identity by the header of RTP. `None` for everything else.
    fn rtp_identity(&self, key: IdentityKey) -> Option<PacketId> {
        if self.flow().protocol != ip_number::UDP.0 {
            return None;
        }
        let rtp =
            Rtp::parse(self.payload(), self.payload_length().unwrap_or(self.payload().len()))?;
        let mut input = [0; 11];
        input[..4].copy_from_slice(&rtp.ssrc().to_be_bytes());
        input[4..6].copy_from_slice(&rtp.sequence().to_be_bytes());
        input[6..10].copy_from_slice(&rtp.timestamp().to_be_bytes());
        input[10] = rtp.payload_type();
        Some(PacketId(xxh3_64_with_seed(&input, key.0)))
    }
}

impl Display for MatchRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MatchRule {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|rule| rule.name() == name);
        known.ok_or_else(|| {
            format!("unknown rule; there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use crate::samples::Datagram;

    fn id(rule: MatchRule, packet: &[u8]) -> Option<PacketId> {
        let packet = Packet::parse(LinkType::Ip, packet).expect("an IP packet");
        let (time, mut reassembly) = (Time::from_nanos(0), Reassembly::default());
        match rule.recognise(&packet, 0, time, &mut reassembly, IdentityKey(1)) {
            Recognised::As { id, .. } => Some(id),
            Recognised::Incomplete | Recognised::Unidentified => None,
        }
    }

    /// The packet with another source address and port.
    fn translated(packet: &[u8]) -> Vec<u8> {
        let mut packet = packet.to_vec();
        packet[12..16].copy_from_slice(&[192, 0, 2, 9]);
        packet[20..22].copy_from_slice(&40_000_u16.to_be_bytes());
        packet[26..28].copy_from_slice(&[1, 2]);
        packet
    }

    #[test]
    fn payload_and_rtp_survive_address_translation() {
        let mut rtp = vec![0x80, 18, 0, 7, 0, 0, 0, 160, 1, 2, 3, 4];
        rtp.extend([9; 20]);
        let packet = Datagram::new(&rtp).ipv4();
        let other = translated(&packet);
        for (rule, same) in
            [(MatchRule::Packet, false), (MatchRule::Payload, true), (MatchRule::Rtp, true)]
        {
            let [here, there] = [&packet, &other].map(|packet| id(rule, packet));
            assert!(here.is_some() && (here == there) == same, "{rule}");
        }
        let mut next = packet.clone();
        next[31] += 1;
        assert_ne!(id(MatchRule::Rtp, &next), id(MatchRule::Rtp, &packet));
        assert_ne!(id(MatchRule::Payload, &next), id(MatchRule::Payload, &packet));
        assert_eq!(id(MatchRule::Rtp, &Datagram::new(b"no media").ipv4()), None);
    }

    #[test]
    fn beginning_needs_fewer_bytes() {
        let packet = Datagram::new(&[7; 400]).ipv4();
        assert_eq!(id(MatchRule::Packet, &packet[..80]), None);
        let beginning = id(MatchRule::Beginning, &packet);
        assert!(beginning.is_some() && id(MatchRule::Beginning, &packet[..80]) == beginning);
        assert_eq!(id(MatchRule::Beginning, &packet[..60]), None);
    }

    #[test]
    fn rules_have_names() {
        for rule in MatchRule::ALL {
            assert_eq!(rule.name().parse(), Ok(rule));
        }
        assert!("other".parse::<MatchRule>().unwrap_err().contains("packet, beginning"));
    }
}
