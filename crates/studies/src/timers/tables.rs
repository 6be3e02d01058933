//! The findings as tables, for the page and for the terminal alike.

use super::findings::Findings;
use super::measured::Measured;
use super::paper::Timer;
use super::tally::Cost;
use wirestamp_report::Table;
use wirestamp_report::format::{NOTHING, duration, percent};

impl Findings {
    /// Means and deviations of the paper's timers, here and in its tables, and the means as
    /// multiples of that of the TSC.
    pub(super) fn beside_the_paper(&self) -> Table {
        let row = |timer: Timer| {
            let mut row = vec![self.title(timer), mean_and_deviation(self.cost(timer))];
            row.extend(self.published.iter().map(|published| {
                let cost = published.cost(timer);
                // With the paper's own digits.
                cost.map_or(NOTHING.into(), |cost| format!("{} ± {}", cost.mean, cost.stddev))
            }));
            let times = |ratio: Option<f64>| ratio.map_or(NOTHING.into(), |it| format!("{it:.1}"));
            row.extend(self.ratios(timer).map(times));
            row
        };
        Table::new(
            "Mean ± standard deviation of a read, peaks filtered",
            &[
                "",
                "here (ns)",
                "Table 1, VIA (ns)",
                "Table 2, Athlon (ns)",
                "in TSC reads: here",
                "VIA",
                "Athlon",
            ],
            Timer::ALL.map(row).into_iter().chain(self.beside()).collect(),
        )
    }

    /// The name of a timer, with a mark if it is emulated here.
    fn title(&self, timer: Timer) -> String {
        let way = self.ways.iter().find(|way| way.timer == Some(timer));
        timer.name().to_owned() + way.map_or("", mark)
    }

    /// The timers that only another machine has. Their costs are no multiples of this one's TSC.
    fn beside(&self) -> impl Iterator<Item = Vec<String>> {
        self.ways_beside().filter_map(|way| {
            let cost = mean_and_deviation(way.filtered);
            let mut row = vec![format!("{}{}", way.timer?.name(), mark_elsewhere(way)), cost];
            row.resize(7, NOTHING.to_owned());
            Some(row)
        })
    }

    fn ways_beside(&self) -> impl Iterator<Item = &Measured> {
        self.beside.iter().flat_map(|beside| &beside.ways)
    }

    /// Every way to read every source, with and without the peaks.
    pub(super) fn every_way(&self) -> Table {
        let time = |ns: Option<f64>| ns.map_or(NOTHING.into(), duration);
        let row = |way: &Measured, mark: &str| {
            let all = way.unfiltered;
            vec![
                format!("{} {}", way.source, way.call).trim_end().to_owned() + mark,
                mean_and_deviation(way.filtered),
                mean_and_deviation(all),
                all.map_or(NOTHING.into(), |all| percent(way.peaks, all.count)),
                time(way.peak_above_ns),
                time(all.map(|all| all.max)),
                time(way.step_ns),
            ]
        };
        let here = self.ways.iter().map(|way| row(way, mark(way)));
        let beside = self.ways_beside().map(|way| row(way, mark_elsewhere(way)));
        Table::new(
            "Every way to read each source: mean ± standard deviation",
            &[
                "",
                "filtered (ns)",
                "unfiltered (ns)",
                "peaks",
                "peak above",
                "longest",
                "clock's step",
            ],
            here.chain(beside).collect(),
        )
    }
}

/// Beside the name of what was read in an emulated machine.
const EMULATED: &str = " (emulated)";

fn mark(way: &Measured) -> &'static str {
    if way.is_available() && way.emulated_by.is_some() { EMULATED } else { "" }
}

fn mark_elsewhere(way: &Measured) -> &'static str {
    if way.emulated_by.is_some() { " (elsewhere, emulated)" } else { " (elsewhere)" }
}

/// Both in nanoseconds.
fn mean_and_deviation(cost: Option<Cost>) -> String {
    cost.map_or(NOTHING.into(), |cost| format!("{:.2} ± {:.2}", cost.mean, cost.stddev))
}
