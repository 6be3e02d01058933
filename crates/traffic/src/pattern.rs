//! Frame size, interval and bursts of a stream.

use thiserror::Error;
use wirestamp_clock::Span;

use crate::payload::SEQUENCE_LOW_BYTE_OFFSET;
use crate::{Payload, rtp};

/// Max frame size, without check sequence: 1500 bytes and the Ethernet header (IEEE 802.3).
const MAX_FRAME_BYTES: u16 = 1514;

/// Ethernet header and UDP header (RFC 768).
const ETHERNET_AND_UDP: usize = 14 + 8;
/// IPv4 header without options (RFC 791) and IPv6 header (RFC 8200).
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

/// Duration of a byte at 1 Gbit/s, the unit of the paper's gaps.
const NANOS_PER_BYTE: i64 = 8;

/// Traffic pattern: `burst` packets, `spacing` apart, every `interval`.
///
/// The frame size counts Ethernet header, IP, UDP and payload, without check sequence and preamble,
/// as captures show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    name: String,
    frame_bytes: u16,
    interval: Span,
    burst: u32,
    spacing: Span,
    /// Encoding of the RTP packets that it consists of, if it does.
    rtp: Option<rtp::Encoding>,
}

/// An invalid pattern.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatternError {
    /// The frame is too short for a [`Payload`], or longer than an Ethernet frame.
    #[error(
        "cannot send a frame of {frame_bytes} bytes; use {min} to {MAX_FRAME_BYTES} over {over}"
    )]
    FrameSize {
        /// The requested size.
        frame_bytes: u16,
        /// The min size.
        min: usize,
        /// The IP version of `min`.
        over: &'static str,
    },
    /// A negative time.
    #[error("an interval or spacing of {0} ns is negative; use 0 (back to back) or more")]
    Negative(i64),
    /// A burst without packets.
    #[error("a burst of 0 packets sends nothing; use 1 or more")]
    EmptyBurst,
    /// A burst would overlap the next one.
    #[error(
        "a burst lasts {duration} ns, longer than the interval of {interval} ns between bursts"
    )]
    BurstTooLong {
        /// Time from the first to the last packet of the burst, in nanoseconds.
        duration: i64,
        /// Time from burst to burst, in nanoseconds.
        interval: i64,
    },
}

impl Pattern {
    /// A pattern with one frame of `frame_bytes` every `interval`; 0 sends back to back.
    ///
    /// # Errors
    /// [`PatternError`] when the frame is too short for a [`Payload`] over IPv4 or longer than 1514
    /// bytes, or the interval is negative.
    pub fn new(
        name: impl Into<String>,
        frame_bytes: u16,
        interval: Span,
    ) -> Result<Self, PatternError> {
        let (name, spacing) = (name.into(), Span::ZERO);
        let pattern = Self { name, frame_bytes, interval, burst: 1, spacing, rtp: None };
        pattern.payload_bytes(false)?;
        not_negative(interval)?;
        Ok(pattern)
    }

    /// The same pattern with bursts of `packets` frames, `spacing` apart; 0 sends them back to back.
    ///
    /// # Errors
    /// [`PatternError`] when the burst is empty or longer than the interval.
    pub fn with_burst(mut self, packets: u32, spacing: Span) -> Result<Self, PatternError> {
        not_negative(spacing)?;
        let gaps = packets.checked_sub(1).ok_or(PatternError::EmptyBurst)?;
        let duration = spacing.as_nanos().saturating_mul(gaps.into());
        let interval = self.interval.as_nanos();
        if duration > interval {
            return Err(PatternError::BurstTooLong { duration, interval });
        }
        self.burst = packets;
        self.spacing = spacing;
        Ok(self)
    }

    /// One direction of a G.729 call: 140-byte frames with gaps of 2,499,860 bytes at 1 Gbit/s, one
    /// frame every 20 ms (Orosz and Skopko 2013, section V.A, pattern 1). The frames are RTP, except those of
    /// [`crate::live`].
    #[must_use]
    pub fn voip() -> Self {
        Self::with_gap("voip", 140, 2_499_860, rtp::Encoding::G729)
    }

    /// An HD video stream: 1368-byte frames with gaps of 169,631 bytes at 1 Gbit/s, one frame every
    /// 1,367,992 ns (Orosz and Skopko 2013, section V.A, pattern 2). The frames are RTP with an MPEG transport stream,
    /// except those of [`crate::live`].
    #[must_use]
    pub fn hd_video() -> Self {
        Self::with_gap("hd-video", 1368, 169_631, rtp::Encoding::MP2T)
    }

