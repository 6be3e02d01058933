//! A capture's summary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wirestamp_capture::tune::Report;
use wirestamp_capture::{Facts, Ledger};
use wirestamp_study::Figures;

use super::tune;
use crate::output::{mean, time};
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
            "{} packets, {} bytes on {}, stamped with {} {}",
            figures.packets, figures.bytes, facts.interface, facts.clock, facts.taken
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
        if let Some(anchors) = figures.anchors {
            let _ = writeln!(text, "{} anchors kept to convert the stamps again", anchors.written);
            if anchors.gaps > 0 {
                let _ = writeln!(
                    text,
                    "{} times no anchor was kept for more than half a minute; stamps in between \
                     will keep their time",
                    anchors.gaps
                );
            }
        }
        text.extend(self.tuned.as_ref().map(tune::text));
        text + &tap::complaints(ledger)
    }
}
