//! The findings as tables, for the page and for the terminal alike.

use super::findings::{CellFindings, LossStudyResult};
use super::paper::PACKETS;
use super::rounds::{CORES, Condition, LossStudyScale};
use crate::experiment::Effect;
use wirestamp_report::Table;
use wirestamp_report::estimate::decimal;
use wirestamp_report::format::{count, duration, optional, real};

impl LossStudyResult {
    /// The loss of every way to capture under every condition.
    pub(super) fn losses(&self, size: LossStudyScale, busy_core: bool) -> Table {
        let conditions = size.frame_bytes.iter().flat_map(|&frame_bytes| {
            let of = move |&gap_ns| Condition { method: 0, frame_bytes, gap_ns, busy_core };
            size.gaps_ns.iter().map(of)
        });
        let row = |condition: Condition| {
            let cells: Vec<_> = (0..self.methods.len())
                .map(|method| self.cell(Condition { method, ..condition }))
                .collect();
            let first = [
                format!("{} bytes", condition.frame_bytes),
                gap(condition.gap_ns),
                of(cells.first().copied().flatten(), sent),
            ];
            let losses = cells.iter().map(|cell| of(*cell, loss));
            first.into_iter().chain(losses).collect()
        };
        let methods = self.methods.iter().map(String::as_str);
        let heads: Vec<_> =
            ["frame", "gap", "packets a second, at the first"].into_iter().chain(methods).collect();
        let core = CORES[usize::from(busy_core)];
        Table::new(
            &format!("Packets lost of {} (%), on a core that is {core}", count(PACKETS)),
            &heads,
            conditions.map(row).collect(),
        )
    }

    /// Where the packets of each way to capture went, under all conditions together.
    pub(super) fn accounts(&self) -> Table {
        let sum = |cells: &[&CellFindings], of: fn(&CellFindings) -> u64| {
            count(cells.iter().map(|cell| of(cell)).sum())
        };
        let rows = self.methods.iter().map(|method| {
            (method, self.cells.iter().filter(|cell| cell.method == *method).collect::<Vec<_>>())
        });
        Table::of(
            "Packets by outcome",
            rows,
            &[
                ("", &|(method, _)| (*method).clone()),
                ("sent", &|(_, cells)| sum(cells, |cell| cell.sent)),
                ("dropped by the interface", &|(_, cells)| {
                    sum(cells, |cell| cell.interface_dropped)
                }),
                ("dropped, buffer full", &|(_, cells)| {
                    optional(cells.iter().map(|cell| cell.kernel_dropped).sum(), count)
                }),
                ("captured", &|(_, cells)| sum(cells, |cell| cell.captured)),
                ("unaccounted for", &|(_, cells)| {
                    let unaccounted: Option<i64> = cells.iter().map(|cell| cell.unaccounted).sum();
                    optional(unaccounted, |it| it.to_string().replace('-', "\u{2212}"))
                }),
            ],
        )
    }

    /// Effects of method, size, gap and core, each alone, and each with the method.
    pub(super) fn effects(&self) -> Table {
        let name = |effect: &Effect| {
            let levels = effect.levels.iter().map(|(factor, level)| format!("{factor} {level}"));
            levels.collect::<Vec<_>>().join(" with ")
        };
        let is_shown = |effect: &&Effect| {
            effect.levels.len() == 1 || effect.levels.iter().any(|(factor, _)| factor == "method")
        };
        Table::of(
            "Main effects, and interactions with the method: difference from the mean of all rounds",
            self.effects_on_loss_percent.iter().filter(is_shown),
            &[
                ("", &|effect| name(effect)),
                ("on the loss (percentage points)", &|effect| decimal(effect.effect, 2)),
            ],
        )
    }
}

fn of(cell: Option<&CellFindings>, text: fn(&CellFindings) -> Option<String>) -> String {
    optional(cell.and_then(text), |text| text)
}

fn loss(cell: &CellFindings) -> Option<String> {
    cell.loss_percent.map(|loss| decimal(loss, 2))
}

fn sent(cell: &CellFindings) -> Option<String> {
    cell.packets_per_second.map(|rate| decimal(rate, 0))
}

fn gap(gap_ns: u64) -> String {
    if gap_ns == 0 { "none".to_owned() } else { duration(real(gap_ns)) }
}
