//! De-jitter buffer of an assumed receiver, which plays packets at the rate of their timestamps.

use wirestamp_clock::Span;

use crate::numeric::nanos_to_f64;

/// Packets after which the buffer has followed two thirds of a lasting delay change.
const ADAPTATION_PACKETS: f64 = 256.0;

/// Detects packets that come too late for a de-jitter buffer of a given length.
///
/// The buffer is aligned to the fastest packets. The reference moves down with any faster packet, and otherwise
/// follows the delay slowly, because clocks drift and routes change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Playout {
    /// Transit time of the fastest packets, in nanoseconds from an unknown zero.
    fastest: Option<f64>,
    was_late: bool,
}

/// Timeliness of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeliness {
    InTime,
    /// Too late; `again` if the packet before was late too.
    Late {
        again: bool,
    },
}

impl Playout {
    /// Records the next transit time: arrival minus timestamp, both as times.
    pub(super) fn record(&mut self, transit: Span, buffer: Span) -> Timeliness {
        let transit = nanos_to_f64(transit.as_nanos());
        let fastest = self.fastest.unwrap_or(transit);
        let excess = transit - fastest;
        self.fastest =
            Some(if excess < 0.0 { transit } else { fastest + excess / ADAPTATION_PACKETS });
        let late = excess > nanos_to_f64(buffer.as_nanos());
        let again = std::mem::replace(&mut self.was_late, late);
        if late { Timeliness::Late { again } } else { Timeliness::InTime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: Span = Span::from_millis(60);

    fn late(transits: impl IntoIterator<Item = i64>) -> usize {
        let mut playout = Playout::default();
        let late =
            |millis: &i64| playout.record(Span::from_millis(*millis), BUFFER) != Timeliness::InTime;
        transits.into_iter().filter(late).count()
    }

    #[test]
    fn packet_slower_than_the_buffer_is_late() {
        assert_eq!(late([5, 60, 5, 64, 5]), 0);
        assert_eq!(late([5, 5, 70, 5]), 1);
        assert_eq!(late([70, 5, 70, 70]), 2, "the first one was not the fastest");
        assert_eq!(late([-500, -430]), 1);
    }

    #[test]
    fn lasting_change_and_clock_drift_are_followed() {
        let change = [0; 100].into_iter().chain([100; 2000]);
        assert!((50..400).contains(&late(change)));
        // A millisecond every 20 packets: 2500 ppm at 50 packets a second.
        assert_eq!(late((0..10_000).map(|packet| packet / 20)), 0);
    }

    #[test]
    fn consecutive_late_packets_are_marked() {
        let mut playout = Playout::default();
        let found = [0, 90, 90, 0, 90].map(|it| playout.record(Span::from_millis(it), BUFFER));
        let late = |again| Timeliness::Late { again };
        let in_time = Timeliness::InTime;
        assert_eq!(found, [in_time, late(false), late(true), in_time, late(false)]);
    }
}
