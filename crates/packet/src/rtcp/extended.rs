//! Blocks of extended reports (RFC 3611).

use super::report::middle;
use super::voip::VoipMetrics;

/// Bytes before the content: type, a field that depends on it, length.
const HEADER: usize = 4;

/// Block types (RFC 3611 section 4).
mod block_type {
    pub(super) const RECEIVER_REFERENCE: u8 = 4;
    pub(super) const DELAY_SINCE_LAST: u8 = 5;
    pub(super) const VOIP_METRICS: u8 = 7;
}

/// A block of an extended report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendedBlock<'a> {
    /// Receiver reference time (section 4.4): the middle 32 bits of the reporter's NTP timestamp.
    ReceiverReference {
        /// 0 if the reporter has no clock.
        ntp_middle: u32,
    },
    /// DLRR (section 4.5): the answers of a sender to reference times.
    DelaySinceLast(DelaysSinceLast<'a>),
    /// VoIP metrics of a stream that the reporter receives (section 4.7).
    VoipMetrics(VoipMetrics),
    /// Another block, or one with the wrong length for its type. Its content is not read.
    Other {
        /// The block type.
        block_type: u8,
    },
}

/// The sub-blocks of a DLRR block, of 12 bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaysSinceLast<'a>(&'a [u8]);

/// Answer to the reference time of one receiver (section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelaySinceLastReport {
    /// SSRC of the receiver.
    pub ssrc: u32,
    /// LRR: the middle 32 bits of its last reference time; 0 if none arrived.
    pub last_reference: u32,
    /// DLRR: time from the arrival of that report to this answer, in units of 1/65536 s.
    pub delay_since_last_reference: u32,
}

impl<'a> ExtendedBlock<'a> {
    /// The first block, and the bytes after it; `None` if it is incomplete.
    pub(super) fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let [block_type, _, high, low] = *bytes.first_chunk::<HEADER>()?;
        let length = HEADER + 4 * usize::from(u16::from_be_bytes([high, low]));
        let (block, after) = bytes.split_at_checked(length)?;
        let body = block.get(HEADER..)?;
        let known = match block_type {
            block_type::RECEIVER_REFERENCE => reference(body),
            block_type::DELAY_SINCE_LAST => {
                body.len().is_multiple_of(12).then_some(Self::DelaySinceLast(DelaysSinceLast(body)))
            }
            block_type::VOIP_METRICS => VoipMetrics::parse(body).map(Self::VoipMetrics),
            _ => None,
        };
        Some((known.unwrap_or(Self::Other { block_type }), after))
    }
}

fn reference<'a>(body: &[u8]) -> Option<ExtendedBlock<'a>> {
    let body: &[u8; 8] = body.try_into().ok()?;
    let [seconds, fraction] = *body.as_chunks::<4>().0 else { return None };
    let ntp_middle = middle(u32::from_be_bytes(seconds), u32::from_be_bytes(fraction));
    Some(ExtendedBlock::ReceiverReference { ntp_middle })
}

impl DelaysSinceLast<'_> {
    /// The answers.
    pub fn iter(&self) -> impl Iterator<Item = DelaySinceLastReport> {
        self.0.as_chunks::<12>().0.iter().filter_map(|bytes| {
            let [ssrc, last, delay] = *bytes.as_chunks::<4>().0 else { return None };
            Some(DelaySinceLastReport {
                ssrc: u32::from_be_bytes(ssrc),
                last_reference: u32::from_be_bytes(last),
                delay_since_last_reference: u32::from_be_bytes(delay),
            })
        })
    }
}
