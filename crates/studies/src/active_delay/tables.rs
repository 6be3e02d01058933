//! The findings as tables, for the page and for the terminal alike.

use super::findings::{CellFindings, Findings};
use super::paper::{Published, SENT};
use crate::experiment::{Effect, Estimate};
use wirestamp_report::Table;
use wirestamp_report::format::{NOTHING, count, duration, percent};

impl Findings {
    /// Active beside passive measurement, here and in the report.
    pub(super) fn compared(&self) -> Table {
        let here = self.cells.iter().filter(|cell| cell.runs > 0).map(of_cell);
        let published = (1..).zip(&self.published).map(|(number, test)| of_paper(number, test));
        Table::new(
            "Active less passive, on the same packets (paper: 600 bytes, 4167 a second)",
            &[
                "",
                "lost",
                "received, active",
                "passive",
                "mean, passive",
                "difference of the least",
                "of the mean",
                "of the longest",
                "least, active",
            ],
            here.chain(published).collect(),
        )
    }

    /// What frame size and rate do to the difference of the means.
    pub(super) fn effects(&self) -> Table {
        let row = |Effect { levels, effect }: &Effect| {
            let levels: Vec<_> = levels.iter().map(|(_, level)| level.as_str()).collect();
            vec![levels.join(" with "), estimate(Some(*effect))]
        };
        Table::new(
            "Main effects, and interactions of two: away from the mean of all runs",
            &["", "on the difference of the mean delays"],
            self.effects_on_mean_difference.iter().map(row).collect(),
        )
    }
}

fn of_cell(cell: &CellFindings) -> Vec<String> {
    let [active, passive] = cell.received;
    let [least, mean, longest] = cell.difference_ns;
    let text = |ns: Option<f64>| ns.map_or_else(|| NOTHING.to_owned(), duration);
    vec![
        format!("here: {}", cell.name),
        percent(cell.sent.saturating_sub(passive), cell.sent),
        count(active),
        count(passive),
        text(cell.mean_ns),
        estimate(least),
        estimate(mean),
        estimate(longest),
        text(cell.least_ns),
    ]
}

fn of_paper(number: u32, test: &Published) -> Vec<String> {
    let ms = |ms: f64| duration(ms * 1e6);
    let [active, passive] = test.received;
    let [least, mean, longest] = test.differences_ms();
    vec![
        format!("paper: test {number}"),
        percent((SENT - passive).into(), SENT.into()),
        count(active.into()),
        count(passive.into()),
        ms(test.mean_ms[1]),
        ms(least),
        ms(mean),
        ms(longest),
        ms(test.min_ms[0]),
    ]
}

/// With the interval of 95 % confidence.
fn estimate(estimate: Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { mean, ci95: Some(ci95) }) => {
            format!("{} ± {}", duration(mean), duration(ci95))
        }
        Some(Estimate { mean, ci95: None }) => duration(mean),
        None => NOTHING.to_owned(),
    }
}
