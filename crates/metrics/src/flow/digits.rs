//! Digits that a caller dials during a call (DTMF): telephone events of RTP.

/// Max digits that are kept.
const MAX_DIGITS: usize = 64;

/// Max duration of a segment of a long event, in timestamp units (RFC 4733 section 2.5.1.3).
const MAX_DURATION: u32 = 0xffff;

/// Digits of a stream, in the order of their timestamps.
#[derive(Clone, Debug, Default)]
pub(super) struct Digits {
    last: Option<Event>,
    pub(super) text: String,
}

/// A packet of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) code: u8,
    /// Whether the packet is the first of the event.
    pub(super) marker: bool,
    /// Begin of the segment: all of its packets have this timestamp (RFC 4733 section 2.2.1).
    pub(super) timestamp: u32,
    /// Duration of the segment so far, in timestamp units; 0 if it was not captured.
    pub(super) duration: u16,
}

impl Digits {
    /// The next packets have timestamps of their own.
    pub(super) fn restart(&mut self) {
        self.last = None;
    }

    /// Records a packet of an event.
    pub(super) fn record(&mut self, event: Event) {
        if let Some(last) = &mut self.last {
            let advance = event.timestamp.wrapping_sub(last.timestamp);
            if advance == 0 {
                last.duration = last.duration.max(event.duration);
                return;
            }
            if advance >= 1 << 31 {
                return;
            }
            if event.is_next_segment_of(*last, advance) {
                *last = event;
                return;
            }
        }
        self.last = Some(event);
        if self.text.len() < MAX_DIGITS {
            self.text.extend(digit(event.code));
        }
    }
}

impl Event {
    /// Whether it continues an event whose timestamp is `advance` units before: the next segment begins at the end of
    /// the one before, without a marker (RFC 4733 section 2.5.1.3).
    fn is_next_segment_of(self, last: Self, advance: u32) -> bool {
        let is_end = advance == MAX_DURATION || advance == u32::from(last.duration);
        self.code == last.code && !self.marker && is_end
    }
}

/// The key of an event (RFC 4733 section 3.2); none for other events.
const fn digit(event: u8) -> Option<char> {
    Some(match event {
        0..=9 => (b'0' + event) as char,
        10 => '*',
        11 => '#',
        12..=15 => (b'A' + event - 12) as char,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_one_digit() {
        let mut digits = Digits::default();
        for (event, timestamp) in [
            (1, 100),
            (1, 100),
            (10, u32::MAX),
            (2, 900),
            (1, 100),
            (11, 5000),
            (15, 6000),
            (16, 7000),
        ] {
            digits.record(Event { code: event, marker: false, timestamp, duration: 160 });
        }
        assert_eq!(digits.text, "12#D");
        for number in 0..100 {
            let timestamp = 8000 + number;
            digits.record(Event { code: 0, marker: false, timestamp, duration: 0 });
        }
        assert_eq!(digits.text.len(), MAX_DIGITS);
    }

    /// Digits of packets of key 5: marker, timestamp and duration.
    fn digits(packets: &[(bool, u32, u16)]) -> String {
        let mut digits = Digits::default();
        for (marker, timestamp, duration) in packets.iter().copied() {
            digits.record(Event { code: 5, marker, timestamp, duration });
        }
        digits.text
    }

    #[test]
    fn segments_of_a_long_event_are_one_digit() {
        let begin = u32::MAX - 1000;
        let second = begin.wrapping_add(0xffff);
        let first = [(true, begin, 160), (false, begin, 0xffff), (false, begin, 320)];
        let next = [(false, second, 160), (false, second, 40_000), (false, second, 40_000)];
        assert_eq!(digits(&[first, next].concat()), "5");
        // The end of the first segment is lost, or all of the second segment but its last packets.
        assert_eq!(digits(&[&first[..1], &next[2..]].concat()), "5");
        // Segments that are shorter, as some senders have.
        let third = (false, second.wrapping_add(40_000), 160);
        assert_eq!(digits(&[&next[..], &[third]].concat()), "5");
    }

    #[test]
    fn same_key_again_is_another_digit() {
        assert_eq!(digits(&[(true, 0, 800), (true, 800, 160)]), "55", "at once, with a marker");
        assert_eq!(digits(&[(true, 0, 800), (false, 1600, 160)]), "55", "the marker is lost");
    }
}
