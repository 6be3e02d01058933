//! The packets of a measurement as rows of a file (`--csv`, `--parquet`).

use wirestamp_clock::Span;
use wirestamp_metrics::{Observation, Outcome, UndeterminedReason};
use wirestamp_packet::FlowKey;
use wirestamp_results::{Error, Field};

use super::arguments::Arguments;
use super::lost_rows::{LostRow, LostRows};
use crate::row_files::RowFiles;

/// A packet with its outcome. Unknown values are empty.
struct Row {
    outcome: &'static str,
    flow: FlowKey,
    /// Length on the wire in bytes, at A, or at B if only B observed the packet.
    length: u32,
    sequence: Option<u64>,
    a_ns: Option<i64>,
    b_ns: Option<i64>,
    delay: Option<Span>,
    error: Option<Span>,
    reordered: Option<bool>,
    variation: Option<Span>,
    reason: Option<&'static str>,
}

/// The columns, described in docs/guide.md.
const COLUMNS: &[Field<Row>] = &[
    Field::text("outcome", |row| Some(row.outcome.to_owned())),
    Field::text("src", |row| Some(row.flow.source.ip().to_string())),
    Field::text("dst", |row| Some(row.flow.destination.ip().to_string())),
    Field::whole("sport", |row| Some(row.flow.source.port().into())),
    Field::whole("dport", |row| Some(row.flow.destination.port().into())),
    Field::whole("protocol", |row| Some(row.flow.protocol.into())),
    Field::whole("sequence", |row| row.sequence.and_then(|number| number.try_into().ok())),
    Field::whole("length_bytes", |row| Some(row.length.into())),
    Field::whole("a_ns", |row| row.a_ns),
    Field::whole("b_ns", |row| row.b_ns),
    Field::whole("delay_ns", |row| row.delay.map(Span::as_nanos)),
    Field::whole("error_ns", |row| row.error.map(Span::as_nanos)),
    Field::whole("reordered", |row| row.reordered.map(i64::from)),
    Field::whole("ipdv_ns", |row| row.variation.map(Span::as_nanos)),
    Field::text("reason", |row| row.reason.map(ToOwned::to_owned)),
    Field::time("a_time", |row| row.a_ns),
    Field::time("b_time", |row| row.b_ns),
];

impl Row {
    fn of(outcome: &'static str, packet: Observation) -> Self {
        let (sequence, a_ns, b_ns, delay, error) = (None, None, None, None, None);
        let (reordered, variation, reason) = (None, None, None);
        let Observation { flow, length, .. } = packet;
        Self {
            outcome,
            flow,
            length,
            sequence,
            a_ns,
            b_ns,
            delay,
            error,
            reordered,
            variation,
            reason,
        }
    }

    /// The row of a lost packet; undetermined if the loss of its flow is unknown.
    fn of_lost(lost: LostRow, is_unknown: bool) -> Self {
        let LostRow { flow, length, sequence, a_ns } = lost;
        Self {
            outcome: if is_unknown { "undetermined" } else { "lost" },
            flow,
            length,
            sequence: Some(sequence),
            a_ns: Some(a_ns),
            b_ns: None,
            delay: None,
            error: None,
            reordered: None,
            variation: None,
            reason: is_unknown.then_some("loss_unknown"),
        }
    }

    /// The row of an outcome; none for lost packets, and for remarks about a packet that has another outcome.
    fn of_outcome(outcome: &Outcome) -> Option<Self> {
        let time = |observation: &Observation| Some(observation.stamp.utc.as_nanos());
        Some(match outcome {
            Outcome::Matched {
                sent,
                received,
                sequence,
                delay,
                error,
                reordered,
                since_previous,
                ..
            } => Self {
                sequence: Some(*sequence),
                a_ns: time(sent),
                b_ns: time(received),
                delay: Some(*delay),
                error: Some(*error),
                reordered: Some(*reordered),
                variation: *since_previous,
                ..Self::of("matched", *sent)
            },
            Outcome::Duplicated { sent, received } => {
                Self { a_ns: time(sent), b_ns: time(received), ..Self::of("duplicated", *sent) }
            }
            Outcome::Unexpected { received } => {
                Self { b_ns: time(received), ..Self::of("unexpected", *received) }
            }
            Outcome::Undetermined { point, observation, sequence, reason } => {
                let at_a = *point == wirestamp_metrics::Point::A;
                let time = time(observation);
                Self {
                    sequence: *sequence,
                    a_ns: time.filter(|_| at_a),
                    b_ns: time.filter(|_| !at_a),
                    reason: Some(words(*reason)),
                    ..Self::of("undetermined", *observation)
                }
            }
            Outcome::Lost { .. } | Outcome::Identical { .. } => return None,
        })
    }
}

/// The value of the column `reason`.
pub(super) const fn words(reason: UndeterminedReason) -> &'static str {
    match reason {
        UndeterminedReason::Memory => "memory",
        UndeterminedReason::Missed => "missed",
        UndeterminedReason::NotCaptured => "not_captured",
    }
}

/// The files of `--csv` and `--parquet`.
#[derive(Default)]
pub(super) struct PacketRows {
    files: Option<RowFiles<Row>>,
    lost: LostRows,
    /// Whether the delays have no errors of their own.
    omits_errors: bool,
}

impl PacketRows {
    /// Creates the files that are asked for.
    pub(super) fn create(arguments: &Arguments) -> Result<Self, Error> {
        let (csv, parquet) = (arguments.csv.as_deref(), arguments.parquet.as_deref());
        let files = RowFiles::create(COLUMNS, csv, parquet)?;
        Ok(Self { files: Some(files), lost: LostRows::default(), omits_errors: false })
    }

    /// Leaves `error_ns` empty: for a file or a pipe, only a common error bound of all delays is known, if any.
    pub(super) fn without_errors(self) -> Self {
        Self { omits_errors: true, ..self }
    }

    /// Adds a packet. After an error no more is written; [`Self::finish`] returns it.
    pub(super) fn record(&mut self, outcome: &Outcome) {
        let Some(files) = self.files.as_mut().filter(|files| !files.are_done()) else { return };
        if let Outcome::Lost { sent, sequence } = outcome {
            self.lost.record(sent, *sequence);
        } else if let Some(row) = Row::of_outcome(outcome) {
            let error = row.error.filter(|_| !self.omits_errors);
            files.record(Row { error, ..row });
        }
    }

    /// Writes the last rows, and completes the files. `is_loss_unknown` returns whether the loss of a flow is unknown: its
    /// lost packets are undetermined.
    pub(super) fn finish(self, is_loss_unknown: impl Fn(&FlowKey) -> bool) -> Result<(), Error> {
        let Some(mut files) = self.files else { return Ok(()) };
        let read = self.lost.read(|lost| {
            let is_unknown = is_loss_unknown(&lost.flow);
            files.record(Row::of_lost(lost, is_unknown));
        });
        files.finish().and(read)
    }
}
