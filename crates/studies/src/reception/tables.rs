//! The findings as tables, for the page and for the terminal alike.

use super::findings::{CellFindings, Effects, ReceptionResult, Unit};
use super::paper::{FIGURE_2, FIGURES_5_AND_6};
use crate::experiment::{Effect, Estimate, Sign};
use wirestamp_report::Table;
use wirestamp_report::format::{count, duration, optional};

/// How many interactions are shown; all are in the document.
const INTERACTIONS: usize = 12;

impl ReceptionResult {
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
            "Error of the measured delay against the true one",
            &["", "fluctuation"],
            rows.map(Vec::from).collect(),
        )
    }

    /// The techniques under the conditions of Figures 5 and 6.
    pub(super) fn techniques(&self) -> Table {
        let number =
            |name: &String, stressed, of: fn(&CellFindings) -> Option<Estimate>, text: Text| {
                optional(self.cell(name, FIGURES_5_AND_6, stressed).and_then(of), text)
            };
        let deviation =
            |name: &String, stressed| number(name, stressed, |cell| cell.error_deviation_ns, time);
        let error = |name: &String, stressed| number(name, stressed, |cell| cell.error_ns, time);
        let measured =
            |name: &String, stressed| number(name, stressed, |cell| cell.measured_percent, percent);
        let (frame_bytes, speed) = FIGURES_5_AND_6;
        Table::of(
            &format!("Figures 5 and 6: {frame_bytes} bytes at {speed}"),
            self.techniques.iter(),
            &[
                ("", &|&name| name.clone()),
                ("deviation of the error, idle", &|name| deviation(name, false)),
                ("stress", &|name| deviation(name, true)),
                ("mean error, idle", &|name| error(name, false)),
                ("stress", &|name| error(name, true)),
                ("packets measured, idle (%)", &|name| measured(name, false)),
                ("stress", &|name| measured(name, true)),
            ],
        )
    }

    /// Everything that was measured of each cell.
    pub(super) fn cells(&self) -> Table {
        Table::of(
            "Every cell",
            self.cells.iter(),
            &[
                ("", &|cell| cell.conditions()),
                ("packets a second", &|cell| {
                    optional(cell.packets_per_second, |it| format!("{:.0}", it.mean))
                }),
                ("measured (%)", &|cell| optional(cell.measured_percent, percent)),
                ("mean delay", &|cell| optional(cell.delay_ns, time)),
                ("its deviation", &|cell| optional(cell.delay_deviation_ns, time)),
                ("mean error", &|cell| optional(cell.error_ns, time)),
                ("its deviation", &|cell| optional(cell.error_deviation_ns, time)),
            ],
        )
    }

    /// Where replicas went that were not seen; only cells that have some.
    pub(super) fn losses(&self) -> Table {
        let has_some = |cell: &&CellFindings| {
            cell.captures_lost + cell.interfaces_dropped + cell.unexplained + cell.stamped_late > 0
        };
        Table::of(
            "Replicas that were not measured, by cause",
            self.cells.iter().filter(has_some),
            &[
                ("", &|cell| cell.conditions()),
                ("replicas sent", &|cell| count(2 * cell.sent)),
                ("lost by the captures", &|cell| count(cell.captures_lost)),
                ("dropped by the interfaces", &|cell| count(cell.interfaces_dropped)),
                ("unexplained", &|cell| count(cell.unexplained)),
                ("stamped late", &|cell| count(cell.stamped_late)),
            ],
        )
    }

    /// Effects of each level on the three responses.
    pub(super) fn main_effects(&self) -> Table {
        let levels = self.effects.iter().map(|it| it.of_levels.as_slice());
        let most = levels.max_by_key(|of_levels| of_levels.len()).unwrap_or_default();
        let mains = most.iter().enumerate().filter(|(_, effect)| effect.levels.len() == 1);
        let row = |(index, effect): (usize, &Effect)| {
            let on = |effects: &Effects| {
                optional(effects.of_levels.get(index), |it| (effects.unit.text())(it.effect))
            };
            [vec![effect.name()], self.effects.iter().map(on).collect()].concat()
        };
        let heads: Vec<_> = self.effects.iter().map(|effects| effects.on).collect();
        Table::new(
            "Main effects: difference from the mean of all runs",
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
                vec![it.name(), effects.on.to_owned(), (effects.unit.text())(it.effect)]
            };
            sure.iter().map(row).collect::<Vec<_>>()
        };
        Table::new(
            "Interactions of two factors: the largest significant ones (95 %)",
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

fn half(fluctuation: Option<Estimate>) -> String {
    optional(fluctuation, |it| format!("±{}", duration(it.mean)))
}

fn time(estimate: Estimate) -> String {
    estimate.text(duration)
}

fn percent(estimate: Estimate) -> String {
    estimate.text(|percent| format!("{percent:.2}").replace('-', "\u{2212}"))
}
