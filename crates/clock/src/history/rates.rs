//! Rates of histories.

use super::*;
use crate::Time;

const INTERVAL: u64 = 250_000_000;

/// Rate error in ppm after anchors every 250 ms of a counter of nanoseconds, which gains `gained` on
/// `CLOCK_MONOTONIC_RAW`.
fn rate_error_ppm(anchors: u64, gained: impl Fn(u64) -> i64) -> f64 {
    let anchor = |index: u64| {
        let elapsed = (INTERVAL * index).cast_signed();
        Anchor {
            raw: elapsed.strict_add(gained(index)).unsigned_abs(),
            utc: Time::from_nanos(elapsed),
            monotonic_raw: Time::from_nanos(elapsed),
            error: Span::from_nanos(30),
        }
    };
    let nominal = Rate { nanos_per_tick: 1.0, error: ORDINARY_SLEW };
    let mut history = History::new(Domain::Counter, anchor(0), nominal, Span::from_nanos(1));
    (1..anchors).for_each(|index| history.push(anchor(index)));
    assert_eq!(history.steps(), 0);
    history.difference().rate_error_ppm()
}

#[test]
fn steady_rate_uses_the_whole_baseline() {
    let read_errors = |index: u64| [0, 25, -25, 10][usize::try_from(index % 4).unwrap()];
    let error = rate_error_ppm(101, read_errors);
    assert!((error - 60.0 / 25_000.0).abs() < 1e-4, "60 ns in 25 s are not {error} ppm");
}

#[test]
fn changed_rate_widens_the_error_to_both_rates() {
    // 8 ppm more are 2 us in 250 ms, for three quarters of the time: the mean is 6 ppm.
    let error = rate_error_ppm(101, |index| 2_000 * (index.cast_signed() - 25).max(0));
    assert!((6.0..6.5).contains(&error), "{error} ppm");
}

#[test]
fn small_change_is_visible_in_distant_anchors() {
    // 0.04 ppm more are 10 ns in 250 ms, which neighbouring anchors do not show.
    let error = rate_error_ppm(201, |index| 10 * (index.cast_signed() - 100).max(0));
    assert!((0.02..0.04).contains(&error), "{error} ppm");
}
