//! De-jitter buffer of an assumed receiver.

#[cfg(test)]
mod long_streams;
mod playout;

use std::fmt::{self, Display};
use std::str::FromStr;

use wirestamp_clock::Span;

pub(crate) use playout::{Playout, Timeliness};

/// The longest fixed buffer, in milliseconds.
const LONGEST_MS: i64 = 5_000;

/// When a receiver plays a packet. A packet that arrives later counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterBuffer {
    /// This time after the fastest packets would be played. The buffer follows a lasting change of the delay slowly.
    Fixed(Span),
    /// At the mean delay plus four times its mean deviation, both from an exponential average: algorithm 1 of Ramjee,
    /// Kurose, Towsley and Schulzrinne, "Adaptive playout mechanisms for packetized audio applications in wide-area
    /// networks", INFOCOM 1994. There it is applied at the beginning of a talk spurt, here at each packet, as receivers do
    /// that stretch and shorten speech.
    Adaptive,
}

impl JitterBuffer {
    /// Length of a fixed buffer.
    #[must_use]
    pub const fn fixed(self) -> Option<Span> {
        match self {
            Self::Fixed(length) => Some(length),
            Self::Adaptive => None,
        }
    }
}

impl Default for JitterBuffer {
    /// A buffer of 60 ms.
    fn default() -> Self {
        Self::Fixed(Span::from_millis(60))
    }
}

impl Display for JitterBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(length) => write!(f, "{} ms", length.as_nanos() / 1_000_000),
            Self::Adaptive => f.write_str("adaptive length"),
        }
    }
}

impl FromStr for JitterBuffer {
    type Err = String;

    /// Parses milliseconds, or `adaptive`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "adaptive" {
            return Ok(Self::Adaptive);
        }
        let millis = text.parse().ok().filter(|millis| (0..=LONGEST_MS).contains(millis));
        millis.map(|millis| Self::Fixed(Span::from_millis(millis))).ok_or_else(|| {
            format!("it is a number of milliseconds from 0 to {LONGEST_MS}, or adaptive")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_the_adaptive_buffer_are_parsed() {
        assert_eq!("60".parse(), Ok(JitterBuffer::default()));
        assert_eq!("0".parse(), Ok(JitterBuffer::Fixed(Span::ZERO)));
        assert_eq!("adaptive".parse(), Ok(JitterBuffer::Adaptive));
        for wrong in ["", "-1", "5001", "60ms", "Adaptive"] {
            assert!(wrong.parse::<JitterBuffer>().unwrap_err().contains("adaptive"), "{wrong}");
        }
        assert_eq!(JitterBuffer::default().to_string(), "60 ms");
    }
}
