//! A view over a captured frame.

use etherparse::err::ip;
use etherparse::{
    Ipv6ExtensionsSlice, LaxIpPayloadSlice, LaxIpSlice, TcpSlice, UdpSlice, ip_number,
};

use crate::internet::{Fragment, Internet};
use crate::{FlowKey, LinkType, ParseError};

/// Bytes of the shortest Ethernet frame without its checksum (IEEE 802.3).
const MIN_ETHERNET_FRAME: u32 = 60;
/// More bytes than a segment of any kernel has (524,280: `GSO_MAX_SIZE` of Linux 6.18, `include/linux/netdevice.h`).
const MAX_SEGMENT: u32 = 1 << 20;

/// An IP packet inside a captured frame; borrows the frame's bytes.
///
/// Bytes may be missing at the end, because captures are limited to a snap length. The lengths in the headers, which
/// describe the packet on the wire, are separate from the captured length. Ethernet padding is not part of the
/// packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    flow: FlowKey,
    internet: Internet<'a>,
    payload: &'a [u8],
    payload_length: Option<usize>,
}

impl<'a> Packet<'a> {
    /// Parses the IP packet in a captured frame.
    ///
    /// `bytes` are the captured bytes of the frame; bytes after the IP packet are ignored.
    ///
    /// # Errors
    ///
    /// See [`ParseError`]. A packet with a complete IP header and an incomplete or malformed transport header is
    /// valid, with an empty [`payload`](Self::payload).
    pub fn parse(link: LinkType, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let packet = link.ip_packet(bytes)?;
        let (ip, stop) = LaxIpSlice::from_slice(packet).map_err(|error| ip_error(&error))?;
        // If extension headers are not readable to their end, the protocol above them is unknown.
        let readable = stop.is_none();
        let mut internet = match &ip {
            LaxIpSlice::Ipv4(ip) => Internet::v4(ip),
            LaxIpSlice::Ipv6(ip) if readable => Internet::v6(ip, ip.extensions()),
            LaxIpSlice::Ipv6(ip) => Internet::v6(ip, &Ipv6ExtensionsSlice::default()),
        };
        if !readable {
            internet.discard_body();
        }
        let payload = readable.then(|| payload(ip.payload(), internet.body_length)).flatten();
        let (payload, payload_length) = payload.unwrap_or_default();
        Ok(Self { flow: internet.flow(), internet, payload, payload_length })
    }

    /// Flow of the packet.
    #[must_use]
    pub fn flow(&self) -> FlowKey {
        self.flow
    }

    /// The captured bytes of the UDP or TCP payload. Empty for other protocols and for fragments, and shorter than on
    /// the wire if the capture truncated the packet.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Bytes of UDP or TCP payload on the wire; `None` if the headers do not state it, and for other protocols and
    /// fragments.
    #[must_use]
    pub fn payload_length(&self) -> Option<usize> {
        self.payload_length
    }

    /// The captured bytes above IP: transport header and payload. Empty if the extension headers are not readable to
    /// their end.
    pub(crate) fn body(&self) -> &'a [u8] {
        self.internet.body
    }

    /// Bytes above IP on the wire. `None` if the headers do not state it: a length field of 0 (a segment for
    /// segmentation offload, or a jumbogram), or extension headers that are not readable to their end.
    pub(crate) fn body_length(&self) -> Option<usize> {
        self.internet.body_length
    }

    /// A packet of the same flow with this TCP header, the captured beginning of its payload, and the length of the payload
    /// on the wire. `segment` contains both, `header` is the length of the header.
    pub(crate) fn with_segment<'b>(
        &self,
        identification: u32,
        (segment, header): (&'b [u8], usize),
        length: usize,
    ) -> Packet<'b> {
        Packet {
            flow: self.flow,
            internet: self.internet.with_body(identification, segment, header + length),
            payload: segment.get(header..).unwrap_or_default(),
            payload_length: Some(length),
        }
    }

    /// Sets the lengths of the TCP segment, if the length in the IP header is 0: Linux writes 0 for segments of more than
    /// 65,535 bytes (BIG TCP), other systems for all segments that the network card divides. They follow from the length of
    /// the frame: its captured bytes, and its bytes on the wire. Any other packet stays as it is.
    #[inline]
    pub fn apply_frame_length(&mut self, captured: usize, on_wire: u32) {
        let body = self.internet.body;
        let is_unknown =
            self.internet.body_length.is_none() && self.flow.protocol == ip_number::TCP.0;
        // Shorter frames may have padding at the end.
        let is_possible = (MIN_ETHERNET_FRAME + 1..=MAX_SEGMENT).contains(&on_wire);
        if !is_unknown || !is_possible || self.is_fragment() {
            return;
        }
        if let Ok(tcp) = TcpSlice::from_slice(body) {
            let length =
                body.len() + usize::try_from(on_wire).unwrap_or(captured).saturating_sub(captured);
            self.internet.body_length = Some(length);
            self.payload_length = length.checked_sub(tcp.header_slice().len());
        }
    }

    /// Whether the packet is a fragment, the first one included.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.fragment().offset > 0 || self.fragment().more
    }

    /// Identification of IPv4, or of an IPv6 fragment header; 0 for IPv6 without one.
    #[must_use]
    pub fn identification(&self) -> u32 {
        self.fragment().identification
    }

    pub(crate) fn fragment(&self) -> Fragment {
        self.internet.fragment
    }
}

/// Payload of UDP or TCP, and its length on the wire; `length` is the length above IP. UDP has its own length field
/// (0 for segmentation offload), and bytes after its end are not payload.
fn payload<'a>(
    body: &LaxIpPayloadSlice<'a>,
    length: Option<usize>,
) -> Option<(&'a [u8], Option<usize>)> {
    match body.ip_number {
        _ if body.fragmented => None,
        ip_number::UDP => {
            let udp = UdpSlice::from_slice_lax(body.payload).ok()?;
            let stated = Some(usize::from(udp.length())).filter(|stated| *stated != 0);
            let length = stated.map_or(length, |stated| Some(stated.min(length?)));
            Some((udp.payload(), length.and_then(|length| length.checked_sub(8))))
        }
        ip_number::TCP => {
            let tcp = TcpSlice::from_slice(body.payload).ok()?;
            let length = length.and_then(|length| length.checked_sub(tcp.header_slice().len()));
            Some((tcp.payload(), length))
        }
        _ => None,
    }
}

fn ip_error(error: &ip::LaxHeaderSliceError) -> ParseError {
    match error {
        ip::LaxHeaderSliceError::Len(_) => ParseError::CutShort,
        ip::LaxHeaderSliceError::Content(_) => ParseError::Malformed,
    }
}

#[cfg(test)]
mod tests;
