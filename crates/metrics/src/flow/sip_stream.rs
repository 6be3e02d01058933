//! SIP over TCP: messages from the segments of one direction.

use wirestamp_packet::TcpSegment;
use wirestamp_packet::sip::{Framing, begins_message, framing};

/// Max segments, and max bytes of them, that wait for an earlier one.
const MAX_WAITING: usize = 16;
const MAX_WAITING_BYTES: usize = 65_536;
/// A segment further back than this is of another connection with the same ports.
const MAX_BACK: u32 = 1 << 20;

/// Reassembly of the bytes of one direction: at most a message of 64 KiB, and the waiting segments.
#[derive(Clone, Debug, Default)]
pub(super) struct SipStream {
    /// Sequence number of the next byte.
    next: Option<u32>,
    bytes: Vec<u8>,
    waiting: Vec<(u32, Vec<u8>)>,
}

impl SipStream {
    /// Records a segment with its captured bytes; returns the messages that it completes. Bytes that were not captured end
    /// the message that they belong to; the next one is found at the beginning of a segment.
    pub(super) fn record(&mut self, segment: &TcpSegment, captured: &[u8]) -> Vec<Vec<u8>> {
        if segment.syn || self.next.is_some_and(|next| is_far_back(segment.sequence, next)) {
            *self = Self::default();
        }
        if segment.syn {
            self.next = Some(segment.sequence.wrapping_add(1));
        }
        if segment.length == 0 {
            return Vec::new();
        }
        if captured.len() < usize::try_from(segment.length).unwrap_or(usize::MAX) {
            *self = Self::default();
            return Vec::new();
        }
        let next = *self.next.get_or_insert(segment.sequence);
        if is_ahead(segment.sequence, next) {
            self.waiting.push((segment.sequence, captured.to_vec()));
            let bytes: usize = self.waiting.iter().map(|(_, bytes)| bytes.len()).sum();
            if self.waiting.len() > MAX_WAITING || bytes > MAX_WAITING_BYTES {
                self.skip_gap(next);
            }
        } else {
            self.append(segment.sequence, captured);
        }
        while let Some(place) = self.first_due() {
            let (sequence, bytes) = self.waiting.swap_remove(place);
            self.append(sequence, &bytes);
        }
        self.messages()
    }

    /// Continues with the first waiting segment that begins with a message.
    fn skip_gap(&mut self, next: u32) {
        self.bytes.clear();
        let distance = |segment: &(u32, Vec<u8>)| segment.0.wrapping_sub(next);
        let begins = self.waiting.iter().filter(|(_, bytes)| begins_message(bytes));
        match begins.map(distance).min() {
            Some(first) => {
                self.waiting.retain(|segment| distance(segment) >= first);
                self.next = Some(next.wrapping_add(first));
            }
            None => *self = Self::default(),
        }
    }

    /// Index of a waiting segment that begins at or before the next byte.
    fn first_due(&self) -> Option<usize> {
        let next = self.next?;
        self.waiting.iter().position(|(sequence, _)| !is_ahead(*sequence, next))
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

    /// Removes the complete messages from the beginning.
    fn messages(&mut self) -> Vec<Vec<u8>> {
        let (mut messages, mut at) = (Vec::new(), 0);
        loop {
            // Empty lines between messages keep the connection alive (RFC 5626 section 3.5.1).
            let rest = &self.bytes[at..];
            at += rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            match framing(&self.bytes[at..]) {
                Framing::Complete(length) => {
                    messages.push(self.bytes[at..at + length].to_vec());
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

    fn record(stream: &mut SipStream, sequence: u32, bytes: &[u8]) -> Vec<Vec<u8>> {
        stream.record(&segment(sequence, bytes), bytes)
    }

    #[test]
    fn stream_continues_after_bytes_that_were_not_captured() {
        let all = messages();
        let mut stream = SipStream::default();
        assert_eq!(record(&mut stream, 0, &all[3]), &all[3..4]);
        // A segment of which the capture has half.
        let half = &all[4][..10];
        assert!(stream.record(&segment(100, &all[4]), half).is_empty());
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
    fn connections_with_the_same_ports_are_separate() {
        let all = messages();
        let mut stream = SipStream::default();
        record(&mut stream, 3_000_000_000, &all[1]);
        let syn = TcpSegment { syn: true, ..segment(999, b"") };
        assert!(stream.record(&syn, b"").is_empty());
        assert_eq!(record(&mut stream, 1000, &all[2]), &all[2..3]);
        // The SYN of the third was not captured.
        assert_eq!(record(&mut stream, u32::MAX - 5_000_000, &all[3]), &all[3..4]);
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
