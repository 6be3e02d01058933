//! The link layer of captured frames: from the first byte to the IP packet.
//!
//! Numbers and headers of link types: <https://www.tcpdump.org/linktypes.html>.

mod host;
mod llc;
mod point_to_point;
mod tags;
#[cfg(test)]
mod tests;
mod wifi;

use std::borrow::Cow;

use etherparse::{EtherType, Ethernet2Slice, ether_type};
use serde::Serialize;

use crate::ParseError;
use crate::encapsulation::layer::EncapsulationLayer;

/// Protocol of the first byte of a captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinkType {
    /// An Ethernet header.
    Ethernet,
    /// An IPv4 or IPv6 header, as on tunnel devices.
    Ip,
    /// The header of Linux for captures on all interfaces (`any`), first version.
    LinuxCooked,
    /// Its second version, with the interface.
    LinuxCooked2,
    /// The loopback interface of BSD and macOS: the address family in either byte order.
    Loopback,
    /// PPP (RFC 1661), with or without the HDLC header of RFC 1662.
    Ppp,
    /// PPP behind one byte with the direction.
    PppWithDirection,
    /// A PPPoE session (RFC 2516) without Ethernet header.
    Pppoe,
    /// Cisco's HDLC, and PPP in the framing of HDLC.
    Hdlc,
    /// Frame Relay (RFC 2427).
    FrameRelay,
    /// SLIP, with the header of libpcap.
    Slip,
    /// IEEE 802.11.
    Wifi,
    /// IEEE 802.11 behind a radiotap header.
    WifiRadiotap,
    /// ATM as Linux and SunATM capture it (RFC 2684).
    Atm,
    /// ARCnet with Linux's header (RFC 1201).
    Arcnet,
    /// Packets that a rule of netfilter logs.
    Nflog,
    /// Ethernet with the tag of a switch chip between addresses and type: four bytes, as of Marvell (DSA) and Broadcom.
    SwitchTag,
    /// The same with Marvell's tag of eight bytes (EDSA).
    LongSwitchTag,
    /// Ethernet behind Broadcom's tag of four bytes.
    SwitchTagFirst,
    /// Solaris's capture of IP, with a header of 24 bytes.
    Ipnet,
    /// IP over InfiniBand (RFC 4391), behind a global routing header.
    Infiniband,
    /// Packets of macOS with their interface and process; the link type of each is in its header.
    Pktap,
}

/// Max number of tags before the IP packet.
const TAGS: usize = 3;

/// Max number of headers that contain the type of the next one, as PKTAP's.
const NESTED: usize = 2;

/// EtherType of MPLS (RFC 3032, section 5).
const MPLS: EtherType = EtherType(0x8847);

/// What follows a header: its type and its bytes.
type Inside<'a> = (EtherType, &'a [u8]);

impl LinkType {
    /// The link type with this number in capture files. The bits above the lower 16 give the length of a frame check
    /// sequence (pcap-savefile(5)), which frames keep: it lies behind the IP packet. None if the type is not supported.
    #[must_use]
    pub fn of_number(number: u32) -> Option<Self> {
        Some(match number & 0xffff {
            1 => Self::Ethernet,
            // The number of raw IP depends on the system that wrote an old file.
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            113 => Self::LinuxCooked,
            276 => Self::LinuxCooked2,
            0 | 108 => Self::Loopback,
            9 => Self::Ppp,
            166 | 204 => Self::PppWithDirection,
            51 => Self::Pppoe,
            50 | 104 => Self::Hdlc,
            107 => Self::FrameRelay,
            8 => Self::Slip,
            105 => Self::Wifi,
            127 => Self::WifiRadiotap,
            123 => Self::Atm,
            129 => Self::Arcnet,
            226 => Self::Ipnet,
            239 => Self::Nflog,
            242 => Self::Infiniband,
            258 => Self::Pktap,
            281 | 284 => Self::SwitchTag,
            282 => Self::SwitchTagFirst,
            285 => Self::LongSwitchTag,
            _ => return None,
        })
    }

