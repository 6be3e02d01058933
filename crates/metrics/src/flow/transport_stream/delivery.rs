//! Media delivery index of a transport stream in plain UDP: RFC 4445.
//!
//! - Media rate: the constant bitrate by the clock references (`accuracy.rs`), with null packets. It is unknown at a variable
//!   bitrate, because the packets do not show when each is due.
//! - Delay factor: computed from the datagrams of an interval at whose begin the media rate was known.
//! - Media loss rate: packets missing by the continuity counters. They have 4 bits, so that 16 packets of a PID that are lost
//!   in a row do not show. Reordered datagrams count as losses, with more packets than they have. Null packets have no counter.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use wirestamp_clock::{Time, Utc};

use super::super::delay_factor::{DelayFactor, INTERVAL};
use super::super::loss_times::LossTimes;
use super::unknown::UnknownTransportStreamValue;
use crate::numeric::{count_to_f64, nanos_to_f64};

/// Max intervals kept, in which capture losses may still be reported.
const MAX_KEPT: usize = 60;

/// Media delivery index (RFC 4445) of a transport stream in plain UDP, over intervals of one second.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransportDeliveryReport {
    /// Media rate: the constant bitrate by the clock references (PCR), with null packets, in bits per second. Null at a variable
    /// bitrate.
    pub media_rate_bps: Option<f64>,
    /// Why the media rate is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_rate_unknown: Option<UnknownTransportStreamValue>,
    /// Delay factor of the newest complete interval, in milliseconds. Null where the media rate was unknown, and where the capture
    /// lost packets of any flow.
    pub delay_factor_ms: Option<f64>,
    /// Max delay factor, in milliseconds.
    pub max_delay_factor_ms: Option<f64>,
    /// Why the delay factor of the newest complete interval is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_factor_unknown: Option<UnknownTransportStreamValue>,
    /// Media loss rate of the newest complete interval, in packets of 188 bytes per second: those missing by the continuity
    /// counters. Does not contain 16 packets of a PID in a row; reordered datagrams count as losses. Null where the capture lost
    /// packets of any flow.
    pub loss_rate: Option<f64>,
    /// Max media loss rate, in packets of 188 bytes per second.
    pub max_loss_rate: Option<f64>,
    /// Why the media loss rate of the newest complete interval is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_rate_unknown: Option<UnknownTransportStreamValue>,
}

/// A datagram of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) time: Time<Utc>,
    pub(super) bytes: u32,
    /// Packets missing before it or in it.
    pub(super) lost: u64,
    /// Media rate in bytes per second.
    pub(super) rate: Option<f64>,
}

/// The media delivery index of a stream, interval by interval.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    delay_factor: DelayFactor,
    /// Whether the media rate was known before the open interval.
    is_rated: bool,
    begin: Option<Time<Utc>>,
    /// The last interval is still open.
    newest_last: VecDeque<Interval>,
    /// Max values of intervals no longer kept.
    max: Values,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    /// Its number, counting empty intervals.
    number: i64,
    /// Arrival of the last datagram before it, and of its last one.
    from: Time<Utc>,
    until: Time<Utc>,
    delay_factor_ms: Option<f64>,
    lost: u64,
}

/// Values of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    delay_factor_ms: Option<f64>,
    lost: Option<u64>,
}

impl Delivery {
    pub(super) const fn new() -> Self {
        Self {
            delay_factor: DelayFactor::new(0.0),
            is_rated: false,
            begin: None,
            newest_last: VecDeque::new(),
            max: Values { delay_factor_ms: None, lost: None },
        }
    }

    /// Records the next datagram, in the order of arrival.
    pub(super) fn record(&mut self, arrival: Arrival, losses: &LossTimes) {
        let Arrival { time, bytes, lost, rate } = arrival;
        let begin = *self.begin.get_or_insert(time);
        let number = (time - begin).as_nanos().div_euclid(INTERVAL.as_nanos());
        let ended = self.delay_factor.record(time, bytes);
        if self.newest_last.back().is_none_or(|open| number > open.number) {
            let mut from = time;
            if let Some(open) = self.newest_last.back_mut() {
                open.delay_factor_ms = ended.flatten().filter(|_| self.is_rated);
                from = open.until;
            }
            // The first datagram of the interval was recorded at the rate until now.
            self.is_rated = self.delay_factor.bytes_per_second > 0.0;
            self.delay_factor.bytes_per_second = rate.unwrap_or(0.0);
            self.begin_interval(
                Interval { number, from, until: time, delay_factor_ms: None, lost: 0 },
                losses,
            );
        }
        if let Some(open) = self.newest_last.back_mut() {
            open.lost = open.lost.saturating_add(lost);
            open.until = open.until.max(time);
        }
    }

    fn begin_interval(&mut self, interval: Interval, losses: &LossTimes) {
        if self.newest_last.len() >= MAX_KEPT
            && let Some(oldest) = self.newest_last.pop_front()
        {
            self.max = self.max.max(oldest.values(losses));
        }
        self.newest_last.push_back(interval);
    }

