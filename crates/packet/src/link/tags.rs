//! Headers between Ethernet and IP: VLAN, MACsec, PPPoE, MPLS.

use etherparse::err::macsec;
use etherparse::{EtherType, LaxMacsecPayloadSlice, LaxMacsecSlice, SingleVlanSlice, ether_type};

use super::{Inside, MPLS, after, at, ip, point_to_point};
use crate::ParseError;
use crate::encapsulation::layer::{EncapsulationKind, EncapsulationLayer};

/// A PPPoE session (RFC 2516, section 4).
const PPPOE_SESSION: EtherType = EtherType(0x8864);
/// MPLS with multicast labels (RFC 5332).
const MPLS_MULTICAST: EtherType = EtherType(0x8848);

/// The bits of a tag with the number of the VLAN (IEEE 802.1Q).
const VLAN_NUMBER: u16 = 0x0fff;

/// Max number of labels in a stack.
const LABELS: usize = 16;
/// The bit of a label that marks the last one (RFC 3032, section 2.1).
const BOTTOM_OF_STACK: u8 = 1;

/// The content after one such header. `None` for any other type.
pub(super) fn inside((ether_type, bytes): Inside<'_>) -> Result<Option<Inside<'_>>, ParseError> {
    match ether_type {
        ether_type::VLAN_TAGGED_FRAME
        | ether_type::PROVIDER_BRIDGING
        | ether_type::VLAN_DOUBLE_TAGGED_FRAME => {
            let vlan = SingleVlanSlice::from_slice(bytes).map_err(|_| ParseError::CutShort)?;
            Ok(Some((vlan.ether_type(), vlan.payload_slice())))
        }
        ether_type::MACSEC => {
            let macsec = LaxMacsecSlice::from_slice(bytes).map_err(|error| macsec_error(&error))?;
            match macsec.payload {
                LaxMacsecPayloadSlice::Unmodified(inside) => {
                    Ok(Some((inside.ether_type, inside.payload)))
                }
                LaxMacsecPayloadSlice::Modified { .. } => Err(ParseError::NotIp),
            }
        }
        PPPOE_SESSION => point_to_point::inside_pppoe(bytes).map(Some),
        MPLS | MPLS_MULTICAST => inside_mpls(bytes).map(Some),
        _ => Ok(None),
    }
}

/// Calls `visit` with the identifiers in such a header. One without identifiers, and any other type, has none.
pub(super) fn visit((ether_type, bytes): Inside<'_>, visit: &mut dyn FnMut(EncapsulationLayer)) {
    match ether_type {
        ether_type::VLAN_TAGGED_FRAME
        | ether_type::PROVIDER_BRIDGING
        | ether_type::VLAN_DOUBLE_TAGGED_FRAME => {
            if let Ok(tag) = at(bytes, 0) {
                let number = u32::from(u16::from_be_bytes(tag) & VLAN_NUMBER);
                // 0: the tag has only a priority.
                visit(EncapsulationKind::Vlan.with(Some(number).filter(|number| *number > 0)));
            }
        }
        PPPOE_SESSION => {
            if let Ok(session) = at(bytes, 2) {
                visit(EncapsulationKind::Pppoe.with(u32::from(u16::from_be_bytes(session))));
            }
        }
        MPLS | MPLS_MULTICAST => {
            for entry in bytes.chunks_exact(4).take(LABELS).map_while(|entry| entry.first_chunk()) {
                let entry = u32::from_be_bytes(*entry);
                visit(EncapsulationKind::Mpls.with(entry >> 12));
                if (entry >> 8) & u32::from(BOTTOM_OF_STACK) != 0 {
                    return;
                }
            }
        }
        _ => {}
    }
}

/// What follows a stack of labels. Its type is not stated: an IP packet is recognised by its version.
fn inside_mpls(mut bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    for _ in 0..LABELS {
        let [.., bottom, _ttl] = at::<4>(bytes, 0)?;
        bytes = after(bytes, 4)?;
        if bottom & BOTTOM_OF_STACK != 0 {
            return ip(bytes).map_err(|error| match error {
                ParseError::Malformed => ParseError::NotIp,
                other => other,
            });
        }
    }
    Err(ParseError::NotIp)
}

fn macsec_error(error: &macsec::HeaderSliceError) -> ParseError {
    match error {
        macsec::HeaderSliceError::Len(_) => ParseError::CutShort,
        macsec::HeaderSliceError::Content(_) => ParseError::Malformed,
    }
}
