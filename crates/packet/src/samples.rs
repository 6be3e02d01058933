//! Frames for the tests, built byte by byte from the RFCs, so that no parser is tested against its own writer.

/// A UDP datagram in a frame, with settable values for all fields that routers and switches may change.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) mac: u8,
    pub(crate) vlan: Option<u16>,
    pub(crate) ttl: u8,
    pub(crate) dscp_ecn: u8,
    pub(crate) flow_label: u16,
    pub(crate) header_checksum: u16,
    pub(crate) transport_checksum: u16,
    pub(crate) flags: u8,
    pub(crate) identification: u16,
    pub(crate) fragment_offset: u16,
    /// IPv4 options, padded to a multiple of four bytes.
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) padding: usize,
}

pub(crate) const SOURCE_PORT: u16 = 5000;
pub(crate) const DESTINATION_PORT: u16 = 5001;
const DONT_FRAGMENT: u8 = 0b010;

impl Datagram {
    pub(crate) fn new(payload: &[u8]) -> Self {
        Self {
            mac: 1,
            vlan: None,
            ttl: 64,
            dscp_ecn: 0,
            flow_label: 0,
            header_checksum: 0xabcd,
            transport_checksum: 0x1234,
            flags: DONT_FRAGMENT,
            identification: 7,
            fragment_offset: 0,
            options: Vec::new(),
            payload: payload.to_vec(),
            padding: 0,
        }
    }

    fn udp(&self) -> Vec<u8> {
        let length = u16::try_from(8 + self.payload.len()).expect("a test payload is short");
        let mut bytes = Vec::new();
        for field in [SOURCE_PORT, DESTINATION_PORT, length, self.transport_checksum] {
            bytes.extend(field.to_be_bytes());
        }
        bytes.extend(&self.payload);
        bytes
    }

    /// The IPv4 packet (RFC 791), without a link header.
    pub(crate) fn ipv4(&self) -> Vec<u8> {
        let udp = self.udp();
        let header = 20 + self.options.len();
        let length = u16::try_from(header + udp.len()).expect("a test payload is short");
        let words = u8::try_from(header / 4).expect("IPv4 has at most 40 bytes of options");
        let fragment = u16::from(self.flags) << 13 | self.fragment_offset;
        let mut bytes = vec![0x40 | words, self.dscp_ecn];
        for field in [length, self.identification, fragment] {
            bytes.extend(field.to_be_bytes());
        }
        bytes.extend([self.ttl, 17]);
        bytes.extend(self.header_checksum.to_be_bytes());
        bytes.extend([10, 77, 1, 1, 10, 77, 2, 2]);
        bytes.extend(&self.options);
        bytes.extend(udp);
        bytes
    }

    /// The IPv6 packet (RFC 8200), with these extension headers before UDP.
    pub(crate) fn ipv6(&self, first_header: u8, extensions: &[u8]) -> Vec<u8> {
        let udp = self.udp();
        let length = u16::try_from(extensions.len() + udp.len()).expect("a test payload is short");
        let [label_high, label_low] = self.flow_label.to_be_bytes();
        let mut bytes = vec![0x60 | self.dscp_ecn >> 4, self.dscp_ecn << 4, label_high, label_low];
        bytes.extend(length.to_be_bytes());
        bytes.extend([first_header, self.ttl]);
        for host in [1, 2] {
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
        }
        bytes.extend(extensions);
        bytes.extend(udp);
        bytes
    }

    /// An Ethernet frame around `packet`, with the configured VLAN tag and padding.
    pub(crate) fn frame(&self, packet: &[u8]) -> Vec<u8> {
        let mut bytes = vec![self.mac; 12];
        if let Some(tag) = self.vlan {
            bytes.extend([0x81, 0x00]);
            bytes.extend(tag.to_be_bytes());
        }
        let is_ipv6 = packet.first().is_some_and(|byte| byte >> 4 == 6);
        bytes.extend(if is_ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] });
        bytes.extend(packet);
        bytes.extend(vec![0xee; self.padding]);
        bytes
    }
}
