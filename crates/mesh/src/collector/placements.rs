//! Placements of tasks that move between collectors, and the start of their epochs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::warn;
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

use super::results::{Begun, Handover, PointBegin};
use super::{Results, WINDOW};

/// Placement of a task at this collector. Tasks without one are here, in epoch 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskEpoch {
    /// Rises with each move of the task.
    pub epoch: u64,
    /// The task is at another collector now. Its results are kept.
    pub is_former: bool,
}

/// Placements of tasks that have moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskEpochs {
    /// Newest placement by task number.
    pub placed: BTreeMap<u64, TaskEpoch>,
    /// Begins of tasks at other collectors, after they had been here.
    pub handovers: Vec<(u64, Handover)>,
}

/// What a probe states about earlier placements of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlierDelivery {
    /// Epoch of the placement that the probe has; none if it is of an earlier version.
    pub epoch: Option<u64>,
    /// All results before this time are stored, in nanoseconds since 1970 (UTC); none if it has no such receipt.
    pub settled_until: Option<i64>,
    /// Begin of the observations in its first batch, in nanoseconds since 1970 (UTC); none without batches.
    pub begin: Option<i64>,
}

/// Epochs that have begun, by task and epoch.
pub type AllBegun = BTreeMap<(u64, u64), Begun>;

/// Opening of a point in a new epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointOpening {
    pub(super) spool: i64,
    pub(super) first: u64,
    pub(super) earlier: EarlierDelivery,
}

/// Openings of the points of a task whose epoch has not begun.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WaitingOpenings {
    pub(super) epoch: u64,
    pub(super) points: [Option<PointOpening>; 2],
}

/// Epochs of a collector's tasks.
pub(super) struct Epochs {
    pub(super) placed: watch::Receiver<Arc<TaskEpochs>>,
    /// By task.
    pub(super) waiting: Mutex<HashMap<u64, WaitingOpenings>>,
    /// Epochs that have begun here.
    pub(super) begun: watch::Sender<Arc<AllBegun>>,
}

impl Epochs {
    /// The epochs that have begun, as stored. No task has moved yet.
    pub(super) fn of(results: &Results) -> Self {
        let begun = results.begun().unwrap_or_else(|error| {
            warn!("cannot read which tasks moved here: {error}");
            Vec::new()
        });
        let begun: AllBegun = begun.into_iter().map(|it| ((it.task, it.epoch), it)).collect();
        let placed = watch::channel(Arc::default()).1;
        Self { placed, waiting: Mutex::default(), begun: watch::Sender::new(Arc::new(begun)) }
    }
}

impl PointOpening {
    pub(super) fn begin(&self, point: Point) -> PointBegin {
        let Self { spool, first, .. } = *self;
        let is_unknown = self.earlier.settled_until.is_none();
        PointBegin { point, spool, behind: first.saturating_sub(1), is_unknown }
    }
}

/// Start of an epoch with these openings, in nanoseconds since 1970 (UTC).
pub(super) fn start(openings: &[(Point, PointOpening)]) -> Option<i64> {
    let settled = openings.iter().map(|(_, it)| it.earlier.settled_until);
    match openings {
        // Without a receipt, all that is in the spool belongs to this collector, and everything before it to others.
        [(_, PointOpening { first, earlier, .. })] => {
            earlier.settled_until.or_else(|| earlier.begin.filter(|_| *first <= 1))
        }
        // Batches that were acknowledged without a time may be missing: results of earlier collectors count.
        _ if openings.iter().any(|(_, it)| it.earlier.settled_until.is_none() && it.first > 1) => {
            None
        }
        // Without any receipt, this collector computes all windows of these spools.
        _ => settled.flatten().max().or_else(|| {
            let begins = openings.iter().map(|(_, it)| it.earlier.begin);
            let first = begins.collect::<Option<Vec<_>>>()?.into_iter().min()?;
            Some(Time::<Utc>::from_nanos(first).interval_begin(WINDOW).as_nanos())
        }),
    }
}
