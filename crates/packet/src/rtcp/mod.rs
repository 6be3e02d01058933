//! RTCP packets: RFC 3550 section 6, extended reports (RFC 3611), reduced-size RTCP (RFC 5506).
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the packets of a datagram |
//! | `report.rs` | report blocks, and the sender's part of a sender report |
//! | `extended.rs`, `voip.rs` | blocks of extended reports |

mod extended;
mod report;
#[cfg(test)]
mod tests;
mod voip;

use std::ops::RangeInclusive;

pub use extended::{DelaySinceLastReport, DelaysSinceLast, ExtendedBlock};
pub use report::{ReportBlock, SenderInfo};
pub use voip::VoipMetrics;

use crate::rtp::RTCP_TYPES;

/// Packet types that a datagram may begin with: those of RFC 3550, feedback (RFC 4585) and extended reports. In a compound
/// packet it is a report; reduced-size RTCP may begin with any of them.
const FIRST_TYPES: RangeInclusive<u8> = 200..=207;

/// Bytes before the content: flags with a count, packet type, length.
const HEADER: usize = 4;

/// Packet types (RFC 3550 section 12.1, RFC 3611 section 2).
mod packet_type {
    pub(super) const SENDER_REPORT: u8 = 200;
    pub(super) const RECEIVER_REPORT: u8 = 201;
    pub(super) const GOODBYE: u8 = 203;
    pub(super) const EXTENDED_REPORT: u8 = 207;
}

/// The RTCP packets of a datagram; borrows its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compound<'a> {
    bytes: &'a [u8],
}

/// A packet of a [`Compound`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtcpPacket<'a> {
    /// SR: counts of a sender, and its reports on the streams that it receives (RFC 3550 section 6.4.1).
    SenderReport {
        /// SSRC of the sender.
        sender: u32,
        /// Its clock and counts.
        info: SenderInfo,
        /// Its reports.
        blocks: Blocks<'a>,
    },
    /// RR: reports on the streams that it receives (section 6.4.2).
    ReceiverReport {
        /// SSRC of the reporter.
        sender: u32,
        /// Its reports.
        blocks: Blocks<'a>,
    },
    /// BYE: sources that end (section 6.6).
    Goodbye {
        /// The sources.
        sources: Sources<'a>,
    },
    /// XR: extended reports (RFC 3611 section 2).
    ExtendedReport {
        /// SSRC of the reporter.
        sender: u32,
        /// Its reports.
        blocks: ExtendedBlocks<'a>,
    },
    /// Another packet, such as a source description (SDES) or feedback. Its content is not read.
    Other {
        /// The packet type, 192 to 223.
        packet_type: u8,
    },
}

/// Report blocks of an SR or RR, of 24 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks<'a>(&'a [u8]);

/// Sources of a BYE, of 4 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sources<'a>(&'a [u8]);

/// Blocks of an XR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedBlocks<'a>(&'a [u8]);

/// Whether a datagram's payload begins as RTCP does: version 2, and a packet type of 200 to 207.
#[must_use]
#[inline]
pub fn begins_rtcp(payload: &[u8]) -> bool {
    matches!(payload, [flags, second, ..] if flags >> 6 == 2 && FIRST_TYPES.contains(second))
}

/// SSRC of the sender of a datagram's first packet, in plain text also where the rest is encrypted (SRTCP, RFC 3711
/// section 3.4). `None` if it does not begin as RTCP does, or is too short.
#[must_use]
pub fn first_sender(payload: &[u8]) -> Option<u32> {
    let ssrc = payload.get(HEADER..)?.first_chunk()?;
    begins_rtcp(payload).then_some(u32::from_be_bytes(*ssrc))
}

impl<'a> Compound<'a> {
    /// Parses the packets of a datagram.
    ///
    /// `captured` are the captured bytes of the datagram's payload, `on_wire` is its length on the wire.
    ///
    /// `None` unless all packets are complete: the lengths have to add up to that of the datagram, and only the last packet
    /// may be padded (RFC 3550 appendix A.2). Encrypted RTCP does not pass this check.
    #[must_use]
    pub fn parse(captured: &'a [u8], on_wire: usize) -> Option<Self> {
        let bytes = captured.get(..on_wire)?;
        if !begins_rtcp(bytes) {
            return None;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let (packet, after) = RawPacket::split(rest)?;
            RtcpPacket::of(&packet)?;
            rest = after;
        }
        Some(Self { bytes })
    }

