//! A view over an RTP packet (RFC 3550 section 5.1).

mod payload_type;

use std::ops::{Range, RangeInclusive};

pub use payload_type::{Medium, StaticPayloadType};

/// Where the fields of the fixed header are (RFC 3550 section 5.1).
mod field {
    use std::ops::Range;

    pub(super) const FLAGS: usize = 0;
    pub(super) const MARKER_AND_TYPE: usize = 1;
    pub(super) const SEQUENCE: Range<usize> = 2..4;
    pub(super) const TIMESTAMP: Range<usize> = 4..8;
    pub(super) const SSRC: Range<usize> = 8..12;
    /// Where contributing sources begin, each of four bytes.
    pub(super) const CSRC: usize = 12;
}

/// The profile's word and the length, before an extension's data (RFC 3550 section 5.3.1).
const EXTENSION_HEADER: usize = 4;

/// The second byte of RTCP packets: the packet types that RFC 5761 section 4 keeps for them, which
/// RTP would show as payload types 64 to 95 with the marker set, and may not use beside RTCP.
const RTCP_TYPES: RangeInclusive<u8> = 192..=223;

/// Why a datagram is not RTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRtp {
    /// The headers take more bytes than the datagram had on the wire.
    #[error("the datagram is too short for an RTP header")]
    TooShort,
    /// The headers take more bytes than were captured: whether this is RTP cannot be said.
    #[error("the datagram is cut off in its RTP header: capture with a longer snap length")]
    CutShort,
    /// The version is not 2.
    #[error("the datagram's version is {0}, and RTP's is 2")]
    Version(u8),
    /// The datagram is RTCP, of this packet type.
    #[error("the datagram is RTCP, packet type {0}")]
    Rtcp(u8),
    /// The padding is said to be empty, or longer than what follows the headers.
    #[error("the datagram's last byte tells of {0} bytes of padding, which it cannot have")]
    Padding(u8),
}

/// An RTP packet inside a datagram; borrows the datagram's bytes.
///
/// What passes [`parse`](Self::parse) can be RTP. One datagram in four of random bytes can, too:
/// only several of one source in sequence tell that it is (RFC 3550 appendix A.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtp<'a> {
    /// What was captured, the whole header at least.
    captured: &'a [u8],
    /// Bytes of fixed header, contributing sources and extension.
    header: usize,
    /// Where payload and padding end on the wire.
    on_wire: usize,
    /// How many bytes of padding there are, if their count was captured.
    padding: Option<u8>,
}

impl<'a> Rtp<'a> {
    /// Reads the headers of an RTP packet.
    ///
    /// `captured` is what was captured of a datagram's payload, `on_wire` how many bytes it had:
    /// [`Packet::payload`](crate::Packet::payload) and
    /// [`Packet::payload_length`](crate::Packet::payload_length).
    ///
    /// # Errors
    /// See [`NotRtp`].
    pub fn parse(captured: &'a [u8], on_wire: usize) -> Result<Self, NotRtp> {
        let captured = &captured[..captured.len().min(on_wire)];
        // What decides soonest is asked first, so that most other datagrams are refused for
        // what they are and not for their length.
        let flags = *captured.get(field::FLAGS).ok_or(too_short(1, on_wire))?;
        if flags >> 6 != 2 {
            return Err(NotRtp::Version(flags >> 6));
        }
        let second = *captured.get(field::MARKER_AND_TYPE).ok_or(too_short(2, on_wire))?;
        if RTCP_TYPES.contains(&second) {
            return Err(NotRtp::Rtcp(second));
        }
        let header = header_length(flags, captured, on_wire)?;
        let padding = padding(flags, &captured[header..], on_wire - header)?;
        Ok(Self { captured, header, on_wire, padding })
    }

    /// How many contributing sources the packet names, 0 to 15.
    fn csrc_count(&self) -> usize {
        usize::from(self.captured[field::FLAGS] & 0x0f)
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

    /// The sequence number, which goes up by one for each packet of a source and wraps around.
    #[must_use]
    pub fn sequence(&self) -> u16 {
        u16::from_be_bytes(self.word(field::SEQUENCE))
    }

    /// The sampling instant of the payload's first byte, in ticks of the payload type's clock; it
    /// begins at a random value and wraps around.
    #[must_use]
    pub fn timestamp(&self) -> u32 {
        u32::from_be_bytes(self.word(field::TIMESTAMP))
    }

    /// The synchronisation source: what tells one stream from another within a session.
    #[must_use]
    pub fn ssrc(&self) -> u32 {
        u32::from_be_bytes(self.word(field::SSRC))
    }

    /// The contributing sources, which a mixer names.
    pub fn csrc(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        let list = &self.captured[field::CSRC..][..4 * self.csrc_count()];
        list.as_chunks::<4>().0.iter().map(|source| u32::from_be_bytes(*source))
    }

    /// The header extension, if there is one: the word that the profile gives a meaning, and the
    /// data (RFC 3550 section 5.3.1).
    #[must_use]
    pub fn extension(&self) -> Option<(u16, &'a [u8])> {
        let extension = &self.captured[field::CSRC + 4 * self.csrc_count()..self.header];
        let ([high, low, ..], data) = extension.split_first_chunk::<EXTENSION_HEADER>()?;
        Some((u16::from_be_bytes([*high, *low]), data))
    }

    /// Where the payload was in the datagram on the wire, in bytes, or `None` if it was padded and
    /// the capture ends before the byte that says by how much.
    #[must_use]
    pub fn payload_range(&self) -> Option<Range<usize>> {
        self.padding.map(|padding| self.header..self.on_wire - usize::from(padding))
    }

    /// What was captured of the payload. It may end with a part of the padding where
    /// [`payload_range`](Self::payload_range) is not known.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        let end = self.on_wire - usize::from(self.padding.unwrap_or(0));
        &self.captured[self.header..end.min(self.captured.len())]
    }

    /// A field of the fixed header, all of which `parse` has seen to be there.
    fn word<const N: usize>(&self, place: Range<usize>) -> [u8; N] {
        self.captured[place].first_chunk().copied().unwrap_or([0; N])
    }
}

/// Why `needed` bytes that were not captured are missing.
fn too_short(needed: usize, on_wire: usize) -> NotRtp {
    if on_wire < needed { NotRtp::TooShort } else { NotRtp::CutShort }
}

/// The length of all headers, which were captured whole.
fn header_length(flags: u8, captured: &[u8], on_wire: usize) -> Result<usize, NotRtp> {
    let mut length = field::CSRC + 4 * usize::from(flags & 0x0f);
    if flags & 0x10 != 0 {
        let after = length + EXTENSION_HEADER;
        let words = captured.get(length + 2..after).and_then(<[u8]>::first_chunk);
        let words = words.ok_or(too_short(after, on_wire))?;
        length = after + 4 * usize::from(u16::from_be_bytes(*words));
    }
    if captured.len() < length { Err(too_short(length, on_wire)) } else { Ok(length) }
}

/// How many of the `on_wire` bytes after the headers are padding, if that was captured. The last
/// byte is the count, itself included (RFC 3550 section 5.1).
fn padding(flags: u8, captured: &[u8], on_wire: usize) -> Result<Option<u8>, NotRtp> {
    if flags & 0x20 == 0 {
        return Ok(Some(0));
    }
    match captured.last() {
        _ if captured.len() < on_wire => Ok(None),
        None => Err(NotRtp::Padding(0)),
        Some(count) if *count == 0 || usize::from(*count) > on_wire => Err(NotRtp::Padding(*count)),
        Some(count) => Ok(Some(*count)),
    }
}

#[cfg(test)]
mod tests;
