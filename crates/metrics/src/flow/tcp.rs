//! Round-trip times and retransmissions of TCP, where both directions pass one point.
//!
//! The time from a segment to its acknowledgment is the round trip from this point to the receiver. Of several segments
//! covered by one acknowledgment, the newest waited least and gives the sample. After a retransmission, acknowledgments
//! of segments in flight are ambiguous and give no sample (Karn's algorithm, RFC 6298 section 3).
//!
//! A mirror port may capture each packet twice. Such a duplicate has the identification of IPv4 of the first packet; a
//! retransmission has another one.

use std::collections::VecDeque;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::TcpSegment;

use super::volume::GapDistribution;

/// Max unacknowledged segments; later ones give no sample.
const MAX_IN_FLIGHT: usize = 64;
/// Max holes in the sequence numbers.
const MAX_HOLES: usize = 8;
/// Segments that fill a hole within this time are reordered, not retransmitted, while the round-trip time is unknown:
/// as in Wireshark (`epan/dissectors/packet-tcp.c`).
const MAX_REORDERING_DELAY: Span = Span::from_millis(3);
/// Max time between a packet and its duplicate of the capture.
const MAX_DUPLICATE_DELAY: Span = Span::from_millis(1);

/// One direction of a conversation.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    /// Sequence number after the highest sent.
    next: Option<u32>,
    in_flight: VecDeque<InFlight>,
    holes: Vec<Hole>,
    /// Round-trip times from this point to the receiver.
    pub(super) round_trips: GapDistribution,
    /// Round-trip time of the SYN.
    pub(super) handshake: Option<Span>,
    /// Packets that the network carries for the segments sent.
    pub(super) segments: u64,
    /// Those of retransmitted segments.
    pub(super) retransmitted: u64,
    /// Those of reordered segments: too early for a retransmission.
    pub(super) reordered: u64,
    /// Packets captured again, which the others do not include.
    pub(super) duplicated: u64,
    /// Last segment that is not a duplicate, with its identification of IPv4 and its time.
    last: Option<(TcpSegment, u32, Time<Utc>)>,
}

/// An unacknowledged segment.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// Sequence number after its last byte.
    end: u32,
    syn: bool,
    sent: Time<Utc>,
}

/// Sequence numbers skipped so far.
#[derive(Clone, Copy, Debug)]
struct Hole {
    begin: u32,
    end: u32,
    since: Time<Utc>,
}

/// Whether `a` is before `b` among numbers that wrap around (RFC 9293 section 3.4).
fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

impl Direction {
    /// Returns whether the capture has the packet before this one again: the same segment with the same identification of
    /// IPv4, which is 0 if there is none. Counts its `packets` then.
    pub(super) fn record_duplicate(
        &mut self,
        segment: &TcpSegment,
        identification: u32,
        packets: u64,
        time: Time<Utc>,
    ) -> bool {
        let is_duplicate = identification != 0
            && self.last.is_some_and(|(last, number, since)| {
                (last, number) == (*segment, identification)
                    && (time - since).abs() <= MAX_DUPLICATE_DELAY
            });
        if is_duplicate {
            self.duplicated += packets;
        } else {
            self.last = Some((*segment, identification, time));
        }
        is_duplicate
    }

    /// Records a segment sent in this direction, which the network carries in `packets`; `back` is the min round-trip time
    /// to the sender.
    pub(super) fn sent(
        &mut self,
        segment: &TcpSegment,
        packets: u64,
        time: Time<Utc>,
        back: Option<i64>,
    ) {
        self.segments += packets;
        let begin = segment.sequence;
        let end = begin.wrapping_add(segment.numbers());
        if segment.syn && self.next.is_some_and(|next| next != end) {
            self.restart();
        }
        if end == begin {
            return;
        }
        match self.next {
            Some(next) if before(begin, next) => {
                // Of a merged segment, only the part that repeats earlier data was sent again.
                let numbers = u64::from(segment.numbers());
                let repeated = u64::from(next.wrapping_sub(begin)).min(numbers);
                let packets = (packets * repeated).div_ceil(numbers);
                self.record_old(segment, packets, time, back);
            }
            Some(next) => {
                if begin != next && self.holes.len() < MAX_HOLES {
                    self.holes.push(Hole { begin: next, end: begin, since: time });
                }
                self.remember(end, segment.syn, time);
            }
            None => self.remember(end, segment.syn, time),
        }
        if self.next.is_none_or(|next| before(next, end)) {
            self.next = Some(end);
        }
    }

