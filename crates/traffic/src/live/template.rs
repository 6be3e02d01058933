//! The frame that the kernel duplicates: Ethernet, IP, UDP and test payload, with zeroes where the
//! program writes.

use std::net::SocketAddr;

use super::error::MAX_FRAME_BYTES;
use super::{Endpoint, LiveError};
use crate::Payload;
use crate::datagram::{FrameAddresses, frame};
use crate::mac::ETHERNET_HEADER;

const UDP: usize = 8;

/// Contents of every frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Source. Its port is that of the first flow; each further flow has the next port.
    pub source: Endpoint,
    /// Destination.
    pub destination: Endpoint,
    /// Bytes of a frame, without check sequence: 60 (IPv4) or 80 (IPv6) to 3072. Below 74 (IPv4) or
    /// 94 (IPv6), frames carry the short form of the [`Payload`].
    pub frame_bytes: u16,
    /// Number of flows, 1 or more; frames belong to them in rotation.
    pub flows: u16,
    /// Stream number in the payload; the short form has none.
    pub stream: u16,
}

/// The frame and the constants for the program.
#[derive(Debug)]
pub(super) struct FrameImage {
    pub(super) bytes: Vec<u8>,
    /// Bytes before the UDP header.
    pub(super) udp_at: u32,
    /// Whether the payload has the short form.
    pub(super) short_payload: bool,
    /// The ones' complement sum of the constant data that the UDP checksum covers.
    pub(super) fixed_sum: u16,
}

impl Template {
    pub(super) fn frame(&self) -> Result<FrameImage, LiveError> {
        let (from, to) = (self.source.address, self.destination.address);
        if self.flows == 0 || from.port().checked_add(self.flows - 1).is_none() {
            return Err(LiveError::Flows { flows: self.flows, port: from.port() });
        }
        let (ip_header, over) = match (from.is_ipv4(), to.is_ipv4()) {
            (true, true) => (20, "IPv4"),
            (false, false) => (40, "IPv6"),
            _ => return Err(LiveError::Versions { from, to }),
        };
        let headers = ETHERNET_HEADER + ip_header + UDP;
        let size = LiveError::FrameSize {
            bytes: self.frame_bytes,
            min: headers + Payload::SHORT_BYTES,
            over,
        };
        let length = usize::from(self.frame_bytes).checked_sub(headers);
        let payload = length.and_then(|length| Payload::live(self.stream, self.flows, length));
        let Some(payload) = payload.filter(|_| self.frame_bytes <= MAX_FRAME_BYTES) else {
            return Err(size);
        };
        // The program also writes the source port.
        let addresses = FrameAddresses {
            mac: [self.source.mac, self.destination.mac],
            address: [SocketAddr::new(from.ip(), 0), to],
        };
        let Some((bytes, fixed_sum)) = frame(&addresses, 0, &payload) else { return Err(size) };
        Ok(FrameImage {
            bytes,
            udp_at: u32::try_from(ETHERNET_HEADER + ip_header).unwrap_or(u32::MAX),
            short_payload: payload.len() < Payload::MIN_BYTES,
            fixed_sum,
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
    fn frame_sizes_outside_the_range_are_rejected() {
        for (ipv6, least, full) in [(false, 60, 74), (true, 80, 94)] {
            for (bytes, brief) in [(least, true), (full - 1, true), (full, false), (3072, false)] {
                let frame = template(ipv6, bytes).frame().unwrap();
                assert_eq!((frame.bytes.len(), frame.short_payload), (bytes.into(), brief));
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
    fn flows_beyond_the_last_port_are_rejected() {
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
    fn mixed_ip_versions_are_rejected() {
        let mut mixed = template(false, 100);
        mixed.destination = template(true, 100).destination;
        assert!(matches!(mixed.frame(), Err(LiveError::Versions { .. })));
    }
}
