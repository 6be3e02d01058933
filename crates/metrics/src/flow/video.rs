//! Media delivery index of a video stream of unknown rate.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use wirestamp_clock::{Span, Time, Utc};

use super::delay_factor::{DelayFactor, INTERVAL};
use super::gap_losses::LossChange;
use crate::numeric::{count_to_f64, nanos_to_f64};

/// Bytes of an MPEG transport packet (ISO/IEC 13818-1). An RTP packet carries several.
const TRANSPORT_PACKET: u32 = 188;

/// Max intervals kept, whose losses may turn out to be the capture's.
const MAX_KEPT: usize = 60;

/// Media delivery index (RFC 4445), at the mean rate by the stream's own timestamps, which the network cannot change:
/// first over one second, then over the stream so far. Lost packets are assumed to be as large as received ones. Losses
/// count from the first packet on, delay factors in intervals before which the media rate was known.
#[derive(Clone, Debug, Default)]
pub(super) struct Video {
    /// Media time of the first packet.
    first: Option<Time<Utc>>,
    packets: u64,
    bytes: u64,
    /// Packets sent, by sequence numbers.
    sent: u64,
    /// Media packets in one RTP packet.
    each: u64,
    delay_factor: Option<DelayFactor>,
    /// Whether the media rate was known before the open interval.
    is_rated: bool,
    /// Start of the first interval since the last restart of the sender.
    begin: Option<Time<Utc>>,
    /// The newest known media rate, also of before a restart.
    bytes_per_second: f64,
    /// The last interval is still open.
    newest_last: VecDeque<Interval>,
    /// Max values of intervals no longer kept.
    max_delay_ms: Option<f64>,
    max_loss: u64,
}

/// State of an interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    begin: Time<Utc>,
    delay_factor_ms: Option<f64>,
    /// Media packets lost or out of order.
    lost: u64,
    /// Packets lost by the capture.
    missed: u64,
}

/// Media delivery index of a stream (RFC 4445), over intervals of one second.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VideoReport {
    /// Media rate by the stream's timestamps, in bits per second.
    pub media_rate_bps: f64,
    /// Delay factor of the newest complete interval, in milliseconds; none where the media rate was unknown before it,
    /// and none where the capture lost packets, because their arrival is unknown.
    pub delay_factor_ms: Option<f64>,
    /// Max delay factor, in milliseconds.
    pub max_delay_factor_ms: Option<f64>,
    /// Media loss rate of the newest complete interval, in media packets per second: MPEG packets for transport
    /// streams, otherwise RTP packets. Excludes capture losses.
    pub loss_rate: f64,
    /// Max media loss rate, in media packets per second. Includes the newest interval, also if it is incomplete.
    pub max_loss_rate: f64,
}

/// Fields of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct VideoPacket {
    pub(super) arrival: Time<Utc>,
    /// Payload in bytes.
    pub(super) bytes: u32,
    /// Packets missing before it, or 1 if it is out of order.
    pub(super) lost: u64,
    /// Packets sent since the previous ones, by its number: itself and those missing.
    pub(super) sent: u64,
    /// Whether the payload is part of an MPEG transport stream.
    pub(super) transport_stream: bool,
    /// Time by the stream's timestamps, from an unknown zero.
    pub(super) media_time: Time<Utc>,
}

impl Video {
    /// Records the next packet, in the order of arrival.
    pub(super) fn record(&mut self, packet: &VideoPacket) {
        self.each = if packet.transport_stream {
            u64::from(packet.bytes / TRANSPORT_PACKET).max(1)
        } else {
            1
        };
        let elapsed = packet.media_time - *self.first.get_or_insert(packet.media_time);
        let rate = self.rate(elapsed);
        self.packets += 1;
        self.sent += packet.sent;
        self.bytes += u64::from(packet.bytes);
        let delay_factor = self.delay_factor.get_or_insert(DelayFactor::new(0.0));
        let ended_ms = delay_factor.record(packet.arrival, packet.bytes).flatten();
        let was_rated = delay_factor.bytes_per_second > 0.0;
        let open = self.newest_last.back_mut().filter(|_| self.begin.is_some());
        let begins = open.as_ref().is_none_or(|it| packet.arrival - it.begin >= INTERVAL);
        if rate > 0.0 && (begins || !was_rated) {
            delay_factor.bytes_per_second = rate;
            self.bytes_per_second = rate;
        }
        if begins {
            if let Some(open) = open.filter(|_| self.is_rated) {
                open.delay_factor_ms = ended_ms;
            }
            // The first packet of the interval was recorded at the rate until now.
            self.is_rated = was_rated;
            self.begin_interval(packet.arrival);
        }
        if let Some(interval) = self.newest_last.back_mut() {
            interval.lost += packet.lost.saturating_mul(self.each);
        }
    }

    /// Begins again after a restart of the sender. The intervals so far remain.
    pub(super) fn restart(&mut self) {
        let Self { bytes_per_second, newest_last, max_delay_ms, max_loss, .. } =
            std::mem::take(self);
        *self = Self { bytes_per_second, newest_last, max_delay_ms, max_loss, ..Self::default() };
    }

