//! Logical link control with SNAP (IEEE 802.2; RFC 1042): Ethernet with a length, 802.11, ATM.

use super::{Inside, after, at, ip, type_at};
use crate::ParseError;

/// The largest length that stands in place of an EtherType (IEEE 802.3, 3.2.6).
pub(super) const MAX_LENGTH: u16 = 1500;

/// SNAP: both service access points, and unnumbered information.
const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
/// IP without SNAP.
const IP: [u8; 3] = [0x06, 0x06, 0x03];
/// Organisations whose protocol is an EtherType: RFC 1042, and bridges (IEEE 802.1H).
const ETHER_TYPE_FOLLOWS: [[u8; 3]; 2] = [[0, 0, 0], [0, 0, 0xf8]];

/// The lower four bits of SunATM's first byte: RFC 2684 with LLC.
const ATM_LLC: u8 = 2;

/// What follows the LLC header.
pub(super) fn inside(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    match at::<3>(bytes, 0)? {
        SNAP if ETHER_TYPE_FOLLOWS.contains(&at(bytes, 3)?) => {
            Ok((type_at(bytes, 6)?, after(bytes, 8)?))
        }
        IP => ip(after(bytes, 3)?),
        _ => Err(ParseError::NotIp),
    }
}

/// What follows SunATM's header: traffic type, virtual path, virtual channel.
pub(super) fn inside_atm(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    let [flags] = at(bytes, 0)?;
    if flags & 0x0f == ATM_LLC { inside(after(bytes, 4)?) } else { Err(ParseError::NotIp) }
}
