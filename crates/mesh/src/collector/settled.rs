//! Final results, and outcomes of deliveries.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use wirestamp_clock::{Time, Utc};

use super::{BatchInHours, Flow, Window};
use crate::protocol::Count;

/// Final results; never revised.
#[derive(Debug)]
pub struct Settled {
    /// Everything before this time is final.
    pub until: Time<Utc>,
    /// New windows by begin, without empty ones.
    ///
    /// A packet belongs to the window in which it passed A; if only B observed it, in which it passed B.
    pub windows: BTreeMap<Time<Utc>, Window>,
    /// Results of a single point.
    pub point_results: PointResults,
    /// Last batches of A and B that can be acknowledged once the windows are stored.
    pub acknowledged: [u64; 2],
    /// Packets that the probes of A and B dropped, in the batches that can be acknowledged now.
    pub dropped: [u64; 2],
    /// Packets that are in no window because theirs was final already: stamps went back further than allowed, or the
    /// window length changed.
    pub late: u64,
    /// Batches that can be acknowledged now and whose observations are archived, those of each point in order.
    pub observed: Vec<BatchInHours>,
}

impl Settled {
    /// No results; only the time advances.
    pub(crate) fn nothing(until: Time<Utc>) -> Self {
        let (windows, point_results) = (BTreeMap::new(), PointResults::default());
        let (acknowledged, dropped, late, observed) = ([0; 2], [0; 2], 0, Vec::new());
        Self { until, windows, point_results, acknowledged, dropped, late, observed }
    }

    /// Begin of the first result.
    pub(super) fn first(&self) -> Option<Time<Utc>> {
        let counted = self.point_results.counts.iter().map(|count| count.begin);
        let followed = self.point_results.flows.iter().map(|flow| flow.last);
        self.windows.keys().copied().chain(counted).chain(followed).min()
    }
}

/// Contents of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointResults {
    /// Counts, to be added to earlier ones.
    pub counts: Vec<Count>,
    /// Flows; each replaces its earlier report.
    pub flows: Vec<Flow>,
}

/// Outcome of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The batch was taken.
    Taken,
    /// The batch was a duplicate.
    Duplicate,
    /// The batch with this number must come first.
    Expected(u64),
}

impl Delivery {
    /// Outcome for batches `numbers` when `expected` is next.
    pub(super) fn of(numbers: &RangeInclusive<u64>, expected: u64) -> Self {
        if *numbers.end() < expected {
            Self::Duplicate
        } else if *numbers.start() > expected {
            Self::Expected(expected)
        } else {
            Self::Taken
        }
    }
}
