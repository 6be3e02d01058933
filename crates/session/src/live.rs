//! Live figures of a recording.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use wirestamp_clock::{Span, Stamp, Time, Utc};

use crate::figures::Figures;

/// Figures that one thread updates with every packet and other threads read, without locks. Values read
/// together may differ by a packet.
#[derive(Debug, Default)]
pub struct LiveFigures {
    packets: AtomicU64,
    bytes: AtomicU64,
    newest_ns: AtomicI64,
    error_ns: AtomicI64,
}

/// A snapshot of [`LiveFigures`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Packets captured so far.
    pub packets: u64,
    /// Bytes on the wire, without frame check sequences, of these packets.
    pub bytes: u64,
    /// Stamp of the last packet, and its max error against system time.
    pub newest: Option<(Time<Utc>, Span)>,
}

impl LiveFigures {
    /// The current values.
    #[must_use]
    pub fn glance(&self) -> Glance {
        let packets = self.packets.load(Ordering::Relaxed);
        let newest = || {
            let time = Time::from_nanos(self.newest_ns.load(Ordering::Relaxed));
            (time, Span::from_nanos(self.error_ns.load(Ordering::Relaxed)))
        };
        let bytes = self.bytes.load(Ordering::Relaxed);
        Glance { packets, bytes, newest: (packets > 0).then(newest) }
    }

    /// Updates the figures after a packet with this stamp. Call from one thread only.
    #[inline]
    pub(crate) fn show(&self, figures: &Figures, stamp: &Stamp) {
        self.newest_ns.store(stamp.utc.as_nanos(), Ordering::Relaxed);
        self.error_ns.store(stamp.error.as_nanos(), Ordering::Relaxed);
        self.bytes.store(figures.bytes, Ordering::Relaxed);
        self.packets.store(figures.packets, Ordering::Relaxed);
    }
}
