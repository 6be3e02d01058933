//! Tests: results are stored and read.

#![expect(clippy::cast_precision_loss, reason = "delays of microseconds")]

mod histograms;
mod moves;
mod single_point;
mod steps;
mod windows;

use std::collections::BTreeMap;
use std::ops::Range;

use wirestamp_clock::{Domain, RawStamp, Span, Stamp};
use wirestamp_metrics::{Config, Correlator, Observation, Quality, Summary};
use wirestamp_packet::{FlowKey, PacketId};

use super::*;
use crate::collector::{NotSynchronised, PointResults, Window};

const SECOND: i64 = 1_000_000_000;

fn observation(id: u64, nanos: i64) -> Observation {
    let end = std::net::SocketAddr::from(([192, 0, 2, 1], 5004));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(id),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_nanos(10) },
    }
}

/// Ten packets: one is lost, the others have delays of 1, 2, 3... us.
fn window(offset: Result<Span, NotSynchronised>) -> Window {
    Window { quality: quality(0..10), offset, least: Some(Span::ZERO), return_path: None }
}

fn quality(ids: Range<i64>) -> Quality {
    let (mut quality, mut correlator) = (Quality::new(), Correlator::new(Config::default()));
    let mut record = |outcome| quality.record(&outcome);
    for id in ids {
        let number = id.unsigned_abs();
        correlator.observe(Point::A, observation(number, id * 10_000), &mut record);
        if id > 0 {
            correlator.observe(Point::B, observation(number, id * 11_000), &mut record);
        }
    }
    correlator.finish(&mut record);
    quality
}

/// Selection of results in a time range.
fn range(step: Step, from: i64, until: i64) -> ResultRange {
    ResultRange { step, from, until, most: 9 }
}

fn settled(until: i64, windows: Vec<(i64, Window)>, acknowledged: [u64; 2]) -> Settled {
    let windows = windows.into_iter().map(|(begin, window)| (Time::from_nanos(begin), window));
    Settled {
        windows: windows.collect::<BTreeMap<_, _>>(),
        point_results: PointResults::default(),
        acknowledged,
        dropped: [0, 5],
        ..Settled::nothing(Time::from_nanos(until))
    }
}

/// Asserts that a result matches a window, with this relative error of percentiles.
fn check(measured: &Measured, window: &Window, share: f64) {
    let Measured { counts, delay_ns, above_minimum_ns, variation_ns, error_ns, .. } = measured;
    let quality = &window.quality;
    let delay = quality.delay().summary();
    assert_eq!(counts, quality.counts());
    // Delays of unsynchronised clocks cannot be merged.
    let is_known = share == 0.0 || window.offset.is_ok();
    let off = share * delay.as_ref().map_or(0.0, |delay| delay.max as f64);
    let above = delay.as_ref().map(Summary::above_minimum);
    check_spread(above_minimum_ns.as_ref(), above, is_known.then_some(off));
    check_spread(delay_ns.as_ref(), delay.filter(|_| window.offset.is_ok()), Some(off));
    check_spread(variation_ns.as_ref(), quality.variation().summary(), Some(off));
    assert_eq!(*error_ns, window.error().ok().map(Span::as_nanos));
    assert_eq!(measured.not_synchronised, window.offset.err());
}

fn check_spread(spread: Option<&Spread>, summary: Option<Summary>, off: Option<f64>) {
    let (Some(spread), Some(summary)) = (spread, &summary) else {
        assert!(spread.is_none() && summary.is_none(), "{spread:?}, {summary:?}");
        return;
    };
    let whole = |it: &Spread| (it.count, it.min, it.max);
    assert_eq!(whole(spread), (summary.count, summary.min, summary.max));
    let is_near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * other.abs();
    assert!(is_near(spread.mean, summary.mean), "{spread:?}, {summary:?}");
    assert!(is_near(spread.stddev, summary.stddev), "{spread:?}, {summary:?}");
    let expected = [summary.p50, summary.p90, summary.p99, summary.p999];
    for (found, expected) in [spread.p50, spread.p90, spread.p99, spread.p999].iter().zip(expected)
    {
        let is_as_expected = match (found, off) {
            (Some(found), Some(off)) => (found - expected).abs() as f64 <= off,
            (found, off) => found.is_none() && off.is_none(),
        };
        assert!(is_as_expected, "{spread:?}, {summary:?}");
    }
}
