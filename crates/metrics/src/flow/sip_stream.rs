//! SIP over TCP: messages from the segments of one direction.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::TcpSegment;
use wirestamp_packet::sip::{Framing, begins_message, framing};

/// Max segments, and max bytes of them, that wait for an earlier one.
const MAX_WAITING: usize = 16;
const MAX_WAITING_BYTES: usize = 65_536;
/// Time that a segment waits for an earlier one: one that the network lost is sent again before.
const MAX_WAIT: Span = Span::from_secs(2);
/// A segment further back than this is of another connection with the same ports.
const MAX_BACK: u32 = 1 << 20;

/// Reassembly of the bytes of one direction: at most a message of 64 KiB, and the waiting segments.
#[derive(Clone, Debug, Default)]
pub(super) struct SipStream {
    /// Sequence number of the next byte.
    next: Option<u32>,
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
}

/// A segment after a missing one.
#[derive(Clone, Debug)]
struct Waiting {
    sequence: u32,
    time: Time<Utc>,
    bytes: Vec<u8>,
}

/// A message, and the time of the segment with its last byte.
pub(super) type TimedMessage = (Vec<u8>, Time<Utc>);

impl SipStream {
    /// Records a segment with its captured bytes; returns the messages that it completes. Bytes that were not captured end
    /// the message that they belong to; the next one is found at the beginning of a segment.
    pub(super) fn record(
        &mut self,
        segment: &TcpSegment,
        captured: &[u8],
        time: Time<Utc>,
    ) -> Vec<TimedMessage> {
        let mut messages = Vec::new();
        // Data in a SYN have the next number (RFC 9293 section 3.4).
        let sequence = segment.sequence.wrapping_add(u32::from(segment.syn));
        if segment.syn || self.next.is_some_and(|next| is_far_back(sequence, next)) {
            messages = self.restart(segment.syn.then_some(sequence));
        }
        if segment.length == 0 {
            return messages;
        }
        if captured.len() < usize::try_from(segment.length).unwrap_or(usize::MAX) {
            messages.extend(self.restart(None));
            return messages;
        }
        if self.waiting.iter().any(|waiting| time - waiting.time > MAX_WAIT) {
            messages.extend(self.flush());
        }
        let next = *self.next.get_or_insert(sequence);
        if is_ahead(sequence, next) {
            self.waiting.push(Waiting { sequence, time, bytes: captured.to_vec() });
            let bytes: usize = self.waiting.iter().map(|waiting| waiting.bytes.len()).sum();
            if self.waiting.len() > MAX_WAITING || bytes > MAX_WAITING_BYTES {
                self.skip_gap();
            }
        } else {
            self.append(sequence, captured);
            messages.extend(self.messages(time));
        }
        messages.extend(self.append_due());
        messages
    }

    /// Begins again, with `next` as the sequence number of the next byte if it is known. Returns the messages that waited.
    fn restart(&mut self, next: Option<u32>) -> Vec<TimedMessage> {
        let messages = self.flush();
        *self = Self { next, ..Self::default() };
        messages
    }

    /// The messages of all waiting segments.
    pub(super) fn flush(&mut self) -> Vec<TimedMessage> {
        let mut messages = Vec::new();
        while !self.waiting.is_empty() {
            self.skip_gap();
            messages.extend(self.append_due());
        }
        messages
    }

    /// Appends the waiting segments that are due; returns the messages that they complete.
    fn append_due(&mut self) -> Vec<TimedMessage> {
        let mut messages = Vec::new();
        while let Some(place) = self.first_due() {
            let Waiting { sequence, time, bytes } = self.waiting.swap_remove(place);
            self.append(sequence, &bytes);
            messages.extend(self.messages(time));
        }
        messages
    }

    /// Continues with the first waiting segment that begins with a message.
    fn skip_gap(&mut self) {
        let next = self.next.unwrap_or(0);
        self.bytes.clear();
        let distance = |waiting: &Waiting| waiting.sequence.wrapping_sub(next);
        let begins = self.waiting.iter().filter(|waiting| begins_message(&waiting.bytes));
        match begins.map(distance).min() {
            Some(first) => {
                self.waiting.retain(|waiting| distance(waiting) >= first);
                self.next = Some(next.wrapping_add(first));
            }
            None => *self = Self::default(),
        }
    }

