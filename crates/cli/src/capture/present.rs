//! A capture's summary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wirestamp_capture::tune::Report;
use wirestamp_capture::{Facts, Ledger};
use wirestamp_session::Figures;

use super::tune;
use crate::output::{mean, things, time};
use crate::tap;

/// The document of `capture --json`.
#[derive(Serialize)]
pub(super) struct Summary {
    #[serde(flatten)]
    facts: Facts,
    #[serde(flatten)]
    figures: Figures,
    dropped: Dropped,
    ledger: Ledger,
    balanced: bool,
    file: Option<PathBuf>,
    /// What was changed of the machine, with `--tune=apply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tuned: Option<Report>,
}

#[derive(Serialize)]
struct Dropped {
    interface: u64,
    kernel: u64,
    consumer: u64,
}

impl Summary {
    pub(super) fn new(facts: Facts, figures: Figures, ledger: Ledger, file: Option<&Path>) -> Self {
        let dropped = Dropped {
            interface: ledger.interface_dropped,
            kernel: ledger.kernel_dropped,
            consumer: ledger.consumer_dropped,
        };
        let (balanced, file) = (ledger.balances(), file.map(Path::to_owned));
        Self { facts, figures, dropped, ledger, balanced, file, tuned: None }
    }

    /// The same with what was changed of the machine.
    pub(super) fn tuned(self, tuned: Option<Report>) -> Self {
        Self { tuned, ..self }
    }

    pub(super) fn text(&self) -> String {
        let Self { facts, figures, dropped, ledger, .. } = self;
        let mut text = format!(
            "{}, {} on {}, stamped with {} {}",
            things(figures.packets, "packet"),
            things(figures.bytes, "byte"),
            facts.interface,
            facts.clock,
            facts.taken
        );
        if let Some(error) = figures.error_ns {
            let _ = write!(text, ", within {} of system time", time(error));
        }
        text.push('\n');
        if let Some(times) = figures.interarrival_ns.distribution().summary() {
            let _ = writeln!(
                text,
                "between packets: mean {}, median {}, 99 % within {}, longest {}",
                mean(times.mean),
                time(times.p50),
                time(times.p99),
                time(times.max)
            );
        }
        if let Some(lag) = tap::lag(figures) {
            let _ = writeln!(text, "stamps were taken {lag}");
        }
        let _ = writeln!(
            text,
            "dropped: {} by the interface, {} by the kernel (ring or queue full), {} by the consumer",
            dropped.interface, dropped.kernel, dropped.consumer
        );
        text += &elsewhere(ledger);
        if let Some(anchors) = figures.anchors {
            let _ = writeln!(
                text,
                "{} kept to convert the stamps again",
                things(anchors.written, "anchor")
            );
            if anchors.gaps > 0 {
                let _ = writeln!(
                    text,
                    "{} no anchor was kept for more than half a minute; stamps in between will \
                     keep their time",
                    things(anchors.gaps.into(), "time")
                );
            }
        }
        text.extend(self.tuned.as_ref().map(tune::text));
        text + &tap::complaints(ledger)
    }
}

/// Where else packets went that are not in the file, a line each.
fn elsewhere(ledger: &Ledger) -> String {
    let went = [
        (
            ledger.fill_ring_empty,
            "of those dropped by the kernel found the AF_XDP fill ring empty; some drivers count \
             them as dropped by the interface too",
        ),
        (ledger.left_behind, "left in the ring or queue at the end, and lost"),
        (ledger.filtered, "refused by the filter after the kernel"),
        (ledger.surplus, "came after the count that was asked for"),
    ];
    let lines = went.iter().filter(|(packets, _)| *packets > 0);
    lines
        .map(|(packets, where_to)| format!("{} {where_to}\n", things(*packets, "packet")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_miss_the_file_has_a_line_and_only_if_a_packet_went_it() {
        let lines = |ledger| elsewhere(&ledger).lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(lines(Ledger { seen: 3, delivered: 3, ..Ledger::default() }).is_empty());
        let all = Ledger {
            fill_ring_empty: 1,
            left_behind: 2,
            filtered: 3,
            surplus: 4,
            ..Ledger::default()
        };
        let said = lines(all);
        for (number, about) in (1..).zip(["fill ring", "left in", "filter", "count"]) {
            let begins = format!("{} ", things(number, "packet"));
            let found = said.iter().find(|line| line.starts_with(&begins));
            assert!(found.is_some_and(|line| line.contains(about)), "{about}: {said:?}");
        }
    }
}
