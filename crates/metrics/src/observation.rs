//! A packet seen somewhere, at some time, with some uncertainty.

use wirestamp_clock::{DifferenceClock, Span, Stamp};
use wirestamp_packet::{FlowKey, IdentityKey, Packet, PacketId};

/// One of the two points that a [`crate::Correlator`] compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// The upstream point: packets pass here first.
    A,
    /// The downstream point.
    B,
}

/// A packet seen at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What the packet is recognised by.
    pub id: PacketId,
    /// The flow it belongs to.
    pub flow: FlowKey,
    /// Its length on the wire in bytes, with the link header, without the frame check sequence.
    pub length: u32,
    /// When it was seen.
    pub stamp: Stamp,
}

impl Observation {
    /// That of a packet of so many bytes on the wire; none if it cannot be recognised elsewhere.
    #[must_use]
    pub fn of(packet: &Packet<'_>, length: u32, stamp: Stamp) -> Option<Self> {
        let id = packet.identity(IdentityKey::default())?;
        Some(Self { id, flow: packet.flow(), length, stamp })
    }
}

/// The time from one stamp to another and the bound of its error: by the difference clock where
/// there is one for both stamps, otherwise the difference in UTC with the errors of both added.
pub(crate) fn elapsed(clock: Option<&DifferenceClock>, from: &Stamp, to: &Stamp) -> (Span, Span) {
    let by_ticks = clock.and_then(|clock| {
        let span = clock.span(from.raw, to.raw)?;
        Some((span, clock.error(span)))
    });
    by_ticks.unwrap_or_else(|| (to.utc - from.utc, from.error + to.error))
}
