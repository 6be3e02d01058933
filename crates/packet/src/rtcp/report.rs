//! Parts of sender and receiver reports (RFC 3550 section 6.4).

/// Bytes of a report block, and of the sender's part of an SR.
pub(super) const BLOCK_BYTES: usize = 24;
const SENDER_INFO_BYTES: usize = 20;

/// A receiver's report on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportBlock {
    /// SSRC of the stream.
    pub ssrc: u32,
    /// Share of packets lost since the previous report, in units of 1/256.
    pub fraction_lost: u8,
    /// Packets expected minus packets received since the receiver began, 24 bits with a sign: negative if there are more
    /// duplicates than losses.
    pub cumulative_lost: i32,
    /// Highest sequence number received, and in the upper 16 bits how often it wrapped since the receiver began.
    pub extended_highest_sequence: u32,
    /// Interarrival jitter, in units of the stream's RTP clock.
    pub jitter: u32,
    /// LSR: the middle 32 bits of the NTP timestamp in the sender's last SR; 0 if none arrived.
    pub last_sender_report: u32,
    /// DLSR: time from the arrival of that SR to this report, in units of 1/65536 s.
    pub delay_since_last_sender_report: u32,
}

impl ReportBlock {
    pub(super) fn of(bytes: &[u8; BLOCK_BYTES]) -> Option<Self> {
        let [ssrc, [fraction_lost, high, middle, low], highest, jitter, last, delay] =
            *bytes.as_chunks::<4>().0
        else {
            return None;
        };
        // In the upper three bytes, the sign is at its place; the shift back keeps it.
        let cumulative_lost = i32::from_be_bytes([high, middle, low, 0]) >> 8;
        Some(Self {
            ssrc: u32::from_be_bytes(ssrc),
            fraction_lost,
            cumulative_lost,
            extended_highest_sequence: u32::from_be_bytes(highest),
            jitter: u32::from_be_bytes(jitter),
            last_sender_report: u32::from_be_bytes(last),
            delay_since_last_sender_report: u32::from_be_bytes(delay),
        })
    }
}

/// Clock and counts of a sender in its SR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// NTP timestamp: seconds since 1900, and their fraction in units of 2^-32 s. Both are 0 if the sender has no clock.
    pub ntp_seconds: u32,
    /// See [`Self::ntp_seconds`].
    pub ntp_fraction: u32,
    /// The same time by the RTP clock.
    pub rtp_timestamp: u32,
    /// RTP packets sent.
    pub packets: u32,
    /// Bytes of payload sent, without headers and padding.
    pub bytes: u32,
}

impl SenderInfo {
    /// The middle 32 bits of the NTP timestamp, which the receiver returns as LSR.
    #[must_use]
    pub const fn ntp_middle(&self) -> u32 {
        middle(self.ntp_seconds, self.ntp_fraction)
    }

    pub(super) fn of(bytes: &[u8; SENDER_INFO_BYTES]) -> Option<Self> {
        let [ntp_seconds, ntp_fraction, rtp_timestamp, packets, bytes] = *bytes.as_chunks::<4>().0
        else {
            return None;
        };
        Some(Self {
            ntp_seconds: u32::from_be_bytes(ntp_seconds),
            ntp_fraction: u32::from_be_bytes(ntp_fraction),
            rtp_timestamp: u32::from_be_bytes(rtp_timestamp),
            packets: u32::from_be_bytes(packets),
            bytes: u32::from_be_bytes(bytes),
        })
    }
}

/// The middle 32 bits of an NTP timestamp: 16 bits of seconds, 16 of their fraction.
pub(super) const fn middle(seconds: u32, fraction: u32) -> u32 {
    seconds << 16 | fraction >> 16
}