    /// Begins a new conversation between the same ports; the counts continue.
    fn restart(&mut self) {
        self.next = None;
        self.in_flight.clear();
        self.holes.clear();
    }

    fn remember(&mut self, end: u32, syn: bool, sent: Time<Utc>) {
        if self.in_flight.len() < MAX_IN_FLIGHT {
            self.in_flight.push_back(InFlight { end, syn, sent });
        }
    }

    /// Records a segment below the highest number: reordered, retransmitted or a probe.
    fn record_old(
        &mut self,
        segment: &TcpSegment,
        packets: u64,
        time: Time<Utc>,
        back: Option<i64>,
    ) {
        // A keep-alive repeats the last sequence number, with at most one byte of data (RFC 9293 section 3.8.4).
        let is_probe = segment.length <= 1 && self.next == Some(segment.sequence.wrapping_add(1));
        if is_probe && !segment.syn && !segment.fin {
            return;
        }
        let end = segment.sequence.wrapping_add(segment.numbers());
        let since = self.fill_hole(segment.sequence, end);
        let round_trip = back.zip(self.round_trips.min());
        let soon = round_trip.map_or(MAX_REORDERING_DELAY, |(back, there)| {
            Span::from_nanos(back.saturating_add(there))
        });
        if since.is_some_and(|since| time - since < soon) {
            self.reordered += packets;
        } else {
            self.retransmitted += packets;
            self.in_flight.retain(|it| !before(segment.sequence, it.end));
        }
    }

    /// Removes numbers from the hole that contains them; returns when the hole began.
    fn fill_hole(&mut self, begin: u32, end: u32) -> Option<Time<Utc>> {
        let contains = |hole: &Hole| !before(begin, hole.begin) && !before(hole.end, end);
        let place = self.holes.iter().position(contains)?;
        let Hole { begin: from, end: until, since } = self.holes.swap_remove(place);
        for (from, until) in [(from, begin), (end, until)] {
            if from != until && self.holes.len() < MAX_HOLES {
                self.holes.push(Hole { begin: from, end: until, since });
            }
        }
        Some(since)
    }

