//! Metrics of a running delay measurement.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use anyhow::Context;
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts};
use wirestamp_capture::Capture;
use wirestamp_clock::ClockService;
use wirestamp_metrics::{Counts, Outcome, Quality};
use wirestamp_results::{Families, delay_bounds, help, seconds};
use wirestamp_session::LiveFigures;

use super::Endpoint;
use super::calibration::calibration;
use super::tap::Tap;
use crate::output::Output;

/// Upper bucket bounds within each power of ten, for an error of quantiles of at most a quarter.
const BOUNDS_PER_DECADE: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];

/// The exported metrics of a running measurement; none without `--metrics`.
pub(crate) struct Exported(Option<Exporter>);

/// The metrics and their sources.
struct Exporter {
    live: Arc<LiveDelay>,
    /// The captures' figures.
    figures: [Arc<LiveFigures>; 2],
    /// Quality of all packets so far.
    total: Quality,
}

impl Exported {
    /// Serves the metrics of a measurement between these captures, with this sample share, at
    /// `endpoint`, if open. With `may_miss_direction`, packets of A may pass B in a direction that it does not capture.
    pub(crate) fn serve(
        endpoint: &Endpoint,
        [a, b]: [&Capture; 2],
        share: f64,
        may_miss_direction: bool,
        clock: &Arc<ClockService>,
        output: Output,
    ) -> anyhow::Result<Self> {
        if !endpoint.is_open() {
            return Ok(Self(None));
        }
        let taps = [Tap::of(a, Some("a")), Tap::of(b, Some("b"))];
        let figures = taps.each_ref().map(Tap::figures);
        let live = Arc::new(LiveDelay::new(may_miss_direction)?);
        let (shown, clock) = (Arc::clone(&live), Arc::clone(clock));
        endpoint.serve(output, move |families| {
            shown.collect(families);
            families.add("wirestamp_delay_sample_share", &[], share);
            taps.iter().for_each(|tap| tap.collect(families));
            calibration(families, &clock.status());
        })?;
        Ok(Self(Some(Exporter { live, figures, total: Quality::new() })))
    }

    /// No metrics.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Sets all metrics back to zero.
    pub(crate) fn restart(&mut self) {
        if let Self(Some(Exporter { live, total, .. })) = self {
            *total = Quality::new();
            live.restart();
        }
    }

    /// Records an outcome.
    pub(crate) fn record(&mut self, outcome: &Outcome) {
        if let Self(Some(Exporter { live, total, .. })) = self {
            total.record(outcome);
            live.record(outcome, total);
        }
    }

    /// The figures that the captures have to update.
    pub(crate) fn figures(&self) -> [Option<Arc<LiveFigures>>; 2] {
        let Self(Some(shown)) = self else { return [None, None] };
        shown.figures.clone().map(Some)
    }
}

/// Figures of a measurement, updated at each outcome. The lock is contended by a restart only.
struct LiveDelay {
    counts: [AtomicU64; COUNTS.len()],
    /// Whether the loss is unknown so far.
    is_loss_unknown: AtomicBool,
    may_miss_direction: bool,
    clock_error_ns: AtomicI64,
    /// Read by each scrape and outcome, and replaced by a restart.
    delays: RwLock<Histogram>,
}

/// The counters: parts of their names, the point of those with one series for each, and the counts.
type Count = (&'static str, Option<&'static str>, fn(&Counts) -> u64);
const COUNTS: [Count; 10] = [
    ("sent", None, |counts| counts.sent),
    ("received", None, |counts| counts.received),
    ("matched", None, |counts| counts.matched),
    (LOST, None, |counts| counts.lost),
    ("duplicated", None, |counts| counts.duplicated),
    ("reordered", None, |counts| counts.reordered),
    ("unexpected", None, |counts| counts.unexpected),
    ("identical", None, |counts| counts.identical),
    ("given_up", Some("a"), |counts| counts.undetermined_sent),
    ("given_up", Some("b"), |counts| counts.undetermined_received),
];

/// The counter that is absent while the loss is unknown.
const LOST: &str = "lost";

/// The histogram of delays.
const DELAYS: &str = "wirestamp_delay_one_way_seconds";

/// An empty histogram of delays.
fn histogram() -> prometheus::Result<Histogram> {
    let bounds = delay_bounds(&BOUNDS_PER_DECADE);
    Histogram::with_opts(HistogramOpts::new(DELAYS, help(DELAYS)).buckets(bounds))
}

impl LiveDelay {
    /// Empty figures.
    fn new(may_miss_direction: bool) -> anyhow::Result<Self> {
        Ok(Self {
            counts: [const { AtomicU64::new(0) }; COUNTS.len()],
            is_loss_unknown: AtomicBool::new(false),
            may_miss_direction,
            clock_error_ns: AtomicI64::new(0),
            delays: RwLock::new(histogram().context("cannot create a histogram")?),
        })
    }

    fn restart(&self) {
        self.counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        self.is_loss_unknown.store(false, Ordering::Relaxed);
        self.clock_error_ns.store(0, Ordering::Relaxed);
        // It was created before with the same options.
        if let Ok(empty) = histogram() {
            *self.delays.write().unwrap_or_else(PoisonError::into_inner) = empty;
        }
    }

