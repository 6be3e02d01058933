//! A packet as it arrives, and what it is in the order of its stream.

use wirestamp_clock::{Span, Time, Utc};

/// A packet of a stream, as it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The packet's place in the order of sending, without wraps: numbers of a few bits are extended
    /// first, as [`crate::rtp::Sequence`] does. A sender that begins anew begins a new stream.
    pub sequence: u64,
    /// When it arrived.
    pub time: Time<Utc>,
    /// Its payload in bytes.
    pub bytes: u32,
}

/// What an arrival is in the order of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing that was sent later has arrived before it.
    InOrder,
    /// Something has: Type-P-Reordered is true (RFC 4737 section 3.3).
    Reordered(Lateness),
    /// One more copy of a packet in the window. Only the first copy has a place in the order.
    Duplicate,
    /// Older than the window: reordered or a duplicate, but which of them, and how late, can no
    /// longer be told.
    Forgotten,
}

/// How far a reordered packet came behind its place.
///
/// Extent and time are counted from the *earliest* arrival that was sent after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Reordering extent (RFC 4737 section 4.2): packets from that arrival to this one, at least 1.
    pub extent: u64,
    /// Late time offset (section 4.3): the time from that arrival to this one, which a buffer would
    /// have had to wait. Negative only where stamps go back.
    pub time: Span,
    /// Reordering byte offset (section 4.4): the payloads, in bytes, of all earlier arrivals that
    /// were sent after this packet, which a buffer would have had to hold.
    pub bytes: u64,
    /// The greatest n for which the packet is n-reordered (section 5.3): so many packets that
    /// arrived directly before it were all sent after it. 0 if the one just before was sent earlier:
    /// the packet is reordered, but not n-reordered for any n.
    pub n_reordering: u64,
}

/// How often each [`Order`] came up; their sum is the number of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Arrivals in order.
    pub in_order: u64,
    /// Reordered packets.
    pub reordered: u64,
    /// Copies beyond the first.
    pub duplicated: u64,
    /// Arrivals older than the window.
    pub forgotten: u64,
}
