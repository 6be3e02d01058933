//! A view over an RTP packet (RFC 3550 section 5.1).

mod amr_wb;
mod payload_type;

use std::ops::{Range, RangeInclusive};

pub use amr_wb::amr_wb_mode;
pub use payload_type::{Medium, StaticPayloadType};

/// Positions of the fields in the fixed header (RFC 3550 section 5.1).
mod field {
    use std::ops::Range;

    pub(super) const FLAGS: usize = 0;
    pub(super) const MARKER_AND_TYPE: usize = 1;
    pub(super) const SEQUENCE: Range<usize> = 2..4;
    pub(super) const TIMESTAMP: Range<usize> = 4..8;
    pub(super) const SSRC: Range<usize> = 8..12;
    /// Start of the contributing sources, each of four bytes.
    pub(super) const CSRC: usize = 12;
}

/// Bytes of the profile's word and the length, before an extension's data (RFC 3550 section 5.3.1).
const EXTENSION_HEADER: usize = 4;

/// The second byte of RTCP packets: the packet types that RFC 5761 section 4 reserves for them. In RTP they would be
/// payload types 64 to 95 with the marker set, which are not allowed together with RTCP.
pub(crate) const RTCP_TYPES: RangeInclusive<u8> = 192..=223;

/// An RTP packet inside a datagram; borrows the datagram's bytes.
///
/// One in four random datagrams also passes [`parse`](Self::parse): only several packets of one source in sequence
/// prove that a stream is RTP (RFC 3550 appendix A.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtp<'a> {
    /// The captured bytes, at least the whole header.
    captured: &'a [u8],
    /// Bytes of fixed header, contributing sources and extension.
    header: usize,
    /// End of payload and padding on the wire.
    on_wire: usize,
    /// Bytes of padding, if their count was captured.
    padding: Option<u8>,
}

impl<'a> Rtp<'a> {
    /// Parses the headers of an RTP packet.
    ///
    /// `captured` are the captured bytes of a datagram's payload, `on_wire` is its length on the wire:
    /// [`Packet::payload`](crate::Packet::payload) and [`Packet::payload_length`](crate::Packet::payload_length).
    ///
    /// `None` if the datagram is not RTP: too short for its headers, of another version, RTCP, with impossible padding,
    /// or captured without all its headers.
    #[must_use]
    pub fn parse(captured: &'a [u8], on_wire: usize) -> Option<Self> {
        let captured = &captured[..captured.len().min(on_wire)];
        // The most selective checks come first, so that most other datagrams are rejected for their content and not
        // for their length.
        let flags = *captured.get(field::FLAGS)?;
        if flags >> 6 != 2 || RTCP_TYPES.contains(captured.get(field::MARKER_AND_TYPE)?) {
            return None;
        }
        let header = header_length(flags, captured)?;
        let padding = padding(flags, &captured[header..], on_wire - header)?;
        Some(Self { captured, header, on_wire, padding })
    }

    /// The marker bit: in audio the first packet after silence, in video the last one of a frame
    /// (RFC 3551 sections 4.1 and 5).
    #[must_use]
    pub fn marker(&self) -> bool {
        self.captured[field::MARKER_AND_TYPE] & 0x80 != 0
    }

    /// The payload type, 0 to 127: see [`StaticPayloadType`].
    #[must_use]
    pub fn payload_type(&self) -> u8 {
        self.captured[field::MARKER_AND_TYPE] & 0x7f
    }

    /// The sequence number, which increases by one for each packet of a source and wraps.
    #[must_use]
    pub fn sequence(&self) -> u16 {
        u16::from_be_bytes(self.word(field::SEQUENCE))
    }

    /// Sampling instant of the payload's first byte, in ticks of the payload type's clock. It starts at a random
    /// value and wraps.
    #[must_use]
    pub fn timestamp(&self) -> u32 {
        u32::from_be_bytes(self.word(field::TIMESTAMP))
    }

    /// The synchronisation source: the identifier of a stream within a session.
    #[must_use]
    pub fn ssrc(&self) -> u32 {
        u32::from_be_bytes(self.word(field::SSRC))
    }

    /// Range of the payload in the datagram on the wire, in bytes. `None` if it was padded and the capture ends
    /// before the byte with the length of the padding.
    #[must_use]
    pub fn payload_range(&self) -> Option<Range<usize>> {
        self.padding.map(|padding| self.header..self.on_wire - usize::from(padding))
    }

    /// The captured bytes of the payload; empty where [`Self::payload_range`] is none.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        let range = self.payload_range().unwrap_or_default();
        self.captured.get(range.start..range.end.min(self.captured.len())).unwrap_or_default()
    }

    /// A field of the fixed header, whose presence `parse` has checked.
    fn word<const N: usize>(&self, place: Range<usize>) -> [u8; N] {
        self.captured[place].first_chunk().copied().unwrap_or([0; N])
    }
}

/// Length of all headers, which were captured completely.
fn header_length(flags: u8, captured: &[u8]) -> Option<usize> {
    let mut length = field::CSRC + 4 * usize::from(flags & 0x0f);
    if flags & 0x10 != 0 {
        let after = length + EXTENSION_HEADER;
        let words = captured.get(length + 2..after)?.first_chunk()?;
        length = after + 4 * usize::from(u16::from_be_bytes(*words));
    }
    (captured.len() >= length).then_some(length)
}

/// Bytes of padding among the `on_wire` bytes after the headers, if their count was captured. The last byte is the
/// count, which includes itself (RFC 3550 section 5.1).
fn padding(flags: u8, captured: &[u8], on_wire: usize) -> Option<Option<u8>> {
    if flags & 0x20 == 0 {
        return Some(Some(0));
    }
    if captured.len() < on_wire {
        return Some(None);
    }
    let count = captured.last().filter(|count| (1..=on_wire).contains(&usize::from(**count)))?;
    Some(Some(*count))
}

#[cfg(test)]
mod tests;
