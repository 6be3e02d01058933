//! Values of a document from which its claims are computed.

use serde::Deserialize;

use super::findings::{CellFindings, OverheadResult};
use super::kernel_stamp::AddedByClock;
use super::paper::{Method, Traffic};

/// What the claims are computed from.
#[derive(Deserialize)]
pub(super) struct Measured {
    /// Of the runs in user space. The interval of an estimate is that of this number.
    pub(super) repetitions: u32,
    /// The step of the counter, in nanoseconds.
    pub(super) step_ns: f64,
    /// User space.
    pub(super) cells: Vec<CellFindings>,
    /// The first stamp of each packet in the softIRQ, and a second one just after it.
    pub(super) cells_in_softirq: Vec<CellFindings>,
    pub(super) cells_in_softirq_again: Vec<CellFindings>,
    /// Events of the kernel.
    #[serde(default)]
    pub(super) kernel_stamps: ClocksOfEvents,
}

/// The clocks of the kernel's events.
#[derive(Default, Deserialize)]
pub(super) struct ClocksOfEvents {
    /// What each adds to an event above the counter, ktime first; empty if no events were recorded.
    #[serde(default)]
    pub(super) clocks: Vec<AddedByClock>,
}

impl Measured {
    /// From the results of this number of repetitions.
    pub(super) fn of(found: &OverheadResult, repetitions: u32) -> Self {
        Self {
            repetitions,
            step_ns: found.step_ns,
            cells: found.cells.clone(),
            cells_in_softirq: found.cells_in_softirq.clone(),
            cells_in_softirq_again: found.cells_in_softirq_again.clone(),
            kernel_stamps: ClocksOfEvents { clocks: found.kernel_stamps.clocks.clone() },
        }
    }

    /// What ktime adds to an event above the counter.
    pub(super) fn ktime(&self) -> Option<&AddedByClock> {
        self.kernel_stamps.clocks.first()
    }

    /// Whether most overheads of each method and pattern in user space have one of two values.
    pub(super) fn has_two_values(&self) -> bool {
        let is_most = |cell: &CellFindings| cell.share_of_two_values.is_some_and(|it| it > 0.5);
        !self.cells.is_empty() && self.cells.iter().all(is_most)
    }
}

/// The cell of a method with a pattern.
pub(super) fn cell(
    cells: &[CellFindings],
    method: Method,
    pattern: Traffic,
) -> Option<&CellFindings> {
    cells.iter().find(|cell| (cell.method, cell.pattern) == (method, pattern))
}
