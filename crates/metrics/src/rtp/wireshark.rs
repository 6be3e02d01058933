//! RTP figures as Wireshark has them.

use std::num::NonZeroU32;

use wirestamp_clock::Span;

use super::jitter::nominal_nanos;
use super::packet::Packet;
use crate::numeric::{count_to_f64, nanos_to_f64};

/// The payload types of comfort noise: that of RFC 3551 table 4, and that of its drafts.
const COMFORT_NOISE: [u8; 2] = [13, 19];

/// The payload types that RFC 3551 reserves and Wireshark gives the rate they once had: 1 and 2, which
/// RFC 1890 section 6 bound to 1016 and G721, and 19, which drafts of RFC 3551 bound to comfort noise.
const RESERVED: [u8; 3] = [1, 2, 19];
const RATE_OF_RESERVED: NonZeroU32 = NonZeroU32::new(8000).expect("not 0");

/// The figures that `tshark -z rtp,streams` and Wireshark's stream analysis print (as seen of version
/// 4.0), so that they can be laid side by side.
///
/// The jitter is that of RFC 3550, but the beginning of a talk spurt, that is a packet with the marker,
/// and comfort noise and the packet after it, are in none of the maxima and means, though they
/// change the jitter. The mean jitter is that of the smoothed values, in which a packet left out takes
/// the weight, though not the value, of one before. Loss is counted up to the last packet, not
/// up to the highest number.
///
/// Wireshark cuts clock rates to whole kilohertz; this does not, so the figures of 11.025, 22.05 and
/// 44.1 kHz differ. Neither does this leave out packets that were sent before the first one seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Analysis {
    previous: Option<Packet>,
    packets: u64,
    first_number: i64,
    /// The extended number of the last packet, whichever that was.
    last_number: i64,
    jitter: f64,
    mean_jitter: f64,
    max_jitter: f64,
    max_delta: Span,
}

impl Analysis {
    /// Takes the next packet, in the order of arrival.
    pub fn record(&mut self, packet: &Packet) {
        match self.previous.replace(*packet) {
            None => {
                self.first_number = i64::from(packet.sequence);
                self.last_number = self.first_number;
            }
            Some(previous) => self.follow(&previous, packet),
        }
        self.packets += 1;
    }

    fn follow(&mut self, previous: &Packet, packet: &Packet) {
        let step = packet.sequence.wrapping_sub(previous.sequence).cast_signed();
        self.last_number += i64::from(step);

        let delta = packet.arrival - previous.arrival;
        let clock_rate = clock_rate(packet);
        if let Some(clock_rate) = clock_rate {
            let units = packet.timestamp.wrapping_sub(previous.timestamp).cast_signed();
            let difference = nanos_to_f64(delta.as_nanos()) - nominal_nanos(units, clock_rate);
            self.jitter = (15.0 * self.jitter + difference.abs()) / 16.0;
        }
        let talk_spurt = packet.marker || is_comfort_noise(packet) || is_comfort_noise(previous);
        if talk_spurt {
            return;
        }
        self.max_delta = self.max_delta.max(delta);
        if clock_rate.is_some() {
            self.max_jitter = self.max_jitter.max(self.jitter);
            let before = count_to_f64(self.packets - 1);
            self.mean_jitter = (self.mean_jitter * before + self.jitter) / (before + 1.0);
        }
    }

    /// Packets, copies included.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets from the first number to that of the last packet, less those that came. Negative where
    /// copies are more than losses, or where the last packet came late.
    #[must_use]
    pub fn lost(&self) -> i64 {
        if self.packets == 0 {
            return 0;
        }
        let expected = self.last_number - self.first_number + 1;
        expected.wrapping_sub_unsigned(self.packets)
    }

    /// The mean of the jitter, in nanoseconds.
    #[must_use]
    pub const fn mean_jitter(&self) -> f64 {
        self.mean_jitter
    }

    /// The greatest jitter, in nanoseconds.
    #[must_use]
    pub const fn max_jitter(&self) -> f64 {
        self.max_jitter
    }

    /// The longest time from one packet to the next in the same talk spurt.
    #[must_use]
    pub const fn max_delta(&self) -> Span {
        self.max_delta
    }
}

fn clock_rate(packet: &Packet) -> Option<NonZeroU32> {
    let reserved = RESERVED.contains(&packet.payload_type).then_some(RATE_OF_RESERVED);
    packet.clock_rate.or(reserved)
}

fn is_comfort_noise(packet: &Packet) -> bool {
    COMFORT_NOISE.contains(&packet.payload_type)
}
