//! The result of recognising a packet.

use super::PacketId;
use crate::FlowKey;

/// A packet with its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// The identity, the flow that the packet belongs to, and its length on the wire.
    As {
        /// The identity.
        id: PacketId,
        /// The flow: that of the inner packet with [`MatchRule::Inner`](crate::MatchRule::Inner).
        flow: FlowKey,
        /// The length of the frame; of fragments, the sum.
        length: u32,
    },
    /// A part of a packet that is not complete yet.
    Incomplete,
    /// It has no identity by this rule.
    Unidentified,
}
