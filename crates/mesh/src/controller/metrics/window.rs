//! Metrics of the newest window of a task that measures delay.

use wirestamp_metrics::Counts;
use wirestamp_metrics::numeric::count_to_f64;
use wirestamp_results::{Families, Labels, seconds};

use crate::collector::{Measured, Spread};

/// A counter: the part of its metric name, and its count.
type Counter = (&'static str, fn(&Counts) -> u64);

/// The counts of a window.
pub(super) const COUNTS: [Counter; 10] = [
    ("sent", |it| it.sent),
    ("received", |it| it.received),
    ("matched", |it| it.matched),
    ("lost", |it| it.lost),
    ("duplicated", |it| it.duplicated),
    ("reordered", |it| it.reordered),
    ("unexpected", |it| it.unexpected),
    ("identical", |it| it.identical),
    ("given_up_sent", |it| it.undetermined_sent),
    ("given_up_received", |it| it.undetermined_received),
];

/// The newest window of a task, one second long.
pub(super) fn show_window(measured: &Measured, labels: &Labels, families: &mut Families) {
    let Measured { counts, delay_ns, above_minimum_ns, variation_ns, .. } = measured;
    families.add("wirestamp_task_window_timestamp_seconds", labels, seconds(measured.begin_ns));
    for (name, count) in &COUNTS {
        families.add(&format!("wirestamp_task_window_{name}_packets"), labels, count(counts));
    }
    if counts.matched + counts.lost > 0 {
        let share = count_to_f64(counts.lost) / count_to_f64(counts.matched + counts.lost);
        families.add("wirestamp_task_loss_ratio", labels, share);
    }
    let spreads = [
        ("delay", delay_ns),
        ("delay_above_minimum", above_minimum_ns),
        ("delay_variation", variation_ns),
    ];
    for (name, spread) in spreads {
        if let Some(spread) = spread {
            show_spread(name, spread, labels, families);
        }
    }
    if let Some(error) = measured.error_ns {
        families.add("wirestamp_task_delay_error_seconds", labels, seconds(error));
    }
    if let Some(mos) = measured.mos {
        families.add("wirestamp_task_mos", labels, mos);
    }
    families.add("wirestamp_task_clocks_contradicted", labels, measured.contradicts_the_clocks);
}

/// The values of a distribution.
pub(super) fn show_spread(name: &str, spread: &Spread, labels: &Labels, families: &mut Families) {
    let Spread { min, mean, p50, p99, max, .. } = *spread;
    let values = [
        ("min", Some(seconds(min))),
        ("mean", Some(mean / 1e9)),
        ("p50", p50.map(seconds)),
        ("p99", p99.map(seconds)),
        ("max", Some(seconds(max))),
    ];
    for (of, value) in values {
        let Some(value) = value else { continue };
        families.add(&format!("wirestamp_task_{name}_{of}_seconds"), labels, value);
    }
}
