//! The findings as tables, for the page and for the terminal alike.

use super::findings::{CellFindings, Effects, Findings, Unit};
use super::paper::{FIGURE_2, FIGURES_5_AND_6};
use crate::experiment::{Effect, Estimate, Sign};
use wirestamp_report::Table;
use wirestamp_report::format::{NOTHING, count, duration};

/// How many interactions are shown; all are in the document.
const INTERACTIONS: usize = 12;

impl Findings {
    /// How far stamps fluctuate, in the paper and here.
    pub(super) fn beside_the_paper(&self) -> Table {
        let here = |technique: &str| {
            let cell = self.cell(technique, FIGURE_2, false);
            let fluctuation = cell.and_then(|cell| cell.fluctuation_ns);
            [
                format!("here: {technique}, {} bytes, {}, idle", FIGURE_2.0, FIGURE_2.1),
                half(fluctuation),
            ]
        };
        let published = self.published.iter().map(|row| {
            let name = format!("{}: {}", row.place, row.stamps);
            [name, format!("±{}", duration(row.fluctuation_ns))]
        });
        let rows = published.chain(self.techniques.iter().map(|name| here(name)));
        Table::new(
            "How far the measured delay fluctuates where the true one is known",
            &["", "fluctuation"],
            rows.map(Vec::from).collect(),
        )
    }

    /// The techniques under the conditions of Figures 5 and 6.
    pub(super) fn techniques(&self) -> Table {
        let row = |name: &String| {
            let cell = |stressed| self.cell(name, FIGURES_5_AND_6, stressed);
            let number = |stressed, of: fn(&CellFindings) -> Option<Estimate>, text: Text| {
                cell(stressed).and_then(of).map_or(NOTHING.to_owned(), text)
            };
            vec![
                name.clone(),
                number(false, |cell| cell.error_deviation_ns, time),
                number(true, |cell| cell.error_deviation_ns, time),
                number(false, |cell| cell.error_ns, time),
                number(true, |cell| cell.error_ns, time),
                number(false, |cell| cell.measured_percent, percent),
                number(true, |cell| cell.measured_percent, percent),
            ]
        };
        let (frame_bytes, speed) = FIGURES_5_AND_6;
        Table::new(
            &format!("Figures 5 and 6: {frame_bytes} bytes at {speed}"),
            &[
                "",
                "deviation of the error, idle",
                "stress",
                "mean error, idle",
                "stress",
                "packets measured, idle (%)",
                "stress",
            ],
            self.techniques.iter().map(row).collect(),
        )
    }

    /// Everything that was measured of each cell.
    pub(super) fn cells(&self) -> Table {
        let row = |cell: &CellFindings| {
            let text = |of: Option<Estimate>, text: Text| of.map_or(NOTHING.to_owned(), text);
            vec![
                cell.conditions(),
                text(cell.packets_per_second, |it| format!("{:.0}", it.mean)),
                text(cell.measured_percent, percent),
                text(cell.delay_ns, time),
                text(cell.delay_deviation_ns, time),
                text(cell.error_ns, time),
                text(cell.error_deviation_ns, time),
            ]
        };
        Table::new(
            "Every cell",
            &[
                "",
                "packets a second",
                "measured (%)",
                "mean delay",
                "its deviation",
                "mean error",
                "its deviation",
            ],
            self.cells.iter().map(row).collect(),
        )
    }

    /// Where replicas went that were not seen; only cells that have some.
    pub(super) fn losses(&self) -> Table {
        let has_some = |cell: &&CellFindings| {
            cell.captures_lost + cell.interfaces_dropped + cell.unexplained + cell.stamped_late > 0
        };
        let row = |cell: &CellFindings| {
            let counts =
                [cell.captures_lost, cell.interfaces_dropped, cell.unexplained, cell.stamped_late];
            let sent = count(2 * cell.sent);
            [vec![cell.conditions(), sent], counts.map(count).to_vec()].concat()
        };
        Table::new(
            "Where replicas went that were not measured, by the ledgers of the captures",
            &[
                "",
                "replicas sent",
                "lost by the captures",
                "dropped by the interfaces",
                "unexplained",
                "stamped late",
            ],
            self.cells.iter().filter(has_some).map(row).collect(),
        )
    }

    /// What each level does to the three responses.
    pub(super) fn main_effects(&self) -> Table {
        let levels = self.effects.iter().map(|it| it.of_levels.as_slice());
        let most = levels.max_by_key(|of_levels| of_levels.len()).unwrap_or_default();
        let mains = most.iter().enumerate().filter(|(_, effect)| effect.levels.len() == 1);
        let row = |(index, effect): (usize, &Effect)| {
            let on = |effects: &Effects| {
                let effect =
                    effects.of_levels.get(index).map(|it| (effects.unit.text())(it.effect));
                effect.unwrap_or_else(|| NOTHING.to_owned())
            };
            [vec![name(effect)], self.effects.iter().map(on).collect()].concat()
        };
        let heads: Vec<_> = self.effects.iter().map(|effects| effects.on).collect();
        Table::new(
            "Main effects: away from the mean of all runs",
            &[&[""], heads.as_slice()].concat(),
            mains.map(row).collect(),
        )
    }

    /// The largest interactions of two levels that are more than chance.
    pub(super) fn interactions(&self) -> Table {
        let of = |effects: &Effects| {
            let mut sure: Vec<_> =
                effects.of_levels.iter().filter(|it| it.levels.len() == 2).collect();
            sure.retain(|it| it.effect.sign() != Sign::Open);
            sure.sort_by(|a, b| b.effect.mean.abs().total_cmp(&a.effect.mean.abs()));
            sure.truncate(INTERACTIONS);
            let row = |it: &&Effect| {
                vec![name(it), effects.on.to_owned(), (effects.unit.text())(it.effect)]
            };
            sure.iter().map(row).collect::<Vec<_>>()
        };
        Table::new(
            "Interactions of two: the largest of those that are not chance (95 %)",
            &["", "on", "beyond both main effects"],
            self.effects.iter().flat_map(of).collect(),
        )
    }
}

type Text = fn(Estimate) -> String;

impl Unit {
    fn text(self) -> Text {
        match self {
            Self::Percent => percent,
            Self::Nanoseconds => time,
        }
    }
}

/// The levels of an effect in words.
fn name(effect: &Effect) -> String {
    let levels: Vec<_> = effect.levels.iter().map(|(_, level)| level.as_str()).collect();
    levels.join(" with ")
}

fn half(fluctuation: Option<Estimate>) -> String {
    fluctuation.map_or(NOTHING.to_owned(), |it| format!("±{}", duration(it.mean)))
}

fn time(estimate: Estimate) -> String {
    with(estimate, duration)
}

fn percent(estimate: Estimate) -> String {
    with(estimate, |percent| format!("{percent:.2}").replace('-', "\u{2212}"))
}

/// With the interval of 95 % confidence.
fn with(Estimate { mean, ci95 }: Estimate, text: fn(f64) -> String) -> String {
    match ci95 {
        _ if !mean.is_finite() => NOTHING.to_owned(),
        Some(ci95) => format!("{} ± {}", text(mean), text(ci95)),
        None => text(mean),
    }
}
