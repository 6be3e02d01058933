//! Settings of one round of packets.

use wirestamp_clock::Span;

use super::technique::Technique;

/// Packets to send, and how to receive them.
pub(crate) struct Round<'a> {
    pub(crate) technique: Technique,
    /// Check sequence included.
    pub(crate) frame_bytes: u16,
    /// The least time from one packet to the next.
    pub(crate) interval: Span,
    /// Max packets of the round.
    pub(crate) packets: u32,
    pub(crate) time: Span,
    /// Delay of the device under test for the packet of a number. If sending the first replica takes longer,
    /// the delay is that time.
    pub(crate) delay: &'a (dyn Fn(u32) -> Span + Sync),
    /// Whether something else runs on the cores of the captures.
    pub(crate) stressed: bool,
}