    /// Index of a waiting segment that begins at or before the next byte.
    fn first_due(&self) -> Option<usize> {
        let next = self.next?;
        self.waiting.iter().position(|waiting| !is_ahead(waiting.sequence, next))
    }

    /// Appends what is new in a segment that does not begin after the next byte.
    fn append(&mut self, sequence: u32, bytes: &[u8]) {
        let Some(next) = self.next else { return };
        let overlap = usize::try_from(next.wrapping_sub(sequence)).unwrap_or(usize::MAX);
        if let Some(new @ [_, ..]) = bytes.get(overlap..) {
            self.bytes.extend(new);
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            self.next = Some(sequence.wrapping_add(length));
        }
    }

    /// Removes the complete messages from the beginning; `time` is that of the last segment.
    fn messages(&mut self, time: Time<Utc>) -> Vec<TimedMessage> {
        let (mut messages, mut at) = (Vec::new(), 0);
        loop {
            // Empty lines between messages keep the connection alive (RFC 5626 section 3.5.1).
            let rest = &self.bytes[at..];
            at += rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            match framing(&self.bytes[at..]) {
                Framing::Complete(length) => {
                    messages.push((self.bytes[at..at + length].to_vec(), time));
                    at += length;
                }
                Framing::Incomplete => break,
                Framing::NotSip => {
                    at = self.bytes.len();
                    break;
                }
            }
        }
        self.bytes.drain(..at);
        messages
    }
}

/// Whether a sequence number is after the next byte of the stream (RFC 9293 section 3.4).
const fn is_ahead(sequence: u32, next: u32) -> bool {
    let distance = sequence.wrapping_sub(next);
    0 < distance && distance < 1 << 31
}

