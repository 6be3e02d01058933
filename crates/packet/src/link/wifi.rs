//! Data frames of IEEE 802.11, alone and behind a radiotap header (<https://www.radiotap.org>).

use super::{Inside, after, at, llc};
use crate::ParseError;

/// Type "data" in the frame control field (IEEE 802.11, 9.2.4.1).
const DATA: u8 = 2;
/// Bits of the subtype of data frames: there is no data; quality of service.
const NO_DATA: u8 = 4;
const QOS: u8 = 8;
/// Flags of the second byte: to and from the distribution system; encrypted; more control fields.
const BOTH_DS: u8 = 0x03;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;

/// Length of a header with three addresses, and of what may follow it: a fourth one, QoS control, HT control.
const HEADER: usize = 24;
const ADDRESS: usize = 6;
const QOS_CONTROL: usize = 2;
const HT_CONTROL: usize = 4;
/// In QoS control: the frame contains several (A-MSDU).
const AGGREGATED: u8 = 0x80;

/// Bits of radiotap's first bitmap: a time stamp of 8 bytes, then a byte of flags. The last bit says that a further bitmap
/// follows.
const TIME_STAMP: u32 = 1;
const FLAGS: u32 = 1 << 1;
const MORE: u32 = 1 << 31;
/// In radiotap's flags: the header is padded to a multiple of four bytes.
const PADDED: u8 = 0x20;

/// What a data frame carries.
pub(super) fn inside(frame: &[u8]) -> Result<Inside<'_>, ParseError> {
    llc_of(frame, false)
}

/// What a data frame behind a radiotap header carries.
pub(super) fn inside_radiotap(bytes: &[u8]) -> Result<Inside<'_>, ParseError> {
    let length = usize::from(u16::from_le_bytes(at(bytes, 2)?));
    let mut place = 4;
    let first = u32::from_le_bytes(at(bytes, place)?);
    let mut bitmap = first;
    while bitmap & MORE != 0 {
        place += 4;
        bitmap = u32::from_le_bytes(at(bytes, place)?);
    }
    place += 4;
    if first & TIME_STAMP != 0 {
        place = place.next_multiple_of(8) + 8;
    }
    let flags = if first & FLAGS == 0 { 0 } else { at::<1>(bytes, place)?[0] };
    llc_of(after(bytes, length)?, flags & PADDED != 0)
}

fn llc_of(frame: &[u8], is_padded: bool) -> Result<Inside<'_>, ParseError> {
    let [control, flags] = at(frame, 0)?;
    let (kind, subtype) = ((control >> 2) & 3, control >> 4);
    if kind != DATA || subtype & NO_DATA != 0 || flags & PROTECTED != 0 {
        return Err(ParseError::NotIp);
    }
    let mut header = HEADER + if flags & BOTH_DS == BOTH_DS { ADDRESS } else { 0 };
    if subtype & QOS != 0 {
        if at::<1>(frame, header)?[0] & AGGREGATED != 0 {
            return Err(ParseError::NotIp);
        }
        header += QOS_CONTROL + if flags & ORDER == 0 { 0 } else { HT_CONTROL };
    }
    llc::inside(after(frame, if is_padded { header.next_multiple_of(4) } else { header })?)
}