    /// Applies a correction of the losses in a gap since the last restart of the sender.
    pub(super) fn correct(&mut self, change: &LossChange) {
        let LossChange { before, now, time } = change;
        if self.begin.is_none_or(|begin| *time < begin) {
            return;
        }
        let corrected = |count: u64, now, before| count.saturating_add(now).saturating_sub(before);
        let each = self.each;
        let of_then = self.newest_last.iter_mut().rfind(|it| it.begin <= *time);
        if let Some(Interval { lost, missed, .. }) = of_then {
            let media = |packets: u64| packets.saturating_mul(each);
            *lost = corrected(*lost, media(now.by_network), media(before.by_network));
            *missed = corrected(*missed, now.by_capture, before.by_capture);
        }
    }

    /// Begins the interval that has this time.
    fn begin_interval(&mut self, time: Time<Utc>) {
        let first = *self.begin.get_or_insert(time);
        let into = (time - first).as_nanos().rem_euclid(INTERVAL.as_nanos());
        let begin = time - Span::from_nanos(into);
        if self.newest_last.len() >= MAX_KEPT
            && let Some(oldest) = self.newest_last.pop_front()
        {
            self.max_delay_ms = max_of(self.max_delay_ms, oldest.delay_factor());
            self.max_loss = self.max_loss.max(oldest.lost);
        }
        self.newest_last.push_back(Interval { begin, delay_factor_ms: None, lost: 0, missed: 0 });
    }

    /// Media rate in bytes per second up to a packet `elapsed` after the first; 0 if it is unknown, as in the first
    /// second.
    fn rate(&self, elapsed: Span) -> f64 {
        if elapsed < INTERVAL || self.packets == 0 {
            return 0.0;
        }
        let seconds = nanos_to_f64(elapsed.as_nanos()) / 1e9;
        let each = count_to_f64(self.bytes) / count_to_f64(self.packets);
        each * count_to_f64(self.sent) / seconds
    }

    /// The index; none before the first complete interval, and while the media rate is unknown.
    pub(super) fn report(&self) -> Option<VideoReport> {
        let newest = self.newest_last.iter().nth_back(1).filter(|_| self.bytes_per_second > 0.0)?;
        let intervals = || self.newest_last.iter();
        let max_delay_ms = intervals().map(Interval::delay_factor).fold(self.max_delay_ms, max_of);
        let max_loss = intervals().map(|it| it.lost).fold(self.max_loss, u64::max);
        Some(VideoReport {
            media_rate_bps: 8.0 * self.bytes_per_second,
            delay_factor_ms: newest.delay_factor(),
            max_delay_factor_ms: max_delay_ms,
            loss_rate: per_second(newest.lost),
            max_loss_rate: per_second(max_loss),
        })
    }
}

impl Interval {
    /// Delay factor; none where the capture lost packets, because the buffer model lacks them.
    fn delay_factor(&self) -> Option<f64> {
        self.delay_factor_ms.filter(|_| self.missed == 0)
    }
}

/// Rate of a count per interval.
fn per_second(count: u64) -> f64 {
    count_to_f64(count) * 1e9 / nanos_to_f64(INTERVAL.as_nanos())
}

fn max_of(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records packets of 1000 bytes: arrival and media time in milliseconds.
    fn record(video: &mut Video, packets: impl IntoIterator<Item = (i64, i64)>) {
        for (arrival, media_time) in packets {
            let [arrival, media_time] =
                [arrival, media_time].map(|it| Time::from_nanos(0) + Span::from_millis(it));
            let packet = VideoPacket {
                arrival,
                bytes: 1000,
                lost: 0,
                sent: 1,
                transport_stream: false,
                media_time,
            };
            video.record(&packet);
        }
    }

    #[test]
    fn rate_is_that_since_the_first_packet() {
        let mut video = Video::default();
        record(&mut video, (0..500).map(|it| (it * 10, 1_000_000 + it * 10)));
        let rate = video.report().expect("whole intervals").media_rate_bps;
        assert!((rate / 800_000.0 - 1.0).abs() < 1e-9, "{rate}");
    }

    #[test]
    fn index_continues_where_timestamps_jump_back() {
        let mut video = Video::default();
        record(&mut video, (0..500).map(|it| (it * 10, it * 10)));
        // Before the first packet for two seconds, where the rate is unknown.
        record(&mut video, (500..700).map(|it| (it * 10, it * 10 - 7000)));
        assert!(video.report().is_some_and(|it| it.media_rate_bps > 0.0));
        record(&mut video, (700..1000).map(|it| (it * 10, it * 10)));
        let found = video.report().expect("whole intervals");
        assert!((found.media_rate_bps / 800_000.0 - 1.0).abs() < 1e-9, "{found:?}");
        assert!(found.delay_factor_ms.is_some());
    }

    #[test]
    fn packets_of_one_time_have_no_index_until_the_time_advances() {
        let mut video = Video::default();
        record(&mut video, (0..300).map(|it| (it * 10, 0)));
        assert_eq!(video.report(), None);
        record(&mut video, (300..700).map(|it| (it * 10, it * 10)));
        assert!(video.report().is_some_and(|it| it.delay_factor_ms.is_some()));
    }
}