    /// The number of a captured interface in files: of Ethernet, of Linux's cooked frames, or of raw IP.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Ethernet => 1,
            Self::LinuxCooked2 => 276,
            _ => 101,
        }
    }

    /// The frame with an Ethernet header in place of its own, for filters that were compiled for Ethernet. Its addresses
    /// are zero. None if the frame's own header is not readable, or the frame has no EtherType.
    #[must_use]
    pub fn as_ethernet(self, bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
        if self == Self::Ethernet {
            return Some(Cow::Borrowed(bytes));
        }
        let (ether_type, inside) = self.inside(bytes).ok()?;
        Some([&[0; 12], &ether_type.0.to_be_bytes()[..], inside].concat().into())
    }

    /// The bytes after the link header and the tags behind it, such as those of VLANs; the whole frame if its header is not
    /// readable.
    #[must_use]
    pub fn content(self, frame: &[u8]) -> &[u8] {
        if self == Self::Ip {
            return frame;
        }
        let Ok(mut inside) = self.inside(frame) else { return frame };
        for _ in 0..TAGS {
            match tags::inside(inside) {
                Ok(Some(next)) => inside = next,
                Ok(None) | Err(_) => break,
            }
        }
        inside.1
    }

    /// Whether an IP packet directly follows the link header, at a glance: false if that takes more than one comparison.
    pub(crate) fn is_plain(self, frame: &[u8]) -> bool {
        match self {
            Self::Ip => true,
            Self::Ethernet => matches!(frame.get(12..14), Some([0x08, 0x00] | [0x86, 0xdd])),
            _ => false,
        }
    }

    /// Calls `visit` with each tag behind the link header, from the outside.
    pub(crate) fn tags(self, frame: &[u8], visit: &mut dyn FnMut(EncapsulationLayer)) {
        let Ok(mut inside) = self.inside(frame) else { return };
        for _ in 0..TAGS {
            tags::visit(inside, visit);
            match tags::inside(inside) {
                Ok(Some(next)) => inside = next,
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// The IP packet in a frame.
    pub(crate) fn ip_packet(self, frame: &[u8]) -> Result<&[u8], ParseError> {
        if self == Self::Ip {
            return Ok(frame);
        }
        let mut inside = self.inside(frame)?;
        for _ in 0..TAGS {
            inside = match tags::inside(inside)? {
                Some(inside) => inside,
                None => break,
            };
        }
        match inside {
            (ether_type::IPV4 | ether_type::IPV6, packet) => Ok(packet),
            _ => Err(ParseError::NotIp),
        }
    }

    /// What follows the link header.
    fn inside(self, bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
        let (mut link, mut bytes) = (self, bytes);
        for _ in 0..NESTED {
            if link != Self::Pktap {
                break;
            }
            (link, bytes) = host::after_pktap(bytes)?;
        }
        match link {
            Self::Ethernet => inside_ethernet(bytes),
            Self::Ip => ip(bytes),
            Self::LinuxCooked => host::inside_linux_cooked(bytes),
            Self::LinuxCooked2 => host::inside_linux_cooked_2(bytes),
            Self::Loopback => host::inside_loopback(bytes),
            Self::Ppp => point_to_point::inside_ppp(bytes),
            Self::PppWithDirection => point_to_point::inside_ppp(after(bytes, 1)?),
            Self::Pppoe => point_to_point::inside_pppoe(bytes),
            Self::Hdlc => point_to_point::inside_hdlc(bytes),
            Self::FrameRelay => point_to_point::inside_frame_relay(bytes),
            Self::Slip => ip(after(bytes, 16)?),
            Self::Wifi => wifi::inside(bytes),
            Self::WifiRadiotap => wifi::inside_radiotap(bytes),
            Self::Atm => llc::inside_atm(bytes),
            Self::Arcnet => host::inside_arcnet(bytes),
            Self::Nflog => host::inside_nflog(bytes),
            Self::SwitchTag => Ok((type_at(bytes, 16)?, after(bytes, 18)?)),
            Self::LongSwitchTag => Ok((type_at(bytes, 20)?, after(bytes, 22)?)),
            Self::SwitchTagFirst => inside_ethernet(after(bytes, 4)?),
            Self::Ipnet => ip(after(bytes, 24)?),
            Self::Infiniband => Ok((type_at(bytes, 40)?, after(bytes, 44)?)),
            Self::Pktap => Err(ParseError::NotIp),
        }
    }
}

/// Content of an Ethernet frame. One with a length in place of the type has an LLC header (IEEE 802.3).
///
/// etherparse can parse a whole packet in one call. But it parses more than is needed, and copying the result dominated
/// the cost of parsing.
fn inside_ethernet(frame: &[u8]) -> Result<Inside<'_>, ParseError> {
    let frame = Ethernet2Slice::from_slice_without_fcs(frame).map_err(|_| ParseError::CutShort)?;
    let (ether_type, bytes) = (frame.ether_type(), frame.payload().payload);
    if ether_type.0 <= llc::MAX_LENGTH { llc::inside(bytes) } else { Ok((ether_type, bytes)) }
}

/// An IP packet, by the version in its first byte.
fn ip(packet: &[u8]) -> Result<Inside<'_>, ParseError> {
    match packet.first().ok_or(ParseError::CutShort)? >> 4 {
        4 => Ok((ether_type::IPV4, packet)),
        6 => Ok((ether_type::IPV6, packet)),
        _ => Err(ParseError::Malformed),
    }
}

/// The bytes after a header of `length` bytes.
fn after(bytes: &[u8], length: usize) -> Result<&[u8], ParseError> {
    bytes.get(length..).ok_or(ParseError::CutShort)
}

/// The array at `place`.
fn at<const N: usize>(bytes: &[u8], place: usize) -> Result<[u8; N], ParseError> {
    let found = bytes.get(place..).and_then(|bytes| bytes.first_chunk());
    found.copied().ok_or(ParseError::CutShort)
}

/// The EtherType at `place`.
fn type_at(bytes: &[u8], place: usize) -> Result<EtherType, ParseError> {
    Ok(EtherType(u16::from_be_bytes(at(bytes, place)?)))
}
