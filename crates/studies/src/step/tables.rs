//! The findings as tables, for the page and for the terminal alike.

use super::detection::DetectionCount;
use super::findings::{OfTechnique, StepResult};
use super::paper::{HARDWARE_ERROR_NS, SOFTWARE_INTERVAL_NS, STEP_NS};
use crate::experiment::Estimate;
use wirestamp_report::Table;
use wirestamp_report::format::{NOTHING, count, duration, optional, percent};

impl StepResult {
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
            let in_few = optional(of.smallest_in_a_tenth_ns, duration);
            let in_all = optional(of.smallest_ns, duration);
            vec![of.technique.clone(), NOTHING.to_owned(), in_few, in_all]
        };
        Table::new(
            "Smallest step detected with 99 % probability, at 1 % false alarms",
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
            "Power of the test: share of the steps added to each run that were detected; threshold from the other runs",
            &heads.iter().map(String::as_str).collect::<Vec<_>>(),
            self.techniques.iter().map(row).collect(),
        )
    }

    /// The steps that the sender made, as they were measured.
    pub(super) fn made(&self) -> Table {
        let steps = self.techniques.iter().flat_map(|of| of.steps.iter().map(move |it| (of, it)));
        let time = |estimate: Option<Estimate>| optional(estimate, |it| it.text(duration));
        Table::of(
            &format!("Steps made by the sender; the paper's is {STEP_NS} ns"),
            steps,
            &[
                ("", &|(of, it)| format!("{}, {}", of.technique, duration(it.true_ns.into()))),
                ("measured", &|(_, it)| time(it.measured_ns)),
                ("chance, once in 100", &|(_, it)| time(it.chance_ns)),
                ("found, runs", &|(_, it)| {
                    format!("{} of {}", count(it.found.found), count(it.found.of))
                }),
            ],
        )
    }

    /// Replicas that were not measured; only techniques that have some.
    pub(super) fn losses(&self) -> Table {
        let has_some = |of: &&OfTechnique| of.lost.iter().sum::<u64>() > 0;
        Table::of(
            "Replicas that were not measured, by cause",
            self.techniques.iter().filter(has_some),
            &[
                ("", &|of| of.technique.clone()),
                ("lost by the captures", &|of| count(of.lost[0])),
                ("dropped by the interfaces", &|of| count(of.lost[1])),
                ("unexplained", &|of| count(of.lost[2])),
            ],
        )
    }
}

fn share(DetectionCount { found, of }: DetectionCount) -> String {
    percent(found, of)
}
