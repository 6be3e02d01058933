//! What a measurement of delay shows while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use anyhow::Context;
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts};
use wirestamp_capture::Capture;
use wirestamp_clock::ClockService;
use wirestamp_metrics::{Counts, Outcome, Quality};
use wirestamp_results::{Families, seconds};
use wirestamp_session::LiveFigures;

use super::Endpoint;
use super::calibration::calibration;
use super::tap::Tap;
use crate::output::Output;

/// Upper bounds of the delays' buckets within each power of ten, so that a quantile between two is
/// known to a quarter.
const WITHIN_TEN: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];

/// The powers of ten of seconds, from 1 µs on; beyond the last there is 10 s.
const POWERS: std::ops::Range<i32> = -6..1;

/// A running measurement, if anybody may look at it.
pub(crate) struct Exported(Option<Shown>);

/// What is shown, and where from.
struct Shown {
    live: Arc<Live>,
    /// The captures' figures.
    figures: [Arc<LiveFigures>; 2],
    /// Of all traffic so far.
    total: Quality,
}

impl Exported {
    /// Serves the measurement between these captures, of this share of their packets, at `endpoint`, if
    /// that is open.
    pub(crate) fn serve(
        endpoint: &Endpoint,
        [a, b]: [&Capture; 2],
        share: f64,
        clock: &Arc<ClockService>,
        output: Output,
    ) -> anyhow::Result<Self> {
        if !endpoint.is_open() {
            return Ok(Self(None));
        }
        let taps = [Tap::of(a, Some("a")), Tap::of(b, Some("b"))];
        let figures = taps.each_ref().map(Tap::figures);
        let live = Arc::new(Live::new()?);
        let (shown, clock) = (Arc::clone(&live), Arc::clone(clock));
        endpoint.serve(output, move |families| {
            shown.collect(families);
            families.gauge(
                "wirestamp_delay_sample_share",
                "The share of all packets, 0 to 1, that is measured and counted here.",
                &[],
                share,
            );
            taps.iter().for_each(|tap| tap.collect(families));
            calibration(families, &clock.status());
        })?;
        Ok(Self(Some(Shown { live, figures, total: Quality::new() })))
    }

    /// Takes note of an outcome.
    pub(crate) fn record(&mut self, outcome: &Outcome) {
        if let Self(Some(Shown { live, total, .. })) = self {
            total.record(outcome);
            live.record(outcome, total);
        }
    }

    /// Where the captures have to show their figures.
    pub(crate) fn figures(&self) -> [Option<Arc<LiveFigures>>; 2] {
        let Self(Some(shown)) = self else { return [None, None] };
        shown.figures.clone().map(Some)
    }
}

/// The figures of a measurement, written outcome by outcome while others look at them.
struct Live {
    counts: [AtomicU64; COUNTS.len()],
    clock_error_ns: AtomicI64,
    delays: Histogram,
}

/// A count, by the metric that shows it.
struct Count {
    name: &'static str,
    help: &'static str,
    /// The point that it is of, where there is one metric for both.
    point: Option<&'static str>,
    of: fn(&Counts) -> u64,
}

const fn count(name: &'static str, help: &'static str, of: fn(&Counts) -> u64) -> Count {
    Count { name, help, point: None, of }
}

const GIVEN_UP: Count = count(
    "wirestamp_delay_given_up_packets_total",
    "Packets that it could not be found out about what became of them.",
    |counts| counts.undetermined_sent,
);

const COUNTS: [Count; 10] = [
    count("wirestamp_delay_sent_packets_total", "Packets seen at A.", |counts| counts.sent),
    count("wirestamp_delay_received_packets_total", "Packets seen at B, copies too.", |counts| {
        counts.received
    }),
    count("wirestamp_delay_matched_packets_total", "Packets seen at both points.", |counts| {
        counts.matched
    }),
    count(
        "wirestamp_delay_lost_packets_total",
        "Packets seen at A and not at B within the time-out (RFC 7680).",
        |counts| counts.lost,
    ),
    count(
        "wirestamp_delay_duplicated_packets_total",
        "Copies at B beyond the first of a packet (RFC 5560).",
        |counts| counts.duplicated,
    ),
    count(
        "wirestamp_delay_reordered_packets_total",
        "Packets that came after one of their flow that had left later (RFC 4737).",
        |counts| counts.reordered,
    ),
    count("wirestamp_delay_unexpected_packets_total", "Packets seen at B only.", |counts| {
        counts.unexpected
    }),
    count(
        "wirestamp_delay_identical_packets_total",
        "Packets at A that could not be told from an earlier one.",
        |counts| counts.identical,
    ),
    Count { point: Some("a"), ..GIVEN_UP },
    Count { point: Some("b"), of: |counts| counts.undetermined_received, ..GIVEN_UP },
];

