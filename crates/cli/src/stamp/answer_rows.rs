//! The answers of a test as rows of a file (`--csv`, `--parquet`).

use std::collections::BTreeMap;

use wirestamp_active::sender::ReceivedAnswer;
use wirestamp_clock::Span;
use wirestamp_metrics::ReplyKind;
use wirestamp_results::{Error, Field};

use super::arguments::RowArguments;
use crate::row_files::RowFiles;

/// An answer, or a packet without one. Unknown values are empty.
pub(super) struct Row {
    sequence: u64,
    outcome: &'static str,
    answer: Option<Answer>,
}

struct Answer {
    at_ns: i64,
    round_trip: Option<Span>,
    there: Option<Span>,
    back: Option<Span>,
    ttl: u8,
    own_error: Option<Span>,
    their_error: Option<Span>,
}

/// The columns, described in docs/guide.md.
const COLUMNS: &[Field<Row>] = &[
    Field::whole("sequence", |row| i64::try_from(row.sequence).ok()),
    Field::text("outcome", |row| Some(row.outcome.to_owned())),
    Field::whole("received_ns", |row| row.answer.as_ref().map(|it| it.at_ns)),
    Field::whole("round_trip_ns", |row| nanos(row.answer.as_ref()?.round_trip)),
    Field::whole("there_ns", |row| nanos(row.answer.as_ref()?.there)),
    Field::whole("back_ns", |row| nanos(row.answer.as_ref()?.back)),
    Field::whole("ttl_there", |row| row.answer.as_ref().map(|it| it.ttl.into())),
    Field::whole("own_utc_error_ns", |row| nanos(row.answer.as_ref()?.own_error)),
    Field::whole("their_utc_error_ns", |row| nanos(row.answer.as_ref()?.their_error)),
    Field::time("received_time", |row| row.answer.as_ref().map(|it| it.at_ns)),
];

fn nanos(span: Option<Span>) -> Option<i64> {
    span.map(Span::as_nanos)
}

/// The rows of a test.
pub(super) struct AnswerRows {
    files: RowFiles<Row>,
    same_clock: bool,
    answered: NumberSet,
}

impl AnswerRows {
    /// Creates the requested files.
    pub(super) fn create(arguments: &RowArguments, same_clock: bool) -> Result<Self, Error> {
        let files = RowFiles::create(COLUMNS, arguments.csv(), arguments.parquet())?;
        Ok(Self { files, same_clock, answered: NumberSet::default() })
    }

    /// Adds an answer.
    pub(super) fn record(&mut self, answer: &ReceivedAnswer) {
        if self.files.are_done() {
            return;
        }
        let ReceivedAnswer { sequence, at, round_trip, ttl, taken, own, theirs, .. } = *answer;
        if taken == ReplyKind::First {
            self.answered.insert(sequence);
        }
        let [there, back] = one_way(answer, self.same_clock);
        let answer = Answer {
            at_ns: at.as_nanos(),
            round_trip,
            there,
            back,
            ttl,
            own_error: own,
            their_error: theirs,
        };
        self.files.record(Row { sequence, outcome: name(taken), answer: Some(answer) });
    }

    /// Adds a row for each of the `sent` packets without an answer in time, and completes the files.
    pub(super) fn finish(mut self, sent: u64) -> Result<(), Error> {
        if !self.files.are_done() {
            for sequence in self.answered.missing_below(sent) {
                self.files.record(Row { sequence, outcome: "unanswered", answer: None });
            }
        }
        self.files.finish()
    }
}

/// The delays there and back; none unless both clocks are synchronised to UTC, or are one clock.
pub(super) fn one_way(answer: &ReceivedAnswer, same_clock: bool) -> [Option<Span>; 2] {
    let are_known = same_clock || (answer.own.is_some() && answer.theirs.is_some());
    [answer.there, Some(answer.back)].map(|span| span.filter(|_| are_known))
}

const fn name(kind: ReplyKind) -> &'static str {
    match kind {
        ReplyKind::First => "answered",
        ReplyKind::Duplicate => "duplicate",
        ReplyKind::Late => "late",
        ReplyKind::Foreign => "foreign",
    }
}

/// Numbers, most of which are consecutive, as ranges: begin and end.
#[derive(Default)]
struct NumberSet(BTreeMap<u64, u64>);

impl NumberSet {
    fn insert(&mut self, number: u64) {
        let before = self.0.range(..=number).next_back().map(|(begin, end)| (*begin, *end));
        if before.is_some_and(|(_, end)| number < end) {
            return;
        }
        let begin = match before {
            Some((begin, end)) if end == number => begin,
            _ => number,
        };
        let after = number.saturating_add(1);
        let end = self.0.remove(&after).unwrap_or(after);
        self.0.insert(begin, end);
    }

    /// The numbers from 0 to `limit`, without it, that are not in the set.
    fn missing_below(&self, limit: u64) -> impl Iterator<Item = u64> {
        let begins = self.0.keys().copied().chain([limit]);
        let ends = [0].into_iter().chain(self.0.values().copied());
        ends.zip(begins).flat_map(move |(end, begin)| end..begin.min(limit))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn missing_numbers_are_all_others(
            numbers in prop::collection::vec(0..60_u64, 0..80), limit in 0..70_u64,
        ) {
            let mut set = NumberSet::default();
            numbers.iter().for_each(|number| set.insert(*number));
            let expected: Vec<_> = (0..limit).filter(|it| !numbers.contains(it)).collect();
            prop_assert_eq!(set.missing_below(limit).collect::<Vec<_>>(), expected);
        }
    }
}
