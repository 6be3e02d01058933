//! A view over the datagrams of iperf3's UDP test.
//!
//! Each begins with the sender's clock and a count; the rest is padding. The layout is that of `iperf_udp_send` in
//! iperf's `src/iperf_udp.c`, as of version 3.21: 32-bit numbers, big-endian.
//!
//! ```text
//!  0         4         8         12
//!  | seconds | micros  | count   | ...
//!  | seconds | micros  | count of 64 bits  | ...     with --udp-counters-64bit
//! ```
//!
//! The datagrams of 4 bytes that open a test have another layout.

mod recogniser;

pub use recogniser::Recogniser;

const MICROS_PER_SECOND: u32 = 1_000_000;

/// Width of the counts of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// 32 bits, the default.
    Bits32,
    /// 64 bits (iperf3(1), `--udp-counters-64bit`).
    Bits64,
}

/// Head of an iperf3 datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iperf3 {
    /// Send time, in microseconds of the sender's clock. Since iperf 3.7 that is its monotonic clock, which counts
    /// from the boot of the machine; only differences are meaningful.
    pub sent_micros: u64,
    /// Number of the datagram in its test, from 1.
    pub count: u64,
}

impl Iperf3 {
    /// Parses the head of a datagram's payload, with the width of counts that [`Recogniser`] found.
    ///
    /// `None` if it is too short, a second has a million microseconds or more, or the count is 0: tests count from 1.
    #[must_use]
    pub fn parse(payload: &[u8], counter: Counter) -> Option<Self> {
        let word = |offset: usize| Some(u32::from_be_bytes(*payload.get(offset..)?.first_chunk()?));
        let (seconds, micros, count) = (word(0)?, word(4)?, word(8)?);
        let count = match counter {
            Counter::Bits32 => count.into(),
            Counter::Bits64 => u64::from(count) << 32 | u64::from(word(12)?),
        };
        let sent_micros = u64::from(seconds) * u64::from(MICROS_PER_SECOND) + u64::from(micros);
        (micros < MICROS_PER_SECOND && count > 0).then_some(Self { sent_micros, count })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Seconds, microseconds and count as iperf3 writes them.
    pub(super) fn payload(sent_micros: u64, count: u64, counter: Counter) -> Vec<u8> {
        let word = |number: u64| u32::try_from(number).unwrap().to_be_bytes();
        let clock = [word(sent_micros / 1_000_000), word(sent_micros % 1_000_000)].concat();
        let count = match counter {
            Counter::Bits32 => word(count).to_vec(),
            Counter::Bits64 => count.to_be_bytes().to_vec(),
        };
        [clock, count, b"0123456789".to_vec()].concat()
    }

    #[test]
    fn invalid_heads_are_rejected() {
        let parse = |bytes: &[u8]| Iperf3::parse(bytes, Counter::Bits32);
        let good = payload(7_000_001, 3, Counter::Bits32);
        assert_eq!(parse(&good), Some(Iperf3 { sent_micros: 7_000_001, count: 3 }));
        assert_eq!(parse(&good[..11]), None);
        assert_eq!(Iperf3::parse(&good[..15], Counter::Bits64), None);
        assert_eq!(parse(&payload(7, 0, Counter::Bits32)), None);
        let late = [0, 0, 0, 1, 0, 0x0f, 0x42, 0x40, 0, 0, 0, 1];
        assert_eq!(parse(&late), None);
    }

    proptest! {
        #[test]
        fn written_heads_are_parsed(
            seconds: u32, micros in 0_u64..1_000_000, count in 1_u64.., wide: bool,
        ) {
            let sent_micros = u64::from(seconds) * 1_000_000 + micros;
            let (counter, count) = match wide {
                true => (Counter::Bits64, count),
                false => (Counter::Bits32, count % u64::from(u32::MAX) + 1),
            };
            let read = Iperf3::parse(&payload(sent_micros, count, counter), counter);
            prop_assert_eq!(read, Some(Iperf3 { sent_micros, count }));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..32)) {
            let _ = Iperf3::parse(&bytes, Counter::Bits32);
            let _ = Iperf3::parse(&bytes, Counter::Bits64);
        }
    }
}
