//! Metrics of round trips and of the return path of an active test.

use wirestamp_results::{Families, Labels, seconds};

use super::window::show_spread;
use crate::collector::{Measured, MeasuredReturn};

/// A counter: the part of its metric name, and its count.
type Counter = (&'static str, fn(&MeasuredReturn) -> u64);

const COUNTS: [Counter; 3] = [
    ("answered", |it| it.answered),
    ("return_lost", |it| it.lost),
    ("return_undetermined", |it| it.undetermined),
];

/// Sums since the controller started; none before the first window with a return path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReturnTotals(Option<[u64; COUNTS.len()]>);

impl ReturnTotals {
    /// Adds the counts of these windows.
    pub(super) fn add(&mut self, windows: &[Measured]) {
        for path in windows.iter().filter_map(|it| it.return_path.as_ref()) {
            let totals = self.0.get_or_insert_default();
            for (total, (_, count)) in totals.iter_mut().zip(&COUNTS) {
                *total = total.saturating_add(count(path));
            }
        }
    }

    pub(super) fn show(&self, labels: &Labels, families: &mut Families) {
        for (total, (name, _)) in self.0.iter().flatten().zip(&COUNTS) {
            families.add(&format!("wirestamp_task_{name}_packets_total"), labels, *total);
        }
    }
}

/// The newest window of a task, one second long.
pub(super) fn show_return_path(path: &MeasuredReturn, labels: &Labels, families: &mut Families) {
    for (name, count) in &COUNTS {
        families.add(&format!("wirestamp_task_window_{name}_packets"), labels, count(path));
    }
    for (name, spread) in [("round_trip", path.round_trip_ns), ("return_delay", path.delay_ns)] {
        if let Some(spread) = spread {
            show_spread(name, &spread, labels, families);
        }
    }
    for (name, error) in [("round_trip", path.round_trip_error_ns), ("return_delay", path.error_ns)]
    {
        if let Some(error) = error {
            let name = format!("wirestamp_task_{name}_error_seconds");
            families.add(&name, labels, seconds(error));
        }
    }
    let contradicts = path.contradicts_the_clocks;
    families.add("wirestamp_task_return_clocks_contradicted", labels, contradicts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::Spread;

    #[test]
    fn return_path_is_exported_in_base_units() {
        let spread = Spread { count: 3, min: 1_000_000, mean: 2.5e6, ..Spread::default() };
        let path = MeasuredReturn {
            answered: 7,
            lost: 2,
            round_trip_ns: Some(spread),
            round_trip_error_ns: Some(250),
            ..MeasuredReturn::default()
        };
        let windows = [
            Measured::default(),
            Measured { return_path: Some(path), ..Measured::default() },
            Measured { return_path: Some(path), ..Measured::default() },
        ];
        let labels = [("task", "path".to_owned())];
        let text = |windows: &[Measured]| {
            let (mut totals, mut families) = (ReturnTotals::default(), Families::default());
            totals.add(windows);
            totals.show(&labels, &mut families);
            let newest = windows.iter().filter_map(|it| it.return_path.as_ref()).next_back();
            newest.into_iter().for_each(|it| show_return_path(it, &labels, &mut families));
            families.text().unwrap()
        };
        // Unknown is absent.
        assert_eq!(text(&windows[..1]), "");
        let text = text(&windows);
        for sample in [
            "answered_packets_total{task=\"path\"} 14",
            "return_lost_packets_total{task=\"path\"} 4",
            "window_return_lost_packets{task=\"path\"} 2",
            "round_trip_min_seconds{task=\"path\"} 0.001",
            "round_trip_mean_seconds{task=\"path\"} 0.0025",
            "round_trip_error_seconds{task=\"path\"} 0.00000025",
        ] {
            let line = format!("wirestamp_task_{sample}");
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
        assert!(!text.contains("return_delay_min"), "{text}");
    }
}
