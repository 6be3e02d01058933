//! Digits that a caller dials during a call (DTMF): telephone events of RTP.

/// Max digits that are kept.
const MAX_DIGITS: usize = 64;

/// Digits of a stream, in the order of their timestamps.
#[derive(Clone, Debug, Default)]
pub(super) struct Digits {
    /// The timestamp of the last event, which all its packets have (RFC 4733 section 2.2.1).
    last: Option<u32>,
    pub(super) text: String,
}

impl Digits {
    /// The next packets have timestamps of their own.
    pub(super) fn restart(&mut self) {
        self.last = None;
    }

    /// Records a packet of an event.
    pub(super) fn record(&mut self, event: u8, timestamp: u32) {
        let advance = self.last.map(|last| timestamp.wrapping_sub(last));
        if advance.is_some_and(|advance| advance == 0 || advance >= 1 << 31) {
            return;
        }
        self.last = Some(timestamp);
        if self.text.len() < MAX_DIGITS {
            self.text.extend(digit(event));
        }
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
            digits.record(event, timestamp);
        }
        assert_eq!(digits.text, "12#D");
        (0..100).for_each(|number| digits.record(0, 8000 + number));
        assert_eq!(digits.text.len(), MAX_DIGITS);
    }
}
