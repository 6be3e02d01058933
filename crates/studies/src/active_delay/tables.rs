//! The findings as tables, for the page and for the terminal alike.

use super::findings::{ActiveDelayResult, CellFindings};
use super::paper::{Published, SENT};
use crate::experiment::{Estimate, effects_table};
use wirestamp_report::Table;
use wirestamp_report::format::{count, duration, optional, percent};

impl ActiveDelayResult {
    /// Active beside passive measurement, here and in the report.
    pub(super) fn compared(&self) -> Table {
        let here = self.cells.iter().filter(|cell| cell.runs > 0).map(of_cell);
        let published = (1..).zip(&self.published).map(|(number, test)| of_paper(number, test));
        Table::new(
            "Active minus passive delay of the same packets (paper: 600 bytes, 4167 a second)",
            &[
                "",
                "lost",
                "received, active",
                "passive",
                "mean, passive",
                "difference of the min",
                "of the mean",
                "of the max",
                "least, active",
            ],
            here.chain(published).collect(),
        )
    }

    /// Effects of frame size and rate on the difference of the means.
    pub(super) fn effects(&self) -> Table {
        let on = "on the difference of the mean delays";
        effects_table(&[(on, &self.effects_on_mean_difference)], |it| it.text(duration))
    }
}

fn of_cell(cell: &CellFindings) -> Vec<String> {
    let [active, passive] = cell.received;
    let [least, mean, longest] = cell.difference_ns;
    let estimate = |of: Option<Estimate>| optional(of, |it| it.text(duration));
    vec![
        format!("here: {}", cell.name),
        percent(cell.sent.saturating_sub(passive), cell.sent),
        count(active),
        count(passive),
        optional(cell.mean_ns, duration),
        estimate(least),
        estimate(mean),
        estimate(longest),
        optional(cell.least_ns, duration),
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