const fn is_far_back(sequence: u32, next: u32) -> bool {
    !is_ahead(sequence, next) && next.wrapping_sub(sequence) > MAX_BACK
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(sequence: u32, bytes: &[u8]) -> TcpSegment {
        let length = u32::try_from(bytes.len()).unwrap();
        TcpSegment { sequence, acknowledgment: None, syn: false, fin: false, length }
    }

    fn messages() -> Vec<Vec<u8>> {
        let message = |number: usize| {
            let body = "x".repeat(number * 7);
            format!("SIP/2.0 200 OK\r\ni: {number}\r\nl: {}\r\n\r\n{body}", body.len()).into_bytes()
        };
        (0..6).map(message).collect()
    }

    const NOW: Time<Utc> = Time::from_nanos(0);

    fn record(stream: &mut SipStream, sequence: u32, bytes: &[u8]) -> Vec<Vec<u8>> {
        let found = stream.record(&segment(sequence, bytes), bytes, NOW);
        found.into_iter().map(|(message, _)| message).collect()
    }

    #[test]
    fn stream_continues_after_bytes_that_were_not_captured() {
        let all = messages();
        let mut stream = SipStream::default();
        assert_eq!(record(&mut stream, 0, &all[3]), &all[3..4]);
        // A segment of which the capture has half.
        let half = &all[4][..10];
        assert!(stream.record(&segment(100, &all[4]), half, NOW).is_empty());
        let next = 100 + u32::try_from(all[4].len()).unwrap();
        assert_eq!(record(&mut stream, next, &all[5]), &all[5..6]);
    }

    #[test]
    fn lost_segment_costs_only_its_own_message() {
        let all = messages();
        let mut stream = SipStream::default();
        let begin = u32::try_from(record(&mut stream, 0, &all[0])[0].len()).unwrap();
        let length = u32::try_from(all[2].len()).unwrap();
        // The first of 20 segments is lost.
        let found: Vec<_> = (1..20)
            .flat_map(|number| record(&mut stream, begin + number * length, &all[2]))
            .collect();
        assert_eq!(found, vec![all[2].clone(); 19]);
        assert!(record(&mut stream, begin + 20 * length, b"\0\0").is_empty());
    }

    #[test]
    fn messages_after_a_lost_segment_keep_their_times() {
        let all = messages();
        let mut stream = SipStream::default();
        let at = |seconds| NOW + Span::from_secs(seconds);
        let begin = u32::try_from(record(&mut stream, 0, &all[0])[0].len()).unwrap() + 100;
        let length = u32::try_from(all[2].len()).unwrap();
        let mut found = Vec::new();
        for number in 0..3 {
            let sequence = begin + number * length;
            found.extend(stream.record(&segment(sequence, &all[2]), &all[2], at(number.into())));
        }
        assert!(found.is_empty(), "they wait");
        let sequence = begin + 3 * length;
        found.extend(stream.record(&segment(sequence, &all[2]), &all[2], at(3)));
        let times: Vec<_> = found.into_iter().map(|(_, time)| time).collect();
        assert_eq!(times, [0, 1, 2, 3].map(at));
        stream.record(&segment(sequence + 2 * length, &all[2]), &all[2], at(4));
        assert_eq!(stream.flush(), [(all[2].clone(), at(4))]);
    }

    #[test]
    fn connections_with_the_same_ports_are_separate() {
        let all = messages();
        let mut stream = SipStream::default();
        record(&mut stream, 3_000_000_000, &all[1]);
        let syn = TcpSegment { syn: true, ..segment(999, b"") };
        assert!(stream.record(&syn, b"", NOW).is_empty());
        assert_eq!(record(&mut stream, 1000, &all[2]), &all[2..3]);
        // The SYN of the third was not captured.
        assert_eq!(record(&mut stream, u32::MAX - 5_000_000, &all[3]), &all[3..4]);
        // Data in the SYN itself (RFC 7413).
        let syn = TcpSegment { syn: true, ..segment(77, &all[4]) };
        assert_eq!(stream.record(&syn, &all[4], NOW), [(all[4].clone(), NOW)]);
    }

    #[test]
    fn waiting_messages_are_kept_at_the_end_of_a_connection() {
        let all = messages();
        let length = |message: &[u8]| u32::try_from(message.len()).unwrap();
        let waiting = || {
            let mut stream = SipStream::default();
            record(&mut stream, 0, &all[0]);
            let after_lost = length(&all[0]) + 100;
            assert!(record(&mut stream, after_lost, &all[1]).is_empty(), "it waits");
            (stream, after_lost + length(&all[1]))
        };
        let (mut stream, _) = waiting();
        let syn = TcpSegment { syn: true, ..segment(9, b"") };
        assert_eq!(stream.record(&syn, b"", NOW), [(all[1].clone(), NOW)]);
        let (mut stream, next) = waiting();
        let cut = segment(next, &all[2]);
        assert_eq!(stream.record(&cut, &all[2][..10], NOW), [(all[1].clone(), NOW)]);
    }

    proptest! {
        #[test]
        fn messages_are_found_in_any_order_of_segments(
            begin: u32, cuts in prop::collection::vec(1..300_usize, 0..8), order: [u8; 12], repeated: bool,
        ) {
            let all = messages().join(&b"\r\n\r\n"[..]);
            let mut ends: Vec<_> = cuts.into_iter().filter(|cut| *cut < all.len()).collect();
            ends.extend([0, all.len()]);
            ends.sort_unstable();
            ends.dedup();
            let mut parts: Vec<_> = ends.windows(2).map(|pair| (pair[0], &all[pair[0]..pair[1]])).collect();
            // The first segment defines the beginning.
            parts[1..].sort_by_key(|(at, _)| order[at % 12]);
            if repeated {
                parts = parts.iter().flat_map(|part| [*part; 2]).collect();
            }
            let mut stream = SipStream::default();
            let mut found = Vec::new();
            for (at, bytes) in parts {
                found.extend(record(&mut stream, begin.wrapping_add(u32::try_from(at).unwrap()), bytes));
            }
            prop_assert_eq!(found, messages());
        }
    }
}
