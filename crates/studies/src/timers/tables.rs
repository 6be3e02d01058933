//! The findings as tables, for the page and for the terminal alike.

use super::findings::TimersResult;
use super::measured::Measured;
use super::paper::Timer;
use super::tally::Cost;
use wirestamp_report::Table;
use wirestamp_report::format::{NOTHING, duration, optional, percent};

impl TimersResult {
    /// Means and deviations of the paper's timers, here and in its tables, and the means as
    /// multiples of that of the TSC.
    pub(super) fn beside_the_paper(&self) -> Table {
        let row = |timer: Timer| {
            let mut row = vec![self.title(timer), mean_and_deviation(self.cost(timer))];
            row.extend(self.published.iter().map(|published| {
                let cost = published.cost(timer);
                // With the paper's own digits.
                optional(cost, |cost| format!("{} ± {}", cost.mean, cost.stddev))
            }));
            let times = |ratio: Option<f64>| optional(ratio, |it| format!("{it:.1}"));
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
        let here = self.ways.iter().map(|way| (way, mark(way)));
        let beside = self.ways_beside().map(|way| (way, mark_elsewhere(way)));
        let name = |way: &Measured| format!("{} {}", way.source, way.call).trim_end().to_owned();
        Table::of(
            "Every way to read each source: mean ± standard deviation",
            here.chain(beside),
            &[
                ("", &|(way, mark)| name(way) + mark),
                ("filtered (ns)", &|(way, _)| mean_and_deviation(way.filtered)),
                ("unfiltered (ns)", &|(way, _)| mean_and_deviation(way.unfiltered)),
                ("peaks", &|(way, _)| {
                    optional(way.unfiltered, |all| percent(way.peaks, all.count))
                }),
                ("peak above", &|(way, _)| optional(way.peak_above_ns, duration)),
                ("longest", &|(way, _)| optional(way.unfiltered, |all| duration(all.max))),
                ("clock's step", &|(way, _)| optional(way.step_ns, duration)),
            ],
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
    optional(cost, |cost| format!("{:.2} ± {:.2}", cost.mean, cost.stddev))
}
