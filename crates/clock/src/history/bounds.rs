//! Error bounds of the timelines of histories.

use super::*;
use crate::Time;

const SECOND: u64 = 1_000_000_000;

/// History of a clock of nanoseconds with an anchor each second, where UTC leads by `leads`.
fn history(leads: &[i64]) -> History {
    let anchor = |second: usize| {
        let raw = SECOND * u64::try_from(second).unwrap();
        Anchor {
            raw,
            utc: Time::from_nanos(raw.cast_signed() + leads[second]),
            monotonic_raw: Time::from_nanos(raw.cast_signed()),
            error: Span::from_nanos(30),
        }
    };
    let nominal = Rate { nanos_per_tick: 1.0, error: ORDINARY_SLEW };
    let mut history = History::new(Domain::Counter, anchor(0), nominal, Span::from_nanos(1));
    (1..leads.len()).for_each(|second| history.push(anchor(second)));
    history
}

fn error(leads: &[i64], at: u64) -> i64 {
    history(leads).timeline().convert(at).error.as_nanos()
}

#[test]
fn bound_allows_for_ordinary_corrections() {
    let after_a_second = error(&[0; 8], 8 * SECOND);
    assert!((1_000..1_200).contains(&after_a_second), "{after_a_second} ns");
}

#[test]
fn change_across_two_segments_is_fully_expected() {
    let after_a_second = error(&[0, 0, 0, 5_000, 15_000, 25_000], 6 * SECOND);
    assert!(after_a_second >= 10_000, "{after_a_second} ns");
}

#[test]
fn step_widens_only_its_own_segment() {
    let leads = [0, 0, 0, 400_000, 400_000, 400_000, 400_000];
    for at in [1, SECOND / 2, SECOND - 1] {
        assert!(error(&leads, 2 * SECOND + at) >= 400_000);
    }
    assert!(error(&leads, 4 * SECOND + SECOND / 2) < 200, "far from the step");
}

#[test]
fn stamps_before_a_discarded_step_are_unbounded() {
    let leads = |anchors: usize| -> Vec<i64> {
        (0..anchors).map(|second| if second < 3 { 0 } else { 10_000_000 }).collect()
    };
    let before_the_step = SECOND * 3 / 2;
    assert!(error(&leads(CAPACITY), before_the_step) < 1_000);
    assert_eq!(error(&leads(CAPACITY + 4), before_the_step), i64::MAX);
    assert!(error(&[0; CAPACITY + 4], before_the_step) < 10_000, "there was none");
}

#[test]
fn event_before_the_newest_anchor_is_in_the_bound() {
    assert!(error(&[0, 0, 0, 0, 100], 4 * SECOND - 1) >= 130);
}
