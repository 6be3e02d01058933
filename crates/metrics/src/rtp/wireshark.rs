//! RTP figures as Wireshark computes them.

use std::num::NonZeroU32;

use wirestamp_clock::Span;

use super::Packet;
use super::jitter::nominal_nanos;
use crate::numeric::{count_to_f64, nanos_to_f64};

/// Payload types of comfort noise: RFC 3551 table 4, and its drafts.
const COMFORT_NOISE: [u8; 2] = [13, 19];

/// Payload types that RFC 3551 reserves and Wireshark gives their former rate: 1 and 2, which RFC 1890 section 6
/// assigned to 1016 and G721, and 19, which drafts of RFC 3551 assigned to comfort noise.
const RESERVED: [u8; 3] = [1, 2, 19];
const RATE_OF_RESERVED: NonZeroU32 = NonZeroU32::new(8000).expect("not 0");

/// Figures that `tshark -z rtp,streams` and Wireshark's stream analysis print (as of version 4.0), for comparison.
///
/// The jitter is that of RFC 3550, with these exceptions. The first packet of a talk spurt (with the marker), comfort
/// noise and the packet after it change the jitter, but are in none of the maxima and means. The mean jitter is that
/// of the smoothed values, in which an excluded packet adds the weight of one before, but not its value.
///
/// Two differences remain: Wireshark truncates clock rates to whole kilohertz, which changes the figures of 11.025,
/// 22.05 and 44.1 kHz, and excludes packets sent before the first one captured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Analysis {
    previous: Option<Packet>,
    packets: u64,
    jitter: f64,
    /// Mean jitter, in nanoseconds.
    pub mean_jitter: f64,
    /// Max jitter, in nanoseconds.
    pub max_jitter: f64,
    /// Max time between two packets of a talk spurt.
    pub max_delta: Span,
}

impl Analysis {
    /// Records the next packet, in the order of arrival.
    pub fn record(&mut self, packet: &Packet) {
        if let Some(previous) = self.previous.replace(*packet) {
            self.follow(&previous, packet);
        }
        self.packets += 1;
    }

    fn follow(&mut self, previous: &Packet, packet: &Packet) {
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
}

fn clock_rate(packet: &Packet) -> Option<NonZeroU32> {
    let reserved = RESERVED.contains(&packet.payload_type).then_some(RATE_OF_RESERVED);
    packet.clock_rate.or(reserved)
}

fn is_comfort_noise(packet: &Packet) -> bool {
    COMFORT_NOISE.contains(&packet.payload_type)
}
