//! The media delivery index of a video stream whose rate is not known beforehand.

use serde::Serialize;
use wirestamp_clock::{Span, Time, Utc};

use crate::distribution::{count_to_f64, nanos_to_f64};
use crate::{DeliveryIndex, MediaDelivery, MediaPacket, MediaRate};

/// An index is taken over one second, which serves streams of 1 Mbit/s and up (RFC 4445 section 3.1).
const INTERVAL: Span = Span::from_secs(1);
/// Bytes of a packet of an MPEG transport stream (ISO/IEC 13818-1), of which RTP carries several.
const TRANSPORT_PACKET: u32 = 188;

/// The media delivery index (RFC 4445), at the mean rate by the stream's own timestamps, which the
/// network cannot change: over the first second to begin with, then over all of the stream so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Video {
    bytes: u64,
    delivery: Option<MediaDelivery>,
    newest: Option<DeliveryIndex>,
    worst_delay_ms: Option<f64>,
    worst_loss_rate: f64,
}

/// The media delivery index of a stream (RFC 4445), over intervals of one second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct VideoReport {
    /// The rate that it was taken for, by the stream's timestamps, in bits per second.
    pub media_rate_bps: f64,
    /// The delay factor of the newest whole interval, in milliseconds; none in the first.
    pub delay_factor_ms: Option<f64>,
    /// The greatest delay factor.
    pub max_delay_factor_ms: Option<f64>,
    /// The media loss rate of the newest whole interval, in media packets per second: packets of
    /// MPEG where a stream of them is carried, and of RTP otherwise.
    pub loss_rate: f64,
    /// The greatest media loss rate.
    pub max_loss_rate: f64,
}

/// What is needed of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct VideoPacket {
    pub(super) arrival: Time<Utc>,
    /// Payload in bytes.
    pub(super) bytes: u32,
    /// Packets that were seen to be missing before it, or 1 if it is out of order.
    pub(super) lost: u64,
    /// Whether the payload is a part of an MPEG transport stream.
    pub(super) transport_stream: bool,
    /// How far the timestamps have gone since the first packet.
    pub(super) elapsed: Span,
}

impl Video {
    /// Takes the next packet, in the order of arrival.
    pub(super) fn record(&mut self, packet: &VideoPacket) {
        let each =
            if packet.transport_stream { (packet.bytes / TRANSPORT_PACKET).max(1) } else { 1 };
        let lost = packet.lost.saturating_mul(each.into());
        let rate = self.rate(packet.elapsed);
        self.bytes += u64::from(packet.bytes);
        let Some(delivery) = &mut self.delivery else {
            if packet.elapsed >= INTERVAL {
                let rate = MediaRate { bytes_per_second: rate, interval: INTERVAL };
                self.delivery = Some(MediaDelivery::new(rate));
            }
            return;
        };
        let packet = MediaPacket { arrival: packet.arrival, bytes: packet.bytes, lost };
        if let Some(index) = delivery.record(&packet) {
            delivery.set_rate(rate);
            self.newest = Some(index);
            self.worst_delay_ms = greater(self.worst_delay_ms, index.delay_factor_ms);
            self.worst_loss_rate = self.worst_loss_rate.max(index.loss_rate);
        }
    }

    /// Bytes per second of media up to a packet that comes `elapsed` after the first.
    fn rate(&self, elapsed: Span) -> f64 {
        let seconds = nanos_to_f64(elapsed.as_nanos()) / 1e9;
        if seconds > 0.0 { count_to_f64(self.bytes) / seconds } else { 0.0 }
    }

    pub(super) fn report(&self) -> Option<VideoReport> {
        let newest = self.newest?;
        Some(VideoReport {
            media_rate_bps: 8.0 * self.delivery?.rate().bytes_per_second,
            delay_factor_ms: newest.delay_factor_ms,
            max_delay_factor_ms: self.worst_delay_ms,
            loss_rate: newest.loss_rate,
            max_loss_rate: self.worst_loss_rate,
        })
    }
}

fn greater(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}