    /// The index at this media rate, or why the rate is unknown. None before the first complete interval.
    pub(super) fn report(
        &self,
        rate: Result<f64, UnknownTransportStreamValue>,
        losses: &LossTimes,
    ) -> Option<TransportDeliveryReport> {
        let newest = self.newest_last.iter().nth_back(1)?;
        let ended = self.newest_last.iter().rev().skip(1);
        let max = ended.fold(self.max, |max, it| max.max(it.values(losses)));
        let values = newest.values(losses);
        let capture_lost =
            values.lost.is_none().then_some(UnknownTransportStreamValue::CaptureLost);
        let no_rate = rate.err().unwrap_or(UnknownTransportStreamValue::NoWholeInterval);
        let is_unknown = values.delay_factor_ms.is_none();
        Some(TransportDeliveryReport {
            media_rate_bps: rate.ok().map(|bytes_per_second| 8.0 * bytes_per_second),
            media_rate_unknown: rate.err(),
            delay_factor_ms: values.delay_factor_ms,
            max_delay_factor_ms: max.delay_factor_ms,
            delay_factor_unknown: is_unknown.then_some(capture_lost.unwrap_or(no_rate)),
            loss_rate: values.lost.map(per_second),
            max_loss_rate: max.lost.map(per_second),
            loss_rate_unknown: capture_lost,
        })
    }
}

impl Interval {
    /// Nothing is known where the capture lost packets, which may be of this stream.
    fn values(&self, losses: &LossTimes) -> Values {
        if losses.between(self.from, self.until) > 0 {
            return Values::default();
        }
        Values { delay_factor_ms: self.delay_factor_ms, lost: Some(self.lost) }
    }
}

impl Values {
    fn max(self, other: Self) -> Self {
        let delays = self.delay_factor_ms.into_iter().chain(other.delay_factor_ms);
        Self { delay_factor_ms: delays.reduce(f64::max), lost: self.lost.max(other.lost) }
    }
}

/// Rate of a count per interval.
fn per_second(count: u64) -> f64 {
    count_to_f64(count) * 1e9 / nanos_to_f64(INTERVAL.as_nanos())
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;

    use super::*;
    use crate::CaptureLoss;

    const RATE: f64 = 131_600.0;

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(0) + Span::from_millis(millis)
    }

    /// Datagrams of 1316 bytes at these times with a known rate.
    fn delivery(datagrams: impl IntoIterator<Item = (i64, u64)>, rate: Option<f64>) -> Delivery {
        let mut delivery = Delivery::new();
        for (millis, lost) in datagrams {
            let arrival = Arrival { time: at(millis), bytes: 1316, lost, rate };
            delivery.record(arrival, &LossTimes::default());
        }
        delivery
    }

    fn steady(seconds: i64) -> impl Iterator<Item = (i64, u64)> {
        (0..100 * seconds).map(|number| (number * 10, 0))
    }

    #[test]
    fn delay_factor_is_known_after_a_whole_interval_with_a_rate() {
        let none = LossTimes::default();
        let report = |seconds| delivery(steady(seconds), Some(RATE)).report(Ok(RATE), &none);
        assert_eq!(report(1), None);
        // The rate is known since the first datagram: the second interval is the first with a delay factor.
        let second = report(2).expect("an interval");
        assert_eq!(second.delay_factor_ms, None);
        assert_eq!(second.delay_factor_unknown, Some(UnknownTransportStreamValue::NoWholeInterval));
        let found = report(4).expect("an interval");
        assert!(found.delay_factor_ms.is_some_and(|it| (it - 10.0).abs() < 1e-6), "{found:?}");
        assert_eq!((found.loss_rate, found.max_loss_rate), (Some(0.0), Some(0.0)));
        assert_eq!(found.media_rate_bps, Some(8.0 * RATE));
    }

    #[test]
    fn pause_and_losses_have_their_maxima() {
        // A pause of 60 ms in the interval from 5 s, and 7 packets lost in that from 7 s.
        let datagrams = steady(10).map(|(millis, _)| {
            let late = if (5300..5350).contains(&millis) { 5350 } else { millis };
            (late, if millis == 7100 { 7 } else { 0 })
        });
        let found = delivery(datagrams, Some(RATE)).report(Ok(RATE), &LossTimes::default());
        let found = found.expect("an interval");
        assert!(found.max_delay_factor_ms.is_some_and(|it| (it - 60.0).abs() < 1e-6), "{found:?}");
        assert_eq!((found.loss_rate, found.max_loss_rate), (Some(0.0), Some(7.0)));
    }

    #[test]
    fn variable_bitrate_has_no_delay_factor() {
        let why = UnknownTransportStreamValue::VariableBitrate;
        let found = delivery(steady(5), None).report(Err(why), &LossTimes::default());
        let found = found.expect("an interval");
        assert_eq!((found.media_rate_bps, found.max_delay_factor_ms), (None, None));
        assert_eq!((found.media_rate_unknown, found.delay_factor_unknown), (Some(why), Some(why)));
        assert_eq!(found.loss_rate, Some(0.0));
    }

    #[test]
    fn intervals_with_capture_losses_are_unknown() {
        let mut losses = LossTimes::default();
        let delivery = delivery(steady(5).map(|(millis, _)| (millis, 1)), Some(RATE));
        losses.note(CaptureLoss { packets: 1, from: at(3500), until: at(3600) });
        let found = delivery.report(Ok(RATE), &losses).expect("an interval");
        let why = Some(UnknownTransportStreamValue::CaptureLost);
        assert_eq!((found.loss_rate_unknown, found.delay_factor_unknown), (why, why));
        assert_eq!((found.loss_rate, found.delay_factor_ms), (None, None));
        assert_eq!(found.max_loss_rate, Some(100.0));
        assert!(found.max_delay_factor_ms.is_some());
    }
}
