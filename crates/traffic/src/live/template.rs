//! The frame that all others are copies of: Ethernet, IP, UDP and our payload, with zeroes where the
//! program writes.

use std::net::IpAddr;

use etherparse::PacketBuilder;

use super::{Endpoint, LiveError};
use crate::Payload;

/// The longest frame, without check sequence. A frame has to fit into a page with what the kernel
/// keeps before and behind it, which leaves some 3300 of 4096 bytes, depending on its version; a
/// test sends one of this length.
pub(super) const LONGEST: u16 = 3072;

/// Hops that a frame may take: what Linux gives packets by default (`IPDEFTTL`).
const HOPS: u8 = 64;

const ETHERNET: usize = 14;
const UDP: usize = 8;

/// What every frame looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Where frames come from. The port is the first flow's, the next flow has the next port.
    pub source: Endpoint,
    /// Where they go.
    pub destination: Endpoint,
    /// Bytes of a frame, without check sequence: 60 (IPv4) or 80 (IPv6) to 3072. The brief form of
    /// the [`Payload`] is used below 74 or 94.
    pub frame_bytes: u16,
    /// How many flows the frames belong to, in turn: 1 or more.
    pub flows: u16,
    /// The stream's number in the payload, where it has room for one.
    pub stream: u16,
}

/// A template as the kernel and the program want it.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
    /// Bytes before the UDP header.
    pub(super) udp_at: u32,
    /// Whether the payload has the brief form.
    pub(super) brief: bool,
    /// The ones' complement sum of everything that the checksum covers and that stays the same.
    pub(super) rest: u16,
}

impl Template {
    pub(super) fn frame(&self) -> Result<Frame, LiveError> {
        let (from, to) = (self.source.address, self.destination.address);
        if self.flows == 0 || from.port().checked_add(self.flows - 1).is_none() {
            return Err(LiveError::Flows { flows: self.flows, port: from.port() });
        }
        let link = PacketBuilder::ethernet2(self.source.mac.0, self.destination.mac.0);
        let (ip, ip_header, over) = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                (link.ipv4(from.octets(), to.octets(), HOPS), 20, "IPv4")
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                (link.ipv6(from.octets(), to.octets(), HOPS), 40, "IPv6")
            }
            _ => return Err(LiveError::Versions { from, to }),
        };
        let headers = ETHERNET + ip_header + UDP;
        let size = LiveError::FrameSize {
            bytes: self.frame_bytes,
            min: headers + Payload::BRIEF_BYTES,
            over,
        };
        let length = usize::from(self.frame_bytes).checked_sub(headers);
        let payload = length.and_then(|length| Payload::live(self.stream, length));
        let Some(payload) = payload.filter(|_| self.frame_bytes <= LONGEST) else {
            return Err(size);
        };
        let mut bytes = vec![0; usize::from(self.frame_bytes)];
        // The source port is written by the program too.
        let udp = ip.udp(0, to.port());
        if udp.write_to_slice(&mut bytes, &payload).is_err() {
            return Err(size);
        }
        let udp_at = ETHERNET + ip_header;
        let checksum = u16::from_be_bytes([bytes[udp_at + 6], bytes[udp_at + 7]]);
        Ok(Frame {
            bytes,
            udp_at: u32::try_from(udp_at).unwrap_or(u32::MAX),
            brief: payload.len() < Payload::MIN_BYTES,
            // A checksum is the complement of the sum (RFC 1071).
            rest: !checksum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddress;

    fn template(ipv6: bool, frame_bytes: u16) -> Template {
        let [a, b] = if ipv6 {
            ["[fd77::1]:7000", "[fd77::2]:5000"]
        } else {
            ["10.7.0.1:7000", "10.7.0.2:5000"]
        };
        let end = |text: &str, low| Endpoint {
            mac: MacAddress([2, 0, 0, 0, 0, low]),
            address: text.parse().unwrap(),
        };
        Template { source: end(a, 1), destination: end(b, 2), frame_bytes, flows: 1, stream: 3 }
    }

    #[test]
    fn the_shortest_and_the_longest_frame_are_as_long_as_asked_for_and_no_other_is_built() {
        for (ipv6, least, full) in [(false, 60, 74), (true, 80, 94)] {
            for (bytes, brief) in [(least, true), (full - 1, true), (full, false), (3072, false)] {
                let frame = template(ipv6, bytes).frame().unwrap();
                assert_eq!((frame.bytes.len(), frame.brief), (bytes.into(), brief));
                let payload = &frame.bytes[frame.udp_at as usize + UDP..];
                assert_eq!(Payload::decode(payload).unwrap().sequence, 0);
            }
            for bytes in [0, least - 1, 3073] {
                let error = template(ipv6, bytes).frame().unwrap_err();
                assert!(
                    matches!(error, LiveError::FrameSize { .. }) && error.is_usage(),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn flows_must_be_there_and_have_ports() {
        let with = |flows, port| {
            let mut template = template(false, 100);
            template.flows = flows;
            template.source.address.set_port(port);
            template.frame().is_ok()
        };
        assert!(with(1, 65535) && with(65535, 1) && with(65535, 0));
        assert!(!with(2, 65535) && !with(0, 7000));
    }

    #[test]
    fn both_ends_speak_one_ip_version() {
        let mut mixed = template(false, 100);
        mixed.destination = template(true, 100).destination;
        assert!(matches!(mixed.frame(), Err(LiveError::Versions { .. })));
    }
}
