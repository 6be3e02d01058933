//! Headers that a capturing system writes itself: Linux's cooked captures, loopback, NFLOG, PKTAP, ARCnet.

use etherparse::{EtherType, ether_type};

use super::{Inside, LinkType, after, at, type_at};
use crate::ParseError;

/// Hardware type of netlink messages (linux/if_arp.h), whose "protocol" is a netlink family.
const ARPHRD_NETLINK: u16 = 824;

/// The TLV of NFLOG with the packet (linux/netfilter/nfnetlink_log.h, `NFULA_PAYLOAD`).
const NFLOG_PAYLOAD: u16 = 9;

/// Protocols of ARCnet: IP (RFC 1201).
const ARCNET_IP: u8 = 212;

/// Linux's cooked header: packet type, hardware type, address length, address (8), protocol.
pub(super) fn inside_linux_cooked(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    cooked(u16::from_be_bytes(at(bytes, 2)?), type_at(bytes, 14)?, after(bytes, 16)?)
}

/// Its second version: protocol, reserved (2), interface (4), hardware type, packet type, address length, address (8).
pub(super) fn inside_linux_cooked_2(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    cooked(u16::from_be_bytes(at(bytes, 8)?), type_at(bytes, 0)?, after(bytes, 20)?)
}

fn cooked(hardware: u16, ether_type: EtherType, bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    if hardware == ARPHRD_NETLINK { Err(ParseError::NotIp) } else { Ok((ether_type, bytes)) }
}

/// The family of addresses, in the byte order of the capturing machine or of the network.
pub(super) fn inside_loopback(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    let family = at(bytes, 0)?;
    // The families are small numbers, so that only one byte order gives one.
    let family = u32::from_be_bytes(family).min(u32::from_le_bytes(family));
    Ok((type_of_family(family)?, after(bytes, 4)?))
}

/// The type of IP for a family of addresses.
const fn type_of_family(family: u32) -> Result<EtherType, ParseError> {
    match family {
        2 => Ok(ether_type::IPV4),
        // Linux; NetBSD and OpenBSD; FreeBSD; macOS.
        10 | 24 | 28 | 30 => Ok(ether_type::IPV6),
        _ => Err(ParseError::NotIp),
    }
}

/// Family of addresses, version, resource (2), then TLVs in the byte order of the capturing machine, which is taken for
/// little endian.
pub(super) fn inside_nflog(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    let [family] = at(bytes, 0)?;
    let ether_type = type_of_family(family.into())?;
    let mut rest = after(bytes, 4)?;
    loop {
        let length = usize::from(u16::from_le_bytes(at(rest, 0)?));
        if u16::from_le_bytes(at(rest, 2)?) == NFLOG_PAYLOAD {
            // The packet may be cut short.
            return Ok((ether_type, rest.get(4..length.min(rest.len())).unwrap_or_default()));
        }
        if length < 4 {
            return Err(ParseError::Malformed);
        }
        rest = after(rest, length.next_multiple_of(4))?;
    }
}

/// The link type and the bytes after a PKTAP header: its length, the type of the header, the link type of the packet,
/// each of 32 bits in little endian.
pub(super) fn after_pktap(bytes: &[u8]) -> Result<(LinkType, &[u8]), ParseError> {
    let field = |place| Ok(u32::from_le_bytes(at(bytes, place)?));
    let (length, link) = (field(0)?, field(8)?);
    let link = LinkType::of_number(link).ok_or(ParseError::NotIp)?;
    let length = usize::try_from(length).map_err(|_| ParseError::Malformed)?;
    if length < 12 { Err(ParseError::Malformed) } else { Ok((link, after(bytes, length)?)) }
}

/// Source, destination, offset (2), protocol, then for IP a header of three bytes: flag and sequence number.
pub(super) fn inside_arcnet(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    match at(bytes, 4)? {
        [ARCNET_IP] => Ok((ether_type::IPV4, after(bytes, 8)?)),
        _ => Err(ParseError::NotIp),
    }
}
