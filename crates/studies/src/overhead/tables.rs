//! The findings as tables, for the page and for the terminal alike.

use super::findings::{CellFindings, OverheadResult};
use super::paper::{Method, Published};
use super::softirq::Added;
use crate::experiment::{Estimate, effects_table};
use crate::timers::Cost;
use wirestamp_report::Table;
use wirestamp_report::estimate::decimal;
use wirestamp_report::format::{count, optional};

impl OverheadResult {
    /// Mean and deviation of each method with each pattern, here and in the paper.
    pub(super) fn beside_the_paper(&self) -> Table {
        let here = |row: &Published, of: fn(&CellFindings) -> Option<String>| {
            optional(self.cell(row.method, row.pattern).and_then(of), |text| text)
        };
        let name = |row: &Published| {
            let [table, ..] = row.pattern.place();
            format!("{table}, {}: {}", row.pattern.name(), in_the_paper(row.method))
        };
        // The paper's numbers have its own digits.
        Table::of(
            "Overhead of a stamp for a packet, in user space",
            self.published,
            &[
                ("", &name),
                ("mean here (ns)", &|row| here(row, |cell| cell.mean_ns.map(estimate))),
                ("in the paper", &|row| row.mean_ns.to_string()),
                ("deviation here (ns)", &|row| here(row, |cell| cell.deviation_ns.map(estimate))),
                ("variance here (ns²)", &|row| {
                    here(row, |cell| cell.variance_ns2.map(|variance| format!("{variance:.0}")))
                }),
                ("“variance [ns]” in the paper", &|row| row.variance.to_string()),
                ("packets here", &|row| {
                    here(row, |cell| {
                        cell.overhead_ns.map(|cost| received(cost.count, cell.missing))
                    })
                }),
            ],
        )
    }

    /// The distribution of the overheads of each method with each pattern.
    pub(super) fn distributions(&self) -> Table {
        let cost = |cell: &CellFindings, of: fn(Cost) -> f64| {
            optional(cell.overhead_ns, |cost| format!("{:.1}", of(cost)))
        };
        Table::of(
            "Distribution of the overhead (ns)",
            self.cells.iter(),
            &[
                ("", &|cell| format!("{}, {}", cell.pattern.name(), cell.method.name())),
                ("least", &|cell| cost(cell, |it| it.min)),
                ("median", &|cell| cost(cell, |it| it.p50)),
                ("90 %", &|cell| cost(cell, |it| it.p90)),
                ("99 %", &|cell| cost(cell, |it| it.p99)),
                ("99.9 %", &|cell| cost(cell, |it| it.p999)),
                ("most", &|cell| cost(cell, |it| it.max)),
            ],
        )
    }

    /// Cost of a stamp in the softIRQ.
    pub(super) fn in_the_softirq(&self) -> Table {
        Table::of(
            "What a stamp adds to a frame, in the softIRQ",
            self.softirq.iter(),
            &[
                ("", &|added| added.stamp.clone()),
                ("above no stamp (ns)", &|added| optional(added.added_ns, estimate)),
            ],
        )
    }

    /// Why stamps were not measured in the softIRQ, a line for each.
    pub(super) fn not_in_the_softirq(&self) -> Vec<String> {
        let every =
            self.softirq_reason.iter().map(|reason| format!("Nothing was measured: {reason}."));
        let one = |added: &Added| {
            Some(format!("{} was not measured: {}.", added.stamp, added.reason.as_ref()?))
        };
        every.chain(self.softirq.iter().filter_map(one)).collect()
    }

    /// Effects of the method, the pattern, and both together on mean and deviation.
    pub(super) fn effects(&self) -> Table {
        let on_mean = ("on the mean (ns)", self.effects_on_mean.as_slice());
        let on_deviation = ("on the deviation (ns)", self.effects_on_deviation.as_slice());
        effects_table(&[on_mean, on_deviation], estimate)
    }
}

/// How many packets were stamped, and of how many if some were lost.
fn received(packets: u64, missing: u64) -> String {
    match missing {
        0 => count(packets),
        missing => format!("{} of {}", count(packets), count(packets + missing)),
    }
}

/// The paper's word for a method beside ours.
fn in_the_paper(method: Method) -> &'static str {
    match method {
        Method::Ktime => "ktime (generic ktime)",
        Method::Raw => "raw (multi-thread TS)",
    }
}

fn estimate(estimate: Estimate) -> String {
    decimal(estimate, 2)
}