impl Live {
    /// Figures of nothing yet.
    fn new() -> anyhow::Result<Self> {
        let help = "One-way delays from A to B (RFC 7679); a negative one is the clocks' doing.";
        let options =
            HistogramOpts::new("wirestamp_delay_one_way_seconds", help).buckets(buckets());
        Ok(Self {
            counts: [const { AtomicU64::new(0) }; COUNTS.len()],
            clock_error_ns: AtomicI64::new(0),
            delays: Histogram::with_opts(options).context("cannot make a histogram")?,
        })
    }

    fn record(&self, outcome: &Outcome, total: &Quality) {
        if let Outcome::Matched { delay, .. } = outcome {
            self.delays.observe(seconds(delay.as_nanos()));
        }
        for (shown, count) in self.counts.iter().zip(&COUNTS) {
            shown.store((count.of)(total.counts()), Ordering::Relaxed);
        }
        if let Some(error) = total.clock_error() {
            self.clock_error_ns.store(error.max.as_nanos(), Ordering::Relaxed);
        }
    }

    /// Adds the measurement to a scrape.
    fn collect(&self, families: &mut Families) {
        for (shown, &Count { name, help, point, .. }) in self.counts.iter().zip(&COUNTS) {
            let labels = point.map(|point| ("point", point.to_owned()));
            families.counter(name, help, labels.as_slice(), shown.load(Ordering::Relaxed));
        }
        families.extend(self.delays.collect());
        if self.delays.get_sample_count() > 0 {
            families.seconds(
                "wirestamp_delay_clock_error_seconds",
                "How far any delay so far can be off because of the clocks.",
                &[],
                self.clock_error_ns.load(Ordering::Relaxed),
            );
        }
    }
}

/// Below zero, and then from 1 µs to 10 s.
fn buckets() -> Vec<f64> {
    let bounds = POWERS.flat_map(|power| {
        // Through the text, so that a bound is the number that is nearest to it.
        WITHIN_TEN.iter().filter_map(move |bound| format!("{bound}e{power}").parse().ok())
    });
    [0.0].into_iter().chain(bounds).chain([10.0]).collect()
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
    use wirestamp_metrics::{Config, Correlator, Observation, Point};
    use wirestamp_packet::{FlowKey, PacketId};

    use super::*;

    /// Packet `id`, seen so many microseconds after an hour.
    fn seen(id: u64, micros: i64) -> Observation {
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

    /// What is shown of these observations.
    fn text(observations: &[(Point, Observation)]) -> String {
        let (live, mut total) = (Live::new().unwrap(), Quality::new());
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
    fn buckets_grow_and_have_bounds_that_can_be_read() {
        let buckets = buckets();
        assert_eq!(buckets.len(), 44);
        assert!(buckets.is_sorted_by(|one, other| one < other));
        assert_eq!((buckets[0], buckets[1], buckets[2]), (0.0, 1e-6, 1.5e-6));
        assert!(buckets.contains(&0.007) && buckets[43] == 10.0);
    }

    #[test]
    fn every_count_has_a_metric_of_its_own() {
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
        let shown = COUNTS.map(|count| (count.of)(&counts));
        assert_eq!(shown, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert!(COUNTS.iter().map(|count| (count.name, count.point)).is_sorted_by(|a, b| a != b));
    }

    #[test]
    fn every_outcome_is_in_its_metric() {
        let text = text(&[
            (Point::A, seen(1, 0)),
            (Point::B, seen(2, 900)),
            (Point::A, seen(2, 1000)),
            (Point::B, seen(1, 2500)),
            (Point::B, seen(1, 2600)),
            (Point::A, seen(3, 3000)),
            (Point::B, seen(4, 4000)),
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
    fn without_a_delay_there_is_no_error_of_one() {
        assert!(!text(&[(Point::A, seen(1, 5))]).contains("clock_error"));
    }
}
