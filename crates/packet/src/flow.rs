//! Flow key: the five-tuple of a packet.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{SocketAddr, SocketAddrV4};

use serde::{Deserialize, Serialize};

/// The five-tuple of a packet: one direction of one conversation.
///
/// Ports are 0 for protocols without ports, and for fragments after the first, which have no transport header. Such
/// fragments form a separate flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FlowKey {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
    /// Protocol number above IP (IANA: 6 TCP, 17 UDP). In IPv6 the one after the extension headers.
    pub protocol: u8,
}

impl Hash for FlowKey {
    /// The flow of each packet is looked up by its hash: IPv4 in two words, where the fields one by one take ten.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let word = |end: SocketAddrV4| u64::from(end.ip().to_bits()) << 16 | u64::from(end.port());
        match (self.source, self.destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                state.write_u64(u64::from(self.protocol) << 48 | word(source));
                state.write_u64(word(destination));
            }
            ends => (ends, self.protocol).hash(state),
        }
    }
}

impl fmt::Display for FlowKey {
    /// `10.77.1.1:5000 > 10.77.2.2:5000 udp`; without ports if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source.port() == 0 && self.destination.port() == 0 {
            write!(f, "{} > {} ", self.source.ip(), self.destination.ip())?;
        } else {
            write!(f, "{} > {} ", self.source, self.destination)?;
        }
        match keyword(self.protocol) {
            Some(keyword) => f.write_str(keyword),
            None => write!(f, "protocol {}", self.protocol),
        }
    }
}

/// Usual name of a protocol number (IANA "Assigned Internet Protocol Numbers", in lower case).
fn keyword(protocol: u8) -> Option<&'static str> {
    Some(match protocol {
        1 => "icmp",
        2 => "igmp",
        6 => "tcp",
        17 => "udp",
        33 => "dccp",
        47 => "gre",
        50 => "esp",
        58 => "ipv6-icmp",
        132 => "sctp",
        136 => "udplite",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source: &str, destination: &str, protocol: u8) -> FlowKey {
        let parse = |text: &str| text.parse().expect("a socket address");
        FlowKey { source: parse(source), destination: parse(destination), protocol }
    }

    #[test]
    fn flow_is_printed_with_names_and_ports() {
        let written =
            |source, destination, protocol| flow(source, destination, protocol).to_string();
        assert_eq!(
            written("10.77.1.1:5000", "10.77.2.2:5001", 17),
            "10.77.1.1:5000 > 10.77.2.2:5001 udp"
        );
        assert_eq!(written("[fd00::1]:80", "[fd00::2]:81", 6), "[fd00::1]:80 > [fd00::2]:81 tcp");
        assert_eq!(written("[fd00::1]:0", "[fd00::2]:0", 58), "fd00::1 > fd00::2 ipv6-icmp");
        assert_eq!(written("10.0.0.1:0", "10.0.0.2:0", 253), "10.0.0.1 > 10.0.0.2 protocol 253");
    }
}
