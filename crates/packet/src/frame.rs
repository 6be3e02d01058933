//! A view over a captured frame.

use etherparse::err::Layer;
use etherparse::{Ipv6ExtensionsSlice, LaxNetSlice, LaxSlicedPacket, TransportSlice};

use crate::FlowKey;
use crate::internet::{Fragment, Internet, Selecting};

/// What the first byte of a captured frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// An Ethernet II header (pcap `LINKTYPE_ETHERNET`), with up to three VLAN tags.
    Ethernet,
    /// An IPv4 or IPv6 header (pcap `LINKTYPE_RAW`, and tunnel devices).
    Ip,
}

/// Why a frame is not a [`Packet`]. Callers count such frames; none of these is a fault of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The frame carries something other than IPv4 or IPv6, such as ARP.
    #[error("the frame carries no IP packet and is left out")]
    NotIp,
    /// The captured bytes end inside the link or IP header.
    #[error(
        "the frame is cut off before the end of its IP header: capture with a longer snap length"
    )]
    CutShort,
    /// The IP header contradicts itself: a wrong version, or a length below its minimum.
    #[error("the frame's IP header is malformed, and the frame is left out")]
    Malformed,
}

/// An IP packet inside a captured frame; borrows the frame's bytes.
///
/// Bytes may be missing at the end, because captures are limited to a snap length: what the
/// headers say about the packet on the wire is kept apart from what was captured of it. Ethernet
/// padding is not part of the packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    flow: FlowKey,
    internet: Internet<'a>,
    payload: &'a [u8],
    payload_length: Option<usize>,
}

impl<'a> Packet<'a> {
    /// Finds the IP packet in a captured frame.
    ///
    /// `bytes` is what was captured of the frame, without its frame check sequence.
    ///
    /// # Errors
    ///
    /// See [`ParseError`]. A packet whose IP header is whole but whose transport header is cut
    /// off or malformed is a packet, with an empty [`payload`](Self::payload).
    pub fn parse(link: LinkType, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let sliced = match link {
            LinkType::Ethernet => {
                LaxSlicedPacket::from_ethernet(bytes).map_err(|_| ParseError::CutShort)?
            }
            LinkType::Ip => LaxSlicedPacket::from_ip(bytes).map_err(|error| ip_error(&error))?,
        };
        let readable = !sliced.stop_err.as_ref().is_some_and(|(_, layer)| is_extension(*layer));
        let mut internet = match &sliced.net {
            Some(LaxNetSlice::Ipv4(ip)) => Internet::v4(ip),
            Some(LaxNetSlice::Ipv6(ip)) if readable => Internet::v6(ip, ip.extensions()),
            Some(LaxNetSlice::Ipv6(ip)) => Internet::v6(ip, &Ipv6ExtensionsSlice::default()),
            Some(LaxNetSlice::Arp(_)) => return Err(ParseError::NotIp),
            None => return Err(no_network_layer(&sliced)),
        };
        if !readable {
            internet.forget_body();
        }
        let payload = match &sliced.transport {
            Some(TransportSlice::Udp(udp)) => udp.payload(),
            Some(TransportSlice::Tcp(tcp)) => tcp.payload(),
            _ => &[],
        };
        let payload_length = payload_length(sliced.transport.as_ref(), internet.body_length);
        Ok(Self { flow: internet.flow(), internet, payload, payload_length })
    }

    /// The flow the packet belongs to.
    #[must_use]
    pub fn flow(&self) -> FlowKey {
        self.flow
    }

    /// The captured bytes of the UDP or TCP payload. Empty for other protocols and for fragments,
    /// and shorter than on the wire where the capture cut the packet off.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// How many bytes of UDP or TCP payload there were on the wire, or `None` where the headers do
    /// not say, and for other protocols and fragments.
    #[must_use]
    pub fn payload_length(&self) -> Option<usize> {
        self.payload_length
    }

    /// The captured bytes above IP: transport header and payload. Empty where the extension
    /// headers could not be read to their end.
    pub(crate) fn body(&self) -> &'a [u8] {
        self.internet.body
    }

    /// How many bytes above IP there were on the wire, or `None` where the headers do not say:
    /// a length field of 0 (a segment that the network card is to cut up, or a jumbogram), or
    /// extension headers that could not be read to their end.
    pub(crate) fn body_length(&self) -> Option<usize> {
        self.internet.body_length
    }

    pub(crate) fn fragment(&self) -> Fragment {
        self.internet.fragment
    }

    pub(crate) fn selecting(&self) -> Selecting {
        self.internet.selecting
    }
}

/// The length of the payload on the wire; `body` is the length above IP. UDP says it itself (0 for
/// a segment that the network card is to cut up), and bytes after its end belong to nobody.
fn payload_length(transport: Option<&TransportSlice<'_>>, body: Option<usize>) -> Option<usize> {
    match transport? {
        TransportSlice::Udp(udp) => {
            let stated = Some(usize::from(udp.length())).filter(|stated| *stated != 0);
            stated.map_or(body, |stated| Some(stated.min(body?)))?.checked_sub(8)
        }
        TransportSlice::Tcp(tcp) => body?.checked_sub(tcp.header_slice().len()),
        _ => None,
    }
}

/// Whether parsing stopped between the IP header and the transport header.
fn is_extension(layer: Layer) -> bool {
    matches!(
        layer,
        Layer::IpAuthHeader
            | Layer::Ipv6ExtHeader
            | Layer::Ipv6HopByHopHeader
            | Layer::Ipv6DestOptionsHeader
            | Layer::Ipv6RouteHeader
            | Layer::Ipv6FragHeader
    )
}

fn ip_error(error: &etherparse::err::ip::LaxHeaderSliceError) -> ParseError {
    match error {
        etherparse::err::ip::LaxHeaderSliceError::Len(_) => ParseError::CutShort,
        etherparse::err::ip::LaxHeaderSliceError::Content(_) => ParseError::Malformed,
    }
}

fn no_network_layer(sliced: &LaxSlicedPacket<'_>) -> ParseError {
    use etherparse::err::packet::SliceError;
    match sliced.stop_err {
        None | Some((_, Layer::Arp)) => ParseError::NotIp,
        Some((SliceError::Len(_), _)) => ParseError::CutShort,
        Some(_) => ParseError::Malformed,
    }
}

#[cfg(test)]
mod tests;
