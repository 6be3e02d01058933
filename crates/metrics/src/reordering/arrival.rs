//! An arriving packet, and its order in the stream.

use wirestamp_clock::{Span, Time, Utc};

/// A packet of a stream, on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Position in the order of sending, without wraps: short numbers are extended first, as [`crate::rtp::Sequence`]
    /// does. A restarted sender is a new stream.
    pub sequence: u64,
    /// Arrival time.
    pub time: Time<Utc>,
    /// Payload in bytes.
    pub bytes: u32,
}

/// Order of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No packet sent later has arrived before it.
    InOrder,
    /// A packet sent later has arrived before: Type-P-Reordered is true (RFC 4737 section 3.3).
    Reordered(Lateness),
    /// Duplicate of a packet in the window. Only the first packet has an order.
    Duplicate,
    /// Older than the window: reordered or duplicate, which is no longer known.
    Forgotten,
}

/// Lateness of a reordered packet.
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
    /// Max n for which the packet is n-reordered (section 5.3): the n arrivals directly before it were all sent after
    /// it. 0 if the one just before was sent earlier: reordered, but not n-reordered for any n.
    pub n_reordering: u64,
}

/// Number of arrivals by [`Order`]; the sum is the number of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Arrivals in order.
    pub in_order: u64,
    /// Reordered packets.
    pub reordered: u64,
    /// Duplicates beyond the first.
    pub duplicated: u64,
    /// Arrivals older than the window.
    pub forgotten: u64,
}