    /// Records an acknowledgment from the other direction.
    pub(super) fn record_acknowledgment(&mut self, until: u32, time: Time<Utc>) {
        let mut newest = None;
        while let Some(first) = self.in_flight.front().filter(|it| !before(until, it.end)) {
            newest = Some(*first);
            self.in_flight.pop_front();
        }
        if let Some(InFlight { syn, sent, .. }) = newest {
            let round_trip = time - sent;
            self.round_trips.record(round_trip);
            if syn {
                self.handshake = Some(round_trip);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(0) + Span::from_millis(millis)
    }

    fn data(sequence: u32, length: u32) -> TcpSegment {
        TcpSegment { sequence, acknowledgment: Some(1), syn: false, fin: false, length }
    }

    fn trips(direction: &Direction) -> Option<(u64, i64, i64)> {
        direction.round_trips.summary().map(|it| (it.count, it.min / 1_000_000, it.max / 1_000_000))
    }

    /// A receiver merged a repeated segment with nine new ones.
    #[test]
    fn merged_segment_is_retransmitted_in_part() {
        let mut there = Direction::default();
        there.sent(&data(0, 1000), 1, at(0), None);
        there.sent(&data(0, 10_000), 10, at(300), None);
        assert_eq!((there.retransmitted, there.segments), (1, 11));
        there.sent(&data(10_000, 1000), 1, at(301), None);
        assert_eq!(there.retransmitted, 1);
    }

    #[test]
    fn newest_acknowledged_segment_gives_the_sample() {
        let mut there = Direction::default();
        there.sent(&data(u32::MAX - 99, 100), 1, at(0), None);
        there.sent(&data(0, 100), 1, at(30), None);
        there.record_acknowledgment(u32::MAX - 99, at(35));
        assert_eq!(trips(&there), None, "a duplicate acknowledgment");
        there.record_acknowledgment(100, at(40));
        there.record_acknowledgment(100, at(60));
        assert_eq!(trips(&there), Some((1, 10, 10)));
    }

    #[test]
    fn a_handshake_gives_both_parts_of_the_round_trip() {
        let syn = TcpSegment { syn: true, acknowledgment: None, ..data(7, 0) };
        let mut there = Direction::default();
        there.sent(&syn, 1, at(0), None);
        there.record_acknowledgment(8, at(12));
        assert_eq!(
            (there.handshake, trips(&there)),
            (Some(Span::from_millis(12)), Some((1, 12, 12)))
        );
    }

    #[test]
    fn retransmission_gives_no_sample() {
        let mut there = Direction::default();
        for number in 0..3 {
            there.sent(&data(number * 100, 100), 1, at(i64::from(number)), None);
        }
        there.sent(&data(0, 100), 1, at(50), None);
        there.record_acknowledgment(300, at(60));
        assert_eq!((there.retransmitted, trips(&there)), (1, None));
        there.sent(&data(300, 100), 1, at(70), None);
        there.record_acknowledgment(400, at(75));
        assert_eq!(trips(&there), Some((1, 5, 5)));
    }

    #[test]
    fn late_hole_filler_is_a_retransmission() {
        for (late, reordered, retransmitted) in [(2, 1, 0), (25, 0, 1)] {
            let mut there = Direction::default();
            there.sent(&data(0, 100), 1, at(0), None);
            there.sent(&data(300, 100), 1, at(1), None);
            there.sent(&data(200, 100), 1, at(1 + late), None);
            assert_eq!((there.reordered, there.retransmitted), (reordered, retransmitted));
            // The rest of the hole remains one hole.
            there.sent(&data(100, 100), 1, at(1 + late), None);
            assert_eq!(there.reordered + there.retransmitted, 2);
        }
        let mut known = Direction::default();
        known.sent(&data(0, 100), 1, at(0), None);
        known.record_acknowledgment(100, at(20));
        known.sent(&data(200, 100), 1, at(30), Some(10_000_000));
        known.sent(&data(100, 100), 1, at(55), Some(10_000_000));
        assert_eq!((known.reordered, known.retransmitted), (1, 0));
    }

    #[test]
    fn probes_and_new_conversations_are_no_retransmissions() {
        let mut there = Direction::default();
        there.sent(&data(0, 100), 1, at(0), None);
        there.record_acknowledgment(100, at(1));
        there.sent(&data(99, 1), 1, at(5000), None);
        there.sent(&data(99, 0), 1, at(6000), None);
        let syn = TcpSegment { syn: true, ..data(5, 0) };
        there.sent(&syn, 1, at(9000), None);
        there.sent(&data(6, 10), 1, at(9001), None);
        assert_eq!((there.retransmitted, there.reordered), (0, 0));
        there.sent(&syn, 1, at(9100), None);
        assert_eq!(there.retransmitted, 0, "a SYN begins a new conversation");
    }

    #[test]
    fn segments_captured_twice_are_duplicates() {
        let mut there = Direction::default();
        let micros = |micros| at(0) + Span::from_micros(micros);
        let segment = data(0, 100);
        for (found, expected, why) in [
            ((segment, 7, 0), false, "first"),
            ((segment, 7, 5), true, "captured again"),
            ((segment, 7, 1000), true, "and again"),
            ((segment, 8, 1005), false, "another packet with the same data"),
            ((segment, 8, 2006), false, "too late"),
            ((data(100, 100), 8, 2007), false, "other data"),
            ((data(200, 100), 0, 2008), false, "no identification"),
            ((data(200, 100), 0, 2009), false, "no identification"),
        ] {
            let (segment, identification, time) = found;
            let is_duplicate = there.record_duplicate(&segment, identification, 2, micros(time));
            assert_eq!(is_duplicate, expected, "{why}");
        }
        assert_eq!(there.duplicated, 4);
    }

    #[test]
    fn memory_is_bounded() {
        let mut there = Direction::default();
        for number in 0..10_000 {
            there.sent(&data(number * 200, 100), 1, at(0), None);
        }
        assert_eq!((there.in_flight.len(), there.holes.len()), (MAX_IN_FLIGHT, MAX_HOLES));
    }
}
