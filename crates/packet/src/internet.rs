//! Network layer of a captured packet: a common form of IPv4 and IPv6.

use std::net::{IpAddr, SocketAddr};

use etherparse::{
    Ipv6ExtensionSlice, Ipv6ExtensionsSlice, LaxIpPayloadSlice, LaxIpv4Slice, LaxIpv6Slice,
    LenSource, ip_number,
};

use crate::FlowKey;

/// Fields that distinguish the fragments of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Identification of IPv4 or of an IPv6 fragment header; 0 for IPv6 without one.
    pub(crate) identification: u32,
    /// Position of the body in the unfragmented packet, in units of 8 bytes.
    pub(crate) offset: u16,
    /// True if more fragments follow.
    pub(crate) more: bool,
}

/// The network layer of a packet, the same for both versions of IP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Internet<'a> {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    pub(crate) fragment: Fragment,
    /// Captured bytes above IP.
    pub(crate) body: &'a [u8],
    /// Bytes above IP on the wire, if the headers state it.
    pub(crate) body_length: Option<usize>,
}

impl<'a> Internet<'a> {
    pub(crate) fn v4(ip: &LaxIpv4Slice<'a>) -> Self {
        let header = ip.header();
        let authentication = ip.extensions().auth.map_or(0, |auth| auth.slice().len());
        let stated =
            usize::from(header.total_len()).saturating_sub(header.slice().len() + authentication);
        Self {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            protocol: ip.payload().ip_number.0,
            fragment: Fragment {
                identification: header.identification().into(),
                offset: header.fragments_offset().value(),
                more: header.more_fragments(),
            },
            body: ip.payload().payload,
            body_length: length_on_wire(ip.payload(), stated),
        }
    }

    /// `extensions` are the packet's extension headers if all of them are readable, and none otherwise: etherparse
    /// 0.21 iterates past the end of an incomplete chain.
    pub(crate) fn v6(ip: &LaxIpv6Slice<'a>, extensions: &Ipv6ExtensionsSlice<'a>) -> Self {
        let header = ip.header();
        let stated = usize::from(header.payload_length()).saturating_sub(extensions.slice().len());
        Self {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            protocol: ip.payload().ip_number.0,
            fragment: fragment_header(extensions),
            body: ip.payload().payload,
            body_length: length_on_wire(ip.payload(), stated),
        }
    }

    /// The same without fragmentation and with another body, of which `length` bytes are on the wire.
    pub(crate) fn with_body<'b>(
        &self,
        identification: u32,
        body: &'b [u8],
        length: usize,
    ) -> Internet<'b> {
        let Self { source, destination, protocol, .. } = *self;
        let fragment = Fragment { identification, ..Fragment::default() };
        Internet { source, destination, protocol, fragment, body, body_length: Some(length) }
    }

    /// Discards the body, because its start is unknown.
    pub(crate) fn discard_body(&mut self) {
        self.body = &[];
        self.body_length = None;
    }

    pub(crate) fn flow(&self) -> FlowKey {
        let (source_port, destination_port) = match self.fragment.offset {
            0 => ports(self.protocol, self.body),
            _ => (0, 0),
        };
        FlowKey {
            source: SocketAddr::new(self.source, source_port),
            destination: SocketAddr::new(self.destination, destination_port),
            protocol: self.protocol,
        }
    }
}

/// Length of `body` on the wire. `stated` is the header's value, which is ignored if etherparse used only the
/// captured length.
fn length_on_wire(body: &LaxIpPayloadSlice<'_>, stated: usize) -> Option<usize> {
    if body.incomplete {
        Some(stated)
    } else if body.len_source == LenSource::Slice {
        None
    } else {
        Some(body.payload.len())
    }
}

fn fragment_header(extensions: &Ipv6ExtensionsSlice<'_>) -> Fragment {
    let fragment = extensions.clone().into_iter().find_map(|extension| match extension {
        Ipv6ExtensionSlice::Fragment(header) => Some(Fragment {
            identification: header.identification(),
            offset: header.fragment_offset().value(),
            more: header.more_fragments(),
        }),
        _ => None,
    });
    fragment.unwrap_or_default()
}

/// Source and destination port: the first four bytes of every transport header with ports. Read here and not from the
/// transport header, so that an incomplete header, or a first fragment, still belongs to its flow.
fn ports(protocol: u8, body: &[u8]) -> (u16, u16) {
    const WITH_PORTS: [u8; 5] = [
        ip_number::TCP.0,
        ip_number::UDP.0,
        ip_number::DCCP.0,
        ip_number::SCTP.0,
        ip_number::UDP_LITE.0,
    ];
    match body {
        [s0, s1, d0, d1, ..] if WITH_PORTS.contains(&protocol) => {
            (u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1]))
        }
        _ => (0, 0),
    }
}
