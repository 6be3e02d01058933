//! Links between two points: PPP, PPPoE, HDLC, Frame Relay.

use etherparse::ether_type;

use super::{Inside, MPLS, after, at, ip, type_at};
use crate::ParseError;

/// Address and control field of HDLC that precede PPP (RFC 1662, section 3.1).
const PPP_IN_HDLC: [u8; 2] = [0xff, 0x03];
/// Protocols of PPP: IPv4 (RFC 1332), IPv6 (RFC 5072), MPLS (RFC 3032, section 4.2).
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;

/// Bytes of a PPPoE header (RFC 2516, section 4): version and type, code, session, length.
const PPPOE_HEADER: usize = 6;

/// Unnumbered information of Q.922, and the protocols of RFC 2427, section 4.
const UNNUMBERED: u8 = 0x03;
const NLPID_IPV4: u8 = 0xcc;
const NLPID_IPV6: u8 = 0x8e;
const NLPID_SNAP: u8 = 0x80;
/// The bit that ends an address (Q.922, section 3.2).
const END_OF_ADDRESS: u8 = 1;

/// What follows a PPP header, with or without that of HDLC.
pub(super) fn inside_ppp(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    let bytes = bytes.strip_prefix(&PPP_IN_HDLC).unwrap_or(bytes);
    // An odd first byte is a protocol field that was compressed to one byte (RFC 1661, section 6.5).
    let [first] = at(bytes, 0)?;
    let (protocol, bytes) = if first & 1 == 1 {
        (first.into(), after(bytes, 1)?)
    } else {
        (u16::from_be_bytes(at(bytes, 0)?), after(bytes, 2)?)
    };
    match protocol {
        PPP_IPV4 => Ok((ether_type::IPV4, bytes)),
        PPP_IPV6 => Ok((ether_type::IPV6, bytes)),
        PPP_MPLS => Ok((MPLS, bytes)),
        _ => Err(ParseError::NotIp),
    }
}

/// What follows the header of a PPPoE session.
pub(super) fn inside_pppoe(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    match at(bytes, 0)? {
        [0x11, 0] => inside_ppp(after(bytes, PPPOE_HEADER)?),
        // Discovery.
        _ => Err(ParseError::NotIp),
    }
}

/// What follows a header of Cisco's HDLC, or of PPP.
pub(super) fn inside_hdlc(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    if bytes.starts_with(&PPP_IN_HDLC) {
        return inside_ppp(bytes);
    }
    // Address (unicast 0x0f, broadcast 0x8f), control, EtherType.
    match at::<2>(bytes, 0)? {
        [0x0f | 0x8f, _] => Ok((type_at(bytes, 2)?, after(bytes, 4)?)),
        _ => Err(ParseError::NotIp),
    }
}

/// What follows a header of Frame Relay: an address of two to four bytes, then a protocol, or an EtherType as Cisco has it.
pub(super) fn inside_frame_relay(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    let address = bytes.iter().take(4).position(|byte| byte & END_OF_ADDRESS != 0);
    let address = address.ok_or(ParseError::CutShort)? + 1;
    let bytes = after(bytes, address)?;
    if bytes.first() != Some(&UNNUMBERED) {
        return Ok((type_at(bytes, 0)?, after(bytes, 2)?));
    }
    // A byte of padding may follow.
    let padding = usize::from(bytes.get(1) == Some(&0));
    let [protocol] = at(bytes, 1 + padding)?;
    let bytes = after(bytes, 2 + padding)?;
    match protocol {
        NLPID_IPV4 | NLPID_IPV6 => ip(bytes),
        // The organisation and its protocol, as behind LLC.
        NLPID_SNAP if at::<3>(bytes, 0)? == [0; 3] => Ok((type_at(bytes, 3)?, after(bytes, 5)?)),
        _ => Err(ParseError::NotIp),
    }
}