    fn delays(&self) -> RwLockReadGuard<'_, Histogram> {
        self.delays.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, outcome: &Outcome, total: &Quality) {
        if let Outcome::Matched { delay, .. } = outcome {
            self.delays().observe(seconds(delay.as_nanos()));
        }
        let counts = total.counts();
        let is_nothing_at_b = self.may_miss_direction && counts.received == 0;
        let is_loss_unknown = counts.is_loss_unknown(0) || is_nothing_at_b;
        self.is_loss_unknown.store(is_loss_unknown, Ordering::Relaxed);
        for (shown, (_, _, count)) in self.counts.iter().zip(&COUNTS) {
            shown.store(count(counts), Ordering::Relaxed);
        }
        if let Some(error) = total.clock_error() {
            self.clock_error_ns.store(error.max.as_nanos(), Ordering::Relaxed);
        }
    }

    /// Adds the metrics to a scrape.
    fn collect(&self, families: &mut Families) {
        for (shown, (name, point, _)) in self.counts.iter().zip(COUNTS) {
            if name == LOST && self.is_loss_unknown.load(Ordering::Relaxed) {
                continue;
            }
            let name = format!("wirestamp_delay_{name}_packets_total");
            let labels = point.map(|point| ("point", point.to_owned()));
            families.add(&name, labels.as_slice(), shown.load(Ordering::Relaxed));
        }
        let delays = self.delays();
        families.extend(delays.collect());
        if delays.get_sample_count() > 0 {
            let error = seconds(self.clock_error_ns.load(Ordering::Relaxed));
            families.add("wirestamp_delay_clock_error_seconds", &[], error);
        }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
    use wirestamp_metrics::{Config, Correlator, Observation, Point};
    use wirestamp_packet::{FlowKey, PacketId};

    use super::*;

    /// Packet `id`, observed this many microseconds after an hour.
    fn observation(id: u64, micros: i64) -> Observation {
        let utc = Time::from_nanos(3_600_000_000_000 + micros * 1000);
        let raw = RawStamp { domain: Domain::Realtime, value: utc.as_nanos().unsigned_abs() };
        let address = ([10, 77, 1, 1], 5000).into();
        Observation {
            id: PacketId(id),
            flow: FlowKey { source: address, destination: address, protocol: 17 },
            length: 100,
            stamp: Stamp { raw, utc, error: Span::from_nanos(70) },
        }
    }

    /// The metrics after these observations.
    fn text(observations: &[(Point, Observation)]) -> String {
        text_of(false, observations)
    }

    /// The metrics after these observations; A's packets may pass B in another direction.
    fn text_of(may_miss_direction: bool, observations: &[(Point, Observation)]) -> String {
        let live = LiveDelay::new(may_miss_direction).unwrap();
        let mut total = Quality::new();
        let mut record = |outcome: Outcome| {
            total.record(&outcome);
            live.record(&outcome, &total);
        };
        let mut correlator = Correlator::new(Config::default());
        for &(point, observation) in observations {
            correlator.observe(point, observation, &mut record);
        }
        correlator.finish(&mut record);
        let mut families = Families::default();
        live.collect(&mut families);
        families.text().unwrap()
    }

    #[test]
    fn every_count_has_its_own_metric() {
        let counts = Counts {
            sent: 1,
            received: 2,
            matched: 3,
            lost: 4,
            duplicated: 5,
            reordered: 6,
            unexpected: 7,
            identical: 8,
            undetermined_sent: 9,
            undetermined_received: 10,
        };
        let shown = COUNTS.map(|(_, _, count)| count(&counts));
        assert_eq!(shown, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert!(COUNTS.iter().map(|(name, point, _)| (name, point)).is_sorted_by(|a, b| a != b));
    }

    #[test]
    fn every_outcome_updates_its_metric() {
        let text = text(&[
            (Point::A, observation(1, 0)),
            (Point::B, observation(2, 900)),
            (Point::A, observation(2, 1000)),
            (Point::B, observation(1, 2500)),
            (Point::B, observation(1, 2600)),
            (Point::A, observation(3, 3000)),
            (Point::B, observation(4, 4000)),
        ]);
        for line in [
            "sent_packets_total 3",
            "received_packets_total 4",
            "matched_packets_total 2",
            "lost_packets_total 1",
            "duplicated_packets_total 1",
            "reordered_packets_total 1",
            "unexpected_packets_total 1",
            "identical_packets_total 0",
            "given_up_packets_total{point=\"a\"} 0",
            "clock_error_seconds 0.00000014",
            "one_way_seconds_bucket{le=\"0\"} 1",
            "one_way_seconds_bucket{le=\"0.002\"} 1",
            "one_way_seconds_bucket{le=\"0.003\"} 2",
            "one_way_seconds_count 2",
        ] {
            let line = format!("wirestamp_delay_{line}");
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }

    #[test]
    fn loss_is_absent_while_it_is_unknown() {
        let (a, b) = ((Point::A, observation(1, 0)), (Point::B, observation(2, 900)));
        let is_exported = |text: &str| text.contains("wirestamp_delay_lost_packets_total");
        assert!(!is_exported(&text(&[a, b])), "B observed as many other packets");
        assert!(is_exported(&text(&[a])), "B observed none");
        assert!(!is_exported(&text_of(true, &[a])), "B may not capture its direction");
        assert!(is_exported(&text_of(true, &[])), "nothing is lost yet");
        let arrived = [a, (Point::B, observation(1, 500)), b];
        assert!(is_exported(&text_of(true, &arrived)), "most packets are matched");
    }

    #[test]
    fn clock_error_needs_a_delay() {
        assert!(!text(&[(Point::A, observation(1, 5))]).contains("clock_error"));
    }
}
