//! The packets of a measurement as rows of a file (`--csv`, `--parquet`).

use wirestamp_clock::Span;
use wirestamp_metrics::{Observation, Outcome, UndeterminedReason};
use wirestamp_results::{Error, Field};

use super::arguments::Arguments;
use crate::row_files::RowFiles;

/// A packet with its outcome. Unknown values are empty.
struct Row {
    outcome: &'static str,
    /// The packet at A, or the one at B if only B observed it.
    packet: Observation,
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
    Field::text("src", |row| Some(row.packet.flow.source.ip().to_string())),
    Field::text("dst", |row| Some(row.packet.flow.destination.ip().to_string())),
    Field::whole("sport", |row| Some(row.packet.flow.source.port().into())),
    Field::whole("dport", |row| Some(row.packet.flow.destination.port().into())),
    Field::whole("protocol", |row| Some(row.packet.flow.protocol.into())),
    Field::whole("sequence", |row| row.sequence.and_then(|number| number.try_into().ok())),
    Field::whole("length_bytes", |row| Some(row.packet.length.into())),
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
        Self { outcome, packet, sequence, a_ns, b_ns, delay, error, reordered, variation, reason }
    }

    /// The row of an outcome; none for remarks about a packet that has another outcome.
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
            Outcome::Lost { sent, sequence } => {
                Self { sequence: Some(*sequence), a_ns: time(sent), ..Self::of("lost", *sent) }
            }
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
            Outcome::Identical { .. } => return None,
        })
    }
}

const fn words(reason: UndeterminedReason) -> &'static str {
    match reason {
        UndeterminedReason::Memory => "memory",
        UndeterminedReason::Missed => "missed",
        UndeterminedReason::NotCaptured => "not_captured",
    }
}

/// The files of `--csv` and `--parquet`.
#[derive(Default)]
pub(super) struct PacketRows(Option<RowFiles<Row>>);

impl PacketRows {
    /// Creates the files that are asked for.
    pub(super) fn create(arguments: &Arguments) -> Result<Self, Error> {
        let (csv, parquet) = (arguments.csv.as_deref(), arguments.parquet.as_deref());
        RowFiles::create(COLUMNS, csv, parquet).map(|files| Self(Some(files)))
    }

    /// Adds a packet. After an error no more is written; [`Self::finish`] returns it.
    pub(super) fn record(&mut self, outcome: &Outcome) {
        let Some(files) = self.0.as_mut().filter(|files| !files.are_done()) else { return };
        if let Some(row) = Row::of_outcome(outcome) {
            files.record(row);
        }
    }

    /// Writes the last rows, and completes the files.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), RowFiles::finish)
    }
}
