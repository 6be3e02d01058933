//! Steps, disruptions and rates of histories.

use super::*;
use crate::Time;
use crate::ratio::ceil_nanos;

const SECOND: i64 = 1_000_000_000;

/// History of a clock of nanoseconds at `rate`, with an anchor each second.
fn history(domain: Domain, rate: f64, anchors: i64) -> History {
    let nominal = Rate { nanos_per_tick: 1.0, error: ORDINARY_SLEW };
    let granularity = Span::from_nanos(1);
    let mut history = History::new(domain, anchor(0, rate, 0), nominal, granularity);
    (1..anchors).for_each(|second| history.push(anchor(second, rate, 0)));
    history
}

fn anchor(second: i64, rate: f64, step: i64) -> Anchor {
    let nanos = SECOND * second;
    let slewed = ceil_nanos(approx(nanos.unsigned_abs()) * rate);
    Anchor {
        raw: slewed.unsigned_abs(),
        utc: Time::from_nanos(slewed + step),
        monotonic_raw: Time::from_nanos(nanos),
        error: Span::from_nanos(30),
    }
}

#[test]
fn small_step_against_monotonic_clock_is_counted() {
    let mut history = history(Domain::Monotonic, 1.0001, 5);
    history.push(anchor(5, 1.0001, 1_000));
    let timeline = history.timeline();
    assert_eq!(timeline.steps(), 1);
    let stamp = timeline.convert(anchor(9, 1.0001, 0).raw);
    assert_eq!(stamp.utc, anchor(9, 1.0001, 1_000).utc, "the offset is constant after it");
    assert!(stamp.error <= Span::from_nanos(32), "and so is the error");
}

#[test]
fn bad_read_does_not_change_monotonic_rate() {
    let mut history = history(Domain::Monotonic, 1.0, 5);
    history.push(anchor(5, 1.0, 25));
    let timeline = history.timeline();
    assert_eq!(timeline.steps(), 0, "25 ns are within the errors");
    let later = timeline.convert(anchor(50, 1.0, 0).raw);
    assert_eq!(later.utc, anchor(50, 1.0, 25).utc);
}

#[test]
fn nic_clock_step_does_not_change_rate() {
    let mut history = history(Domain::Nic, 1.00002, 5);
    let stepped = |second| Anchor {
        raw: anchor(second, 1.00002, 0).raw + 37_000_000_000,
        ..anchor(second, 1.0, 0)
    };
    (5..8).for_each(|second| history.push(stepped(second)));
    let timeline = history.timeline();
    assert_eq!(timeline.steps(), 1);
    let difference = timeline.difference();
    assert!((difference.frequency_hz() - 1_000_020_000.0).abs() < 100.0);
    assert!(difference.rate_error_ppm() < 0.1, "{} ppm", difference.rate_error_ppm());
    assert_eq!(timeline.convert(stepped(6).raw).utc, stepped(6).utc);
    assert_eq!(timeline.convert(anchor(2, 1.00002, 0).raw).utc, anchor(2, 1.00002, 0).utc);
}

#[test]
fn early_bound_allows_for_ordinary_slew() {
    let timeline = history(Domain::Counter, 1.0, 2).timeline();
    let error = timeline.convert(anchor(2, 1.0, 0).raw).error;
    assert!(error >= Span::from_nanos(500_000), "500 ppm of a second, not {error:?}");
}

#[test]
fn slew_is_in_the_rate_error() {
    let error = |rate| history(Domain::Monotonic, rate, 5).timeline().difference().rate_error_ppm();
    assert!((30.0..30.2).contains(&error(1.000_03)), "{} ppm", error(1.000_03));
    assert!(error(1.01) > 9_999.0, "also where it is slewed faster than usual");
}

#[test]
fn anchor_too_close_to_the_last_is_discarded() {
    let mut history = history(Domain::Counter, 1.0, 3);
    let mut close = anchor(2, 1.0, 0);
    close.raw += 1_000;
    close.utc = close.utc + Span::from_nanos(1_000);
    close.monotonic_raw = close.monotonic_raw + Span::from_nanos(1_000);
    history.push(close);
    assert_eq!(history.entries.len(), 3);
}

#[test]
fn history_is_limited_to_a_minute() {
    let history = history(Domain::Counter, 1.0, 300);
    assert_eq!(history.entries.len(), CAPACITY);
    assert_eq!(history.timeline().steps(), 0);
}