    /// The packets, in their order.
    pub fn packets(&self) -> impl Iterator<Item = RtcpPacket<'a>> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (packet, after) = RawPacket::split(rest)?;
            rest = after;
            RtcpPacket::of(&packet)
        })
    }
}

impl Blocks<'_> {
    /// The report blocks.
    pub fn iter(&self) -> impl Iterator<Item = ReportBlock> {
        self.0.as_chunks().0.iter().filter_map(ReportBlock::of)
    }
}

impl Sources<'_> {
    /// The SSRCs.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.as_chunks::<4>().0.iter().map(|ssrc| u32::from_be_bytes(*ssrc))
    }
}

impl<'a> ExtendedBlocks<'a> {
    /// The blocks.
    pub fn iter(&self) -> impl Iterator<Item = ExtendedBlock<'a>> + use<'a> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (block, after) = ExtendedBlock::split(rest)?;
            rest = after;
            Some(block)
        })
    }
}

/// A packet with its common header (RFC 3550 section 6.4.1).
struct RawPacket<'a> {
    /// Number of blocks or sources.
    count: usize,
    packet_type: u8,
    /// Content without header and padding.
    body: &'a [u8],
}

impl<'a> RawPacket<'a> {
    /// The first packet, and the bytes after it.
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let [flags, packet_type, high, low] = *bytes.first_chunk::<HEADER>()?;
        if flags >> 6 != 2 || !RTCP_TYPES.contains(&packet_type) {
            return None;
        }
        // The length counts words of 4 bytes without the header.
        let length = HEADER + 4 * usize::from(u16::from_be_bytes([high, low]));
        let (packet, after) = bytes.split_at_checked(length)?;
        let mut body = packet.get(HEADER..)?;
        if flags & 0x20 != 0 {
            let padding = usize::from(*body.last()?);
            if !after.is_empty() || padding == 0 || !padding.is_multiple_of(4) {
                return None;
            }
            body = body.get(..body.len().checked_sub(padding)?)?;
        }
        Some((Self { count: usize::from(flags & 0x1f), packet_type, body }, after))
    }
}

impl<'a> RtcpPacket<'a> {
    /// `None` if the content is too short for its counts. A profile may have more after the blocks (section 6.4.3).
    fn of(packet: &RawPacket<'a>) -> Option<Self> {
        let RawPacket { count, packet_type, body } = *packet;
        Some(match packet_type {
            packet_type::SENDER_REPORT => {
                let (sender, rest) = split_ssrc(body)?;
                let (info, rest) = rest.split_first_chunk()?;
                let info = SenderInfo::of(info)?;
                Self::SenderReport { sender, info, blocks: Blocks::of(rest, count)? }
            }
            packet_type::RECEIVER_REPORT => {
                let (sender, rest) = split_ssrc(body)?;
                Self::ReceiverReport { sender, blocks: Blocks::of(rest, count)? }
            }
            packet_type::GOODBYE => Self::Goodbye { sources: Sources(body.get(..4 * count)?) },
            packet_type::EXTENDED_REPORT => {
                let (sender, rest) = split_ssrc(body)?;
                let mut left = rest;
                while !left.is_empty() {
                    left = ExtendedBlock::split(left)?.1;
                }
                Self::ExtendedReport { sender, blocks: ExtendedBlocks(rest) }
            }
            packet_type => Self::Other { packet_type },
        })
    }
}

impl<'a> Blocks<'a> {
    fn of(rest: &'a [u8], count: usize) -> Option<Self> {
        rest.get(..report::BLOCK_BYTES * count).map(Self)
    }
}

/// The SSRC that content begins with, and the bytes after it.
fn split_ssrc(body: &[u8]) -> Option<(u32, &[u8])> {
    let (ssrc, rest) = body.split_first_chunk()?;
    Some((u32::from_be_bytes(*ssrc), rest))
}
