//! Observation of a packet at a point.

use wirestamp_clock::{DifferenceClock, Span, Stamp};
use wirestamp_packet::{FlowKey, IdentityKey, Packet, PacketId};

/// Point of a [`crate::Correlator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// Upstream point: packets pass here first.
    A,
    /// Downstream point.
    B,
}

/// A packet observed at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Identity of the packet.
    pub id: PacketId,
    /// Flow of the packet.
    pub flow: FlowKey,
    /// Length on the wire in bytes, with the link header, without the frame check sequence.
    pub length: u32,
    /// Time stamp.
    pub stamp: Stamp,
}

impl Observation {
    /// Observation of a packet with this length on the wire; none if the packet has no identity.
    #[must_use]
    pub fn of(packet: &Packet<'_>, length: u32, stamp: Stamp) -> Option<Self> {
        let id = packet.identity(IdentityKey::default())?;
        Some(Self { id, flow: packet.flow(), length, stamp })
    }
}

/// Time between two stamps and the bound of its error: by the difference clock of their host, if it has one
/// ([`DifferenceClock::elapsed`]), otherwise the difference in UTC with both errors added.
pub(crate) fn elapsed(clock: Option<&DifferenceClock>, from: &Stamp, to: &Stamp) -> (Span, Span) {
    clock
        .map_or_else(|| (to.utc - from.utc, from.error + to.error), |clock| clock.elapsed(from, to))
}
