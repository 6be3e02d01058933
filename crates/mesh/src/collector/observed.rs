//! Batches of observations that are archived: they wait for their acknowledgement, and are stored in its transaction.

use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::Point;

use super::side;
use crate::protocol::ObservationBatch;
use crate::task::Measure;

/// Observations are archived by hour.
const HOUR: Span = Span::from_secs(3600);

/// An acknowledged batch of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedBatch {
    /// Point of the task.
    pub point: Point,
    /// Spool number.
    pub spool: i64,
    /// Epoch of the placement in which it was received.
    pub epoch: u64,
    /// Its number; several if the probe dropped batches together.
    pub numbers: RangeInclusive<u64>,
    /// Batches before it are missing: the time before its end is not observed, unless it states its begin.
    pub is_unknown: bool,
    /// What it contains.
    pub content: ObservedContent,
}

/// A batch, and the begins of the hours in which it is archived.
pub type BatchInHours = (BTreeSet<Time<Utc>>, ObservedBatch);

/// Content of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedContent {
    /// The encoded message of the probe.
    Observations(Vec<u8>),
    /// The probe dropped it.
    Dropped {
        /// End of the time of its packets.
        until: Time<Utc>,
        /// Packets in it.
        packets: u64,
    },
    /// It was malformed, for this reason.
    Malformed(String),
}

/// Begins of the hours of a batch: those of its observations, and that of its end; empty if it is malformed.
fn hours(content: &ObservedContent) -> BTreeSet<Time<Utc>> {
    match content {
        ObservedContent::Observations(message) => {
            let Ok(batch) = ObservationBatch::decode(message) else { return BTreeSet::new() };
            let complete_until = batch.complete_until;
            let times = batch.observations.iter().map(|it| hour(it.stamp.utc, complete_until));
            times.chain([last_hour(complete_until)]).collect()
        }
        ObservedContent::Dropped { until, .. } => [last_hour(*until)].into(),
        ObservedContent::Malformed(_) => BTreeSet::new(),
    }
}

/// Begin of the hour in which an observation is archived: the hour of its time, but at the earliest the one before that
/// of its batch. So a batch is in two hours at most, also if its times are wrong.
pub(super) fn hour(time: Time<Utc>, complete_until: Time<Utc>) -> Time<Utc> {
    let last = last_hour(complete_until);
    time.interval_begin(HOUR).max(last - HOUR).min(last)
}

/// Begin of the hour that contains the time before an end.
pub(super) fn last_hour(end: Time<Utc>) -> Time<Utc> {
    (end - Span::from_nanos(1)).interval_begin(HOUR)
}

/// Batches of a task that were taken and are not acknowledged. If results cannot be stored, or the process ends, they are
/// delivered again.
#[derive(Debug)]
pub(super) struct Unacknowledged {
    is_archived: bool,
    /// By point, in order.
    batches: [VecDeque<BatchInHours>; 2],
}

impl Unacknowledged {
    /// No batches. They are kept if the task archives its observations.
    pub(super) fn new(measure: &Measure) -> Self {
        Self { is_archived: measure.archives_observations(), batches: Default::default() }
    }

    /// Whether the task archives its observations.
    pub(super) fn is_archived(&self) -> bool {
        self.is_archived
    }

    /// Adds the next batch of its point.
    pub(super) fn push(&mut self, batch: ObservedBatch) {
        self.batches[side(batch.point)].push_back((hours(&batch.content), batch));
    }

    /// Removes and returns the batches up to these numbers of A and B. Those without an own time are archived with the
    /// newest results, which end at `settled_until`.
    pub(super) fn take(
        &mut self,
        acknowledged: [u64; 2],
        settled_until: Time<Utc>,
    ) -> Vec<BatchInHours> {
        let mut taken = Vec::new();
        for (batches, up_to) in self.batches.iter_mut().zip(acknowledged) {
            while let Some((mut hours, batch)) =
                batches.pop_front_if(|(_, it)| *it.numbers.end() <= up_to)
            {
                if hours.is_empty() {
                    hours.insert(last_hour(settled_until));
                }
                taken.push((hours, batch));
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AN_HOUR: i64 = 3600;

    fn at(second: i64) -> Time<Utc> {
        Time::from_nanos(second * 1_000_000_000)
    }

    fn dropped(point: Point, numbers: RangeInclusive<u64>) -> ObservedBatch {
        let content = ObservedContent::Dropped { until: at(AN_HOUR), packets: 7 };
        ObservedBatch { point, spool: 1, epoch: 0, numbers, is_unknown: false, content }
    }

    #[test]
    fn acknowledged_batches_are_removed_in_order() {
        let measure = r#"{"passive-delay":{"from":"a/i","to":"b/i","archive":"observations"}}"#;
        let mut waiting = Unacknowledged::new(&serde_json::from_str(measure).unwrap());
        assert!(waiting.is_archived());
        let [first, second, other] =
            [(Point::A, 1..=1), (Point::A, 2..=4), (Point::B, 3..=3)].map(|it| dropped(it.0, it.1));
        for batch in [&first, &other, &second] {
            waiting.push(batch.clone());
        }
        let malformed = ObservedBatch {
            content: ObservedContent::Malformed("it is short".to_owned()),
            ..dropped(Point::B, 4..=4)
        };
        waiting.push(malformed.clone());
        let hour = |second| BTreeSet::from([at(second)]);
        assert_eq!(waiting.take([3, 2], at(9)), [(hour(0), first)]);
        assert_eq!(waiting.take([4, 3], at(9)), [(hour(0), second), (hour(0), other)]);
        assert_eq!(waiting.take([9, 9], at(AN_HOUR + 9)), [(hour(AN_HOUR), malformed)]);
    }

    #[test]
    fn observation_is_in_the_hour_of_its_time_or_near_its_batch() {
        let end = at(10 * AN_HOUR + 5);
        let hour = |second| hour(at(second), end).as_nanos() / 1_000_000_000 / AN_HOUR;
        assert_eq!([hour(10 * AN_HOUR), hour(10 * AN_HOUR - 1), hour(9 * AN_HOUR)], [10, 9, 9]);
        // Wrong times.
        assert_eq!([hour(7 * AN_HOUR), hour(-AN_HOUR), hour(12 * AN_HOUR)], [9, 9, 10]);
        assert_eq!(last_hour(at(10 * AN_HOUR)), at(9 * AN_HOUR));
    }
}
