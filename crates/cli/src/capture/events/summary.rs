//! The summary of recorded kernel events.

use std::fmt::Write as _;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_capture::events::{EventLedger, RecorderFacts};

use crate::output::things;

/// Recorded kernel events.
#[derive(Serialize, JsonSchema)]
pub(in crate::capture) struct EventSummary {
    /// The file of the events.
    file: PathBuf,
    #[serde(flatten)]
    facts: RecorderFacts,
    #[serde(flatten)]
    ledger: EventLedger,
    /// Whether each event has exactly one outcome: the kernel's counts and the reader's agree on each CPU.
    balanced: bool,
}

impl EventSummary {
    pub(super) fn new(file: PathBuf, facts: RecorderFacts, ledger: EventLedger) -> Self {
        let balanced = ledger.balances();
        Self { file, facts, ledger, balanced }
    }

    /// Whether each event has exactly one outcome.
    pub(in crate::capture) fn balances(&self) -> bool {
        self.balanced
    }

    pub(in crate::capture) fn text(&self) -> String {
        let Self { file, facts, ledger, .. } = self;
        let mut text = format!(
            "{} in {}, stamped by {}; {} lost\n",
            things(ledger.delivered, "kernel event"),
            file.display(),
            facts.clock,
            ledger.lost
        );
        for cpu in &ledger.cpus {
            let outcomes = [
                (cpu.overwritten, "overwritten in the full ring"),
                (cpu.no_room, "without room in the ring"),
                (cpu.undelivered, "read, but not written"),
                (cpu.left_behind, "left in the ring at the end"),
            ];
            for (events, outcome) in outcomes.into_iter().filter(|(events, _)| *events > 0) {
                let _ = writeln!(text, "{} of CPU {} {outcome}", things(events, "event"), cpu.cpu);
            }
        }
        if !self.balanced {
            text += "the counts of the kernel and of the recorder differ; report this\n";
        }
        text
    }
}
