//! The findings as tables, for the page and for the terminal alike.

use super::detection::Found;
use super::findings::{Findings, OfTechnique, Step};
use super::paper::{HARDWARE_ERROR_NS, SOFTWARE_INTERVAL_NS, STEP_NS};
use crate::experiment::Estimate;
use wirestamp_report::Table;
use wirestamp_report::format::{NOTHING, count, duration, percent};

impl Findings {
    /// The smallest step that each technique finds, below what the paper says.
    pub(super) fn smallest(&self) -> Table {
        let packets = u64::from(self.packets);
        let published = [
            (
                "paper: hardware stamps of an Intel I350, one packet",
                format!("±{}", duration(HARDWARE_ERROR_NS)),
            ),
            ("paper: software stamps, one packet", duration(SOFTWARE_INTERVAL_NS)),
        ];
        let published = published.map(|(name, number)| {
            vec![name.to_owned(), number, NOTHING.to_owned(), NOTHING.to_owned()]
        });
        let row = |of: &OfTechnique| {
            let in_few = of.smallest_in_a_tenth_ns.map_or(NOTHING.to_owned(), duration);
            let in_all = of.smallest_ns.map_or(NOTHING.to_owned(), duration);
            vec![of.technique.clone(), NOTHING.to_owned(), in_few, in_all]
        };
        Table::new(
            "The smallest step that is found 99 times in 100, where nothing is found once in 100",
            &[
                "",
                "fluctuation in the paper",
                &format!("in {} packets", count(packets / 10)),
                &format!("in {} packets", count(packets)),
            ],
            published.into_iter().chain(self.techniques.iter().map(row)).collect(),
        )
    }

    /// How often steps of known sizes were found in the same data.
    pub(super) fn power(&self) -> Table {
        let sizes = self.techniques.first().map(|of| of.checks.as_slice()).unwrap_or_default();
        let heads = sizes.iter().map(|check| match check.of_smallest {
            0.0 => "no step".to_owned(),
            size => format!("{size} of the smallest"),
        });
        let heads: Vec<_> = std::iter::once(String::new()).chain(heads).collect();
        let row = |of: &OfTechnique| {
            let shares = of.checks.iter().map(|check| share(check.found));
            std::iter::once(of.technique.clone()).chain(shares).collect()
        };
        Table::new(
            "Power of the test: how often steps put into each run were found, by what chance does in the others",
            &heads.iter().map(String::as_str).collect::<Vec<_>>(),
            self.techniques.iter().map(row).collect(),
        )
    }

    /// The steps that the sender made, as they were measured.
    pub(super) fn made(&self) -> Table {
        let row = |of: &OfTechnique, step: &Step| {
            let Found { found, of: runs } = step.found;
            vec![
                format!("{}, {}", of.technique, duration(step.true_ns.into())),
                step.measured_ns.map_or(NOTHING.to_owned(), with),
                step.chance_ns.map_or(NOTHING.to_owned(), with),
                format!("{} of {}", count(found), count(runs)),
            ]
        };
        let rows = self.techniques.iter().flat_map(|of| of.steps.iter().map(move |it| row(of, it)));
        Table::new(
            &format!("Steps that the sender made; the paper's is {STEP_NS} ns"),
            &["", "measured", "chance, once in 100", "found, runs"],
            rows.collect(),
        )
    }

    /// Replicas that were not measured; only techniques that have some.
    pub(super) fn losses(&self) -> Table {
        let has_some = |of: &&OfTechnique| of.lost.iter().sum::<u64>() > 0;
        let row = |of: &OfTechnique| {
            std::iter::once(of.technique.clone()).chain(of.lost.map(count)).collect()
        };
        Table::new(
            "Replicas that were not measured, by the ledgers of the captures",
            &["", "lost by the captures", "dropped by the interfaces", "unexplained"],
            self.techniques.iter().filter(has_some).map(row).collect(),
        )
    }
}

fn share(Found { found, of }: Found) -> String {
    percent(found, of)
}

/// With the interval of 95 % confidence.
fn with(Estimate { mean, ci95 }: Estimate) -> String {
    match ci95 {
        Some(ci95) => format!("{} ± {}", duration(mean), duration(ci95)),
        None => duration(mean),
    }
}
