//! The findings as tables, for the page and for the terminal alike.

use super::findings::{CellFindings, Findings};
use super::paper::{Method, Published};
use super::softirq::Added;
use crate::experiment::{Effect, Estimate};
use wirestamp_report::Table;
use wirestamp_report::estimate::decimal;
use wirestamp_report::format::{NOTHING, count};

impl Findings {
    /// Mean and deviation of each method with each pattern, here and in the paper.
    pub(super) fn beside_the_paper(&self) -> Table {
        let row = |published: &Published| {
            let Published { method, pattern, mean_ns, variance } = *published;
            let [table, ..] = pattern.place();
            let here = self.cell(method, pattern);
            let here = |of: fn(&CellFindings) -> Option<String>| {
                here.and_then(of).unwrap_or_else(|| NOTHING.to_owned())
            };
            vec![
                format!("{table}, {}: {}", pattern.name(), in_the_paper(method)),
                here(|cell| cell.mean_ns.map(estimate)),
                // With the paper's own digits.
                mean_ns.to_string(),
                here(|cell| cell.deviation_ns.map(estimate)),
                here(|cell| cell.variance_ns2.map(|variance| format!("{variance:.0}"))),
                variance.to_string(),
                here(|cell| cell.overhead_ns.map(|cost| received(cost.count, cell.missing))),
            ]
        };
        Table::new(
            "Overhead of a stamp for a packet, in user space",
            &[
                "",
                "mean here (ns)",
                "in the paper",
                "deviation here (ns)",
                "variance here (ns²)",
                "“variance [ns]” in the paper",
                "packets here",
            ],
            self.published.iter().map(row).collect(),
        )
    }

    /// The distribution of the overheads of each method with each pattern.
    pub(super) fn distributions(&self) -> Table {
        let row = |cell: &CellFindings| {
            let name = format!("{}, {}", cell.pattern.name(), cell.method.name());
            let values = cell.overhead_ns.map_or(vec![NOTHING.to_owned(); 6], |cost| {
                let values = [cost.min, cost.p50, cost.p90, cost.p99, cost.p999, cost.max];
                values.map(|value| format!("{value:.1}")).to_vec()
            });
            [vec![name], values].concat()
        };
        Table::new(
            "Distribution of the overhead (ns)",
            &["", "least", "median", "90 %", "99 %", "99.9 %", "most"],
            self.cells.iter().map(row).collect(),
        )
    }

    /// What a stamp adds to a program in the softIRQ.
    pub(super) fn in_the_softirq(&self) -> Table {
        let row = |added: &Added| {
            vec![added.stamp.clone(), added.added_ns.map_or(NOTHING.to_owned(), estimate)]
        };
        Table::new(
            "What a stamp adds to a frame, in the softIRQ",
            &["", "above no stamp (ns)"],
            self.softirq.iter().map(row).collect(),
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

    /// What the method, the pattern, and both together do to mean and deviation.
    pub(super) fn effects(&self) -> Table {
        let row = |(mean, deviation): (&Effect, &Effect)| {
            let levels: Vec<_> = mean.levels.iter().map(|(_, level)| level.as_str()).collect();
            vec![levels.join(" with "), estimate(mean.effect), estimate(deviation.effect)]
        };
        let effects = self.effects_on_mean.iter().zip(&self.effects_on_deviation);
        Table::new(
            "Main effects, and interactions of two: away from the mean of all runs",
            &["", "on the mean (ns)", "on the deviation (ns)"],
            effects.map(row).collect(),
        )
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
