//! The findings as tables, for the page and for the terminal alike.

use super::findings::{
    CellResult, LimitRateResult, ModelOfPart, SaturationPoint, SeriesResult, thousands,
};
use super::model::Area;
use super::paper::{PROCESSORS, Processor};
use crate::experiment::Estimate;
use wirestamp_report::Table;
use wirestamp_report::estimate::decimal;
use wirestamp_report::format::{NOTHING, count, optional, real};

impl LimitRateResult {
    /// The saturation points, here and in the report.
    pub(super) fn saturation(&self) -> Table {
        let here = self.saturation.iter().map(|of: &SaturationPoint| {
            let rate = optional(of.rate, in_thousands);
            let tasks = if of.tasks == "1" { "one task" } else { "four tasks" };
            let searches = of.reached + of.not_reached;
            vec![
                format!("here, {}, {tasks}", of.part_in_words),
                if of.reached == 0 && searches > 0 { format!("at least {rate}") } else { rate },
                match of.not_reached {
                    0 => count(searches),
                    beyond => format!("{}, not reached in {}", count(searches), count(beyond)),
                },
            ]
        });
        let there = PROCESSORS.map(|Processor { name, limit, .. }| {
            vec![format!("report: {name}"), decimal(alone(thousands(limit)), 1), NOTHING.to_owned()]
        });
        Table::new(
            "Saturation point, frames of 84 bytes",
            &["", "thousands a second", "searches"],
            here.chain(there).collect(),
        )
    }

    /// The model's numbers.
    pub(super) fn models(&self) -> Table {
        let row = |ModelOfPart { part_in_words, model, .. }: &ModelOfPart| {
            let Some(model) = model else {
                return [vec![part_in_words.clone()], vec![NOTHING.to_owned(); 6]].concat();
            };
            let rate = |rate: f64| decimal(alone(thousands(rate)), 0);
            let or_beyond = |it: Option<f64>| it.map_or_else(|| "not reached".to_owned(), rate);
            vec![
                part_in_words.clone(),
                format!("{:.2} + {:.3} × rate", model.idle_percent, 1000.0 * model.percent_per_pps),
                format!("{:.1}", 100.0 * model.explained),
                rate(model.highest_without_loss),
                or_beyond(model.lowest_with_loss),
                or_beyond(model.lowest_with_big_loss),
                rate(model.line_is_full_at),
            ]
        };
        Table::new(
            "The model, rates in thousands of frames a second",
            &[
                "part of the core",
                "CPU load without loss (%)",
                "explained (%)",
                "no loss up to",
                "loss from",
                "high loss from",
                "full core at, by the line",
            ],
            self.models.iter().map(row).collect(),
        )
    }
}

impl SeriesResult {
    /// A row for each line at each point, as the report's numeric results.
    pub(super) fn table(&self, heading: &str) -> Table {
        let percent = |it: Option<Estimate>| optional(it, |it| decimal(it, 2));
        let rate = |cell: &CellResult| {
            let limit = if cell.short_of_the_rate > 0 { ", the sender's limit" } else { "" };
            optional(cell.rate, in_thousands) + limit
        };
        let area = |area: Area| match area {
            Area::NoLoss => "no loss".to_owned(),
            Area::Sporadic => "sporadic".to_owned(),
            Area::Big => "big".to_owned(),
        };
        let [line, point] = self.factors;
        Table::of(
            heading,
            self.cells.iter(),
            &[
                (line, &|cell| cell.in_words[0].clone()),
                (point, &|cell| cell.in_words[1].clone()),
                ("thousands a second", &|cell| rate(cell)),
                ("delivered", &|cell| count(cell.sent)),
                ("captured", &|cell| count(cell.captured)),
                ("loss (%)", &|cell| percent(cell.loss_percent)),
                ("CPU load (%)", &|cell| percent(cell.load_percent)),
                ("area", &|cell| optional(cell.area, area)),
            ],
        )
    }
}

fn in_thousands(rate: Estimate) -> String {
    let Estimate { mean, ci95 } = rate;
    decimal(Estimate { mean: thousands(mean), ci95: ci95.map(thousands) }, 1)
}

fn alone(mean: f64) -> Estimate {
    Estimate { mean, ci95: None }
}

/// Frames of all trials that no counter explains.
pub(super) fn accounts(findings: &LimitRateResult) -> String {
    let cells = || findings.series.iter().flat_map(|series| &series.cells);
    let sum = |of: fn(&CellResult) -> u64| cells().map(of).sum::<u64>();
    let unaccounted: i64 = cells().map(|cell| cell.unaccounted).sum();
    let sent = sum(|cell| cell.sent);
    format!(
        "Of {} frames that were sent in all series, {} were captured, {} dropped because the probe's \
         memory was full, and {} by the interface before the probe ({:.4} %); {} are unaccounted for.",
        count(sent),
        count(sum(|cell| cell.captured)),
        count(sum(|cell| cell.kernel_dropped)),
        count(sum(|cell| cell.interface_dropped)),
        100.0 * real(sum(|cell| cell.interface_dropped)) / real(sent.max(1)),
        unaccounted.to_string().replace('-', "\u{2212}"),
    )
}
