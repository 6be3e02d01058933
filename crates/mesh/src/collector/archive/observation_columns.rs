//! Columns of archived observations and batches.

use wirestamp_metrics::Observation;
use wirestamp_results::Field;

use crate::collector::{ObservedBatch, ObservedContent};
use crate::protocol::ObservationBatch;

/// An observed packet.
pub(super) struct ObservationRow {
    task: i64,
    epoch: i64,
    spool: i64,
    stored: i64,
    batch: i64,
    position: i64,
    seen: Observation,
}

impl ObservationRow {
    pub(super) fn of(
        (task, stored): (i64, i64),
        batch: &ObservedBatch,
        position: i64,
        seen: Observation,
    ) -> Self {
        let (epoch, spool) = (batch.epoch.cast_signed(), batch.spool);
        let batch = batch.numbers.start().cast_signed();
        Self { task, epoch, spool, stored, batch, position, seen }
    }
}

/// A batch, or a capture loss in it.
#[derive(Clone, Default)]
pub(super) struct BatchRow {
    pub(super) task: i64,
    epoch: i64,
    spool: i64,
    stored: i64,
    batch: i64,
    last_batch: i64,
    kind: &'static str,
    position: Option<i64>,
    from: Option<i64>,
    until: Option<i64>,
    packets: Option<i64>,
    observed_from: Option<i64>,
    machine: Option<String>,
    error: Option<i64>,
    reason: Option<String>,
    is_unknown: bool,
}

impl BatchRow {
    /// The row of a batch, as far as it is known without its message.
    pub(super) fn of(task: u64, stored: i64, batch: &ObservedBatch) -> Self {
        let row = Self {
            task: task.cast_signed(),
            epoch: batch.epoch.cast_signed(),
            spool: batch.spool,
            stored,
            batch: batch.numbers.start().cast_signed(),
            last_batch: batch.numbers.end().cast_signed(),
            is_unknown: batch.is_unknown,
            ..Self::default()
        };
        match &batch.content {
            ObservedContent::Observations(_) => Self { kind: "observed", ..row },
            ObservedContent::Dropped { until, packets } => {
                let (until, packets) = (Some(until.as_nanos()), i64::try_from(*packets).ok());
                // The time of its packets is not observed.
                Self { kind: "dropped", until, packets, observed_from: until, ..row }
            }
            ObservedContent::Malformed(why) => {
                Self { kind: "malformed", reason: Some(why.clone()), ..row }
            }
        }
    }

    /// The row of a batch and those of the capture losses in it.
    pub(super) fn with_losses(self, decoded: &ObservationBatch) -> Vec<Self> {
        let until = Some(decoded.complete_until.as_nanos());
        let begin = decoded.begin.map(|it| it.as_nanos());
        let losses = (0_i64..).zip(&decoded.missed).map(|(position, loss)| Self {
            kind: "missed",
            position: Some(position),
            from: Some(loss.from.as_nanos()),
            until: Some(loss.until.as_nanos()),
            packets: i64::try_from(loss.packets).ok(),
            ..self.clone()
        });
        let losses: Vec<_> = losses.collect();
        let machine = decoded.clock.machine.iter().map(|byte| format!("{byte:02x}")).collect();
        let row = Self {
            until,
            packets: i64::try_from(decoded.observations.len()).ok(),
            observed_from: begin.or(until.filter(|_| self.is_unknown)),
            machine: Some(machine),
            error: decoded.clock.error.map(|it| it.as_nanos()),
            ..self
        };
        [vec![row], losses].concat()
    }
}

pub(super) const OBSERVATIONS: &[Field<ObservationRow>] = &[
    Field::whole("task_number", |it| Some(it.task)),
    Field::whole("epoch", |it| Some(it.epoch)),
    Field::whole("spool", |it| Some(it.spool)),
    Field::whole("stored", |it| Some(it.stored)),
    Field::whole("batch", |it| Some(it.batch)),
    Field::whole("position", |it| Some(it.position)),
    Field::whole("identity", |it| Some(it.seen.id.0.cast_signed())),
    Field::whole("time_ns", |it| Some(it.seen.stamp.utc.as_nanos())),
    Field::whole("error_ns", |it| Some(it.seen.stamp.error.as_nanos())),
    Field::whole("length", |it| Some(it.seen.length.into())),
    Field::text("src", |it| Some(it.seen.flow.source.ip().to_string())),
    Field::whole("sport", |it| Some(it.seen.flow.source.port().into())),
    Field::text("dst", |it| Some(it.seen.flow.destination.ip().to_string())),
    Field::whole("dport", |it| Some(it.seen.flow.destination.port().into())),
    Field::whole("protocol", |it| Some(it.seen.flow.protocol.into())),
    Field::time("time", |it| Some(it.seen.stamp.utc.as_nanos())),
];

pub(super) const BATCHES: &[Field<BatchRow>] = &[
    Field::whole("task_number", |it| Some(it.task)),
    Field::whole("epoch", |it| Some(it.epoch)),
    Field::whole("spool", |it| Some(it.spool)),
    Field::whole("stored", |it| Some(it.stored)),
    Field::whole("batch", |it| Some(it.batch)),
    Field::whole("last_batch", |it| Some(it.last_batch)),
    Field::text("kind", |it| Some(it.kind.to_owned())),
    Field::whole("position", |it| it.position),
    Field::whole("from_ns", |it| it.from),
    Field::whole("until_ns", |it| it.until),
    Field::whole("packets", |it| it.packets),
    Field::whole("observed_from_ns", |it| it.observed_from),
    Field::text("clock_machine", |it| it.machine.clone()),
    Field::whole("clock_error_ns", |it| it.error),
    Field::text("reason", |it| it.reason.clone()),
    Field::time("until_time", |it| it.until),
];