    /// The paper's pattern with this name, `voip` or `hd-video`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::voip(), Self::hd_video()].into_iter().find(|pattern| pattern.name == name)
    }

    /// A pattern as the paper defines it: the interval is the frame plus a gap in bytes.
    fn with_gap(name: &str, frame_bytes: u16, gap_bytes: i64, encoding: rtp::Encoding) -> Self {
        let interval = Span::from_nanos((i64::from(frame_bytes) + gap_bytes) * NANOS_PER_BYTE);
        let (name, spacing, rtp) = (name.into(), Span::ZERO, Some(encoding));
        Self { name, frame_bytes, interval, burst: 1, spacing, rtp }
    }

    /// The name used in arguments and reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of a frame, without check sequence and preamble.
    #[must_use]
    pub const fn frame_bytes(&self) -> u16 {
        self.frame_bytes
    }

    /// Time between packets, or between the starts of bursts.
    #[must_use]
    pub const fn interval(&self) -> Span {
        self.interval
    }

    /// Packets per burst; 1 without bursts.
    #[must_use]
    pub const fn burst(&self) -> u32 {
        self.burst
    }

    /// Encoding of the RTP packets that it consists of, if it does.
    pub(crate) const fn rtp(&self) -> Option<rtp::Encoding> {
        self.rtp
    }

    /// Offset of the sequence number's lowest byte in the UDP payload, for filters that select every n-th packet.
    #[must_use]
    pub const fn sequence_low_byte_offset(&self) -> u8 {
        match self.rtp {
            Some(_) => rtp::SEQUENCE_LOW_BYTE_OFFSET,
            None => SEQUENCE_LOW_BYTE_OFFSET,
        }
    }

    /// Length of the UDP payload in bytes, with the RTP header if there is one.
    ///
    /// # Errors
    /// [`PatternError::FrameSize`] when it is too short for a [`Payload`].
    pub(crate) fn payload_bytes(&self, ipv6: bool) -> Result<usize, PatternError> {
        let (ip_header, over) = if ipv6 { (IPV6_HEADER, "IPv6") } else { (IPV4_HEADER, "IPv4") };
        let headers = ETHERNET_AND_UDP + ip_header;
        let min = headers + Payload::MIN_BYTES;
        let frame_bytes = self.frame_bytes;
        if usize::from(frame_bytes) < min || frame_bytes > MAX_FRAME_BYTES {
            return Err(PatternError::FrameSize { frame_bytes, min, over });
        }
        Ok(usize::from(frame_bytes) - headers)
    }

    /// Due time of packet `sequence` after the stream's start. Saturates after 292 years.
    #[must_use]
    pub fn offset(&self, sequence: u64) -> Span {
        let burst = u64::from(self.burst);
        let times = |count: u64, span: Span| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            Span::from_nanos(span.as_nanos().saturating_mul(count))
        };
        times(sequence / burst, self.interval) + times(sequence % burst, self.spacing)
    }

    /// Number of packets due before `duration` has passed; `u64::MAX` for an endless back-to-back
    /// stream.
    #[must_use]
    pub fn packets_in(&self, duration: Span) -> u64 {
        // Due times ascend with the sequence number: binary search for the first one that is late.
        let (mut due, mut late) = (0, u64::MAX);
        while due < late {
            let middle = due + (late - due) / 2;
            if self.offset(middle) < duration {
                due = middle + 1;
            } else {
                late = middle;
            }
        }
        due
    }
}

const fn not_negative(span: Span) -> Result<(), PatternError> {
    if span.as_nanos() < 0 { Err(PatternError::Negative(span.as_nanos())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn named_patterns_have_the_papers_intervals() {
        assert_eq!(Pattern::voip().interval(), Span::from_millis(20));
        assert_eq!(Pattern::hd_video().interval(), Span::from_nanos(1_367_992));
        assert_eq!(Pattern::voip().payload_bytes(false), Ok(98));
        assert_eq!(Pattern::hd_video().payload_bytes(true), Ok(1306));
        assert_eq!(Pattern::by_name("hd-video"), Some(Pattern::hd_video()));
        assert_eq!(Pattern::by_name("telegraph"), None);
    }

    #[test]
    fn frames_too_short_for_the_payload_are_rejected() {
        let pattern = |bytes| Pattern::new("free", bytes, Span::from_millis(1));
        assert_eq!(pattern(74).unwrap().payload_bytes(false), Ok(32));
        assert!(matches!(pattern(73), Err(PatternError::FrameSize { min: 74, .. })));
        assert!(matches!(
            pattern(93).unwrap().payload_bytes(true),
            Err(PatternError::FrameSize { min: 94, .. })
        ));
        assert_eq!(pattern(1514).unwrap().payload_bytes(false), Ok(1472));
        assert!(pattern(1515).is_err());
    }

    #[test]
    fn burst_repeats_every_interval() {
        let pattern = Pattern::new("free", 500, Span::from_nanos(1000)).unwrap();
        let burst = pattern.clone().with_burst(3, Span::from_nanos(10)).unwrap();
        let offsets: Vec<_> = (0..5).map(|k| burst.offset(k).as_nanos()).collect();
        assert_eq!(offsets, [0, 10, 20, 1000, 1010]);
        assert_eq!(pattern.clone().with_burst(0, Span::ZERO), Err(PatternError::EmptyBurst));
        assert!(matches!(
            pattern.with_burst(3, Span::from_nanos(501)),
            Err(PatternError::BurstTooLong { duration: 1002, interval: 1000 })
        ));
    }

    proptest! {
        #[test]
        fn packets_in_counts_the_due_packets(
            interval in 1_i64..50, burst in 1_u32..6, spacing in 0_i64..10, duration in 0_i64..300,
        ) {
            let pattern = Pattern::new("free", 500, Span::from_nanos(interval)).unwrap();
            let Ok(pattern) = pattern.with_burst(burst, Span::from_nanos(spacing)) else {
                return Ok(());
            };
            let due = (0_u64..).take_while(|&k| pattern.offset(k).as_nanos() < duration).count();
            let counted = pattern.packets_in(Span::from_nanos(duration));
            prop_assert_eq!(counted, u64::try_from(due).unwrap());
        }
    }
}
