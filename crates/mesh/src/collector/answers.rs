//! gRPC service for the controller: queries of results.

use std::sync::Arc;

use serde::Serialize;
use tokio::task::block_in_place;
use tokio_stream::Iter;
use tonic::{Request, Response, Status};

use wirestamp_clock::Time;

use super::{Collector, ResultRange, Step};
use crate::DatabaseError;
use crate::authorizer::Authorizer;
use crate::pki::Role;
use crate::v1::answers_server::Answers;
use crate::v1::question::What;
use crate::v1::{self, Question, Rows};

/// Bytes of rows per message, before the last row. A message may have 4 MiB, and no row is as long.
const MESSAGE_BYTES: usize = 1 << 20;

/// The service.
pub(crate) struct AnswersService {
    pub(crate) collector: Arc<Collector>,
    pub(crate) authorizer: Arc<Authorizer>,
}

#[tonic::async_trait]
impl Answers for AnswersService {
    type AskStream = Iter<std::vec::IntoIter<Result<Rows, Status>>>;

    async fn ask(&self, request: Request<Question>) -> Result<Response<Self::AskStream>, Status> {
        self.authorizer.caller(request.extensions(), &[Role::Controller])?;
        let Question { task, what } = request.into_inner();
        let what = what.ok_or_else(|| Status::invalid_argument("the question is empty"))?;
        // An empty response would be wrong if the collector does not know the task.
        let is_known = self.collector.tasks().borrow().contains_key(&task);
        if !is_known && !matches!(what, What::Recent(_)) {
            return Err(Status::not_found(format!("the collector has no task {task}")));
        }
        let rows = block_in_place(|| rows(&self.collector, task, what))?;
        let messages: Vec<_> = messages(rows).into_iter().map(Ok).collect();
        Ok(Response::new(tokio_stream::iter(messages)))
    }
}

/// Rows of results, as JSON.
pub(crate) fn rows(collector: &Collector, task: u64, what: What) -> Result<Vec<String>, Status> {
    let results = || collector.results();
    match what {
        What::Measured(range) => written(collector.measured(task, &range.try_into()?)),
        What::Counted(range) => written(results().counted(task, &range.try_into()?)),
        What::Flows(range) => {
            results().flows(task, &range.try_into()?).map_err(|error| unreadable(&error))
        }
        What::Newest(_) => written(collector.newest(task)),
        What::SettledUntil(_) => {
            written(collector.settled_until(task).map(|until| [until.as_nanos()]))
        }
        What::Histograms(v1::Histograms { from, until }) => {
            written(results().histograms(task, from..until).map(|it| [it]))
        }
        What::Recent(v1::Recent { from, most }) => {
            written(collector.recent(Time::from_nanos(from), most))
        }
        What::Sum(_) => written(results().sum(task).map(|it| [it])),
        What::FlowCount(v1::FlowCount { first_from: None, first_until: None }) => {
            written(results().flow_count(task).map(|it| [it]))
        }
        What::FlowCount(v1::FlowCount { first_from, first_until }) => {
            let range = first_from.unwrap_or(i64::MIN)..first_until.unwrap_or(i64::MAX);
            written(results().flows_begun(task, range).map(|it| [it]))
        }
        What::ShardWindows(range) => written(results().shard_windows(task, &range.try_into()?)),
        What::Stored(v1::StoredRows { from, until }) => {
            written(results().stored_rows(task, from..until))
        }
    }
}

/// Serialises rows as JSON.
fn written<T: Serialize>(
    rows: Result<impl IntoIterator<Item = T>, DatabaseError>,
) -> Result<Vec<String>, Status> {
    let rows = rows.map_err(|error| unreadable(&error))?.into_iter();
    let written = rows.map(|row| serde_json::to_string(&row)).collect::<Result<_, _>>();
    written.map_err(|error| Status::internal(error.to_string()))
}

fn unreadable(error: &DatabaseError) -> Status {
    Status::unavailable(error.to_string())
}

/// Splits rows into messages.
fn messages(rows: Vec<String>) -> Vec<Rows> {
    let (mut messages, mut bytes) = (vec![Rows::default()], 0);
    for row in rows {
        if bytes >= MESSAGE_BYTES {
            messages.push(Rows::default());
            bytes = 0;
        }
        bytes += row.len();
        if let Some(message) = messages.last_mut() {
            message.rows.push(row);
        }
    }
    messages
}

impl From<&ResultRange> for v1::ResultRange {
    fn from(range: &ResultRange) -> Self {
        let ResultRange { step, from, until, most } = *range;
        let step = match step {
            Step::AsMeasured => 0,
            Step::Minute => 60,
            Step::Hour => 3600,
        };
        Self { step, from, until, most }
    }
}

impl TryFrom<v1::ResultRange> for ResultRange {
    type Error = Status;

    fn try_from(range: v1::ResultRange) -> Result<Self, Status> {
        let v1::ResultRange { step, from, until, most } = range;
        let step = match step {
            0 => Step::AsMeasured,
            60 => Step::Minute,
            3600 => Step::Hour,
            _ => return Err(Status::invalid_argument("the step must be 0, 60 or 3600 seconds")),
        };
        Ok(Self { step, from, until, most })
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_metrics::Counts;

    use super::*;
    use crate::collector::{Measured, NotSynchronised, Spread};

    #[test]
    fn results_round_trip_as_json() {
        let spread = Spread { count: 3, min: -5, mean: 2.5, max: i64::MAX, ..Spread::default() };
        let known = Measured {
            begin_ns: 1_700_000_000_000_000_000,
            counts: Counts { sent: 7, lost: 1, ..Counts::default() },
            delay_ns: Some(Spread { p50: Some(-5), ..spread }),
            error_ns: Some(20),
            ..Measured::default()
        };
        let unknown =
            Measured { not_synchronised: Some(NotSynchronised::Second), ..Measured::default() };
        let rows = [known, unknown];
        let written = written(Ok(rows.clone())).unwrap();
        let read = written.iter().map(|row| serde_json::from_str(row).unwrap());
        assert_eq!(read.collect::<Vec<Measured>>(), rows);
    }

    #[test]
    fn rows_are_split_into_messages() {
        let row = "x".repeat(MESSAGE_BYTES / 2);
        let lengths: Vec<_> =
            messages(vec![row; 5]).iter().map(|message| message.rows.len()).collect();
        assert_eq!(lengths, [2, 2, 1]);
        assert_eq!(messages(Vec::new()).len(), 1);
    }

    #[test]
    fn time_range_round_trips() {
        for step in [Step::AsMeasured, Step::Minute, Step::Hour] {
            let asked = ResultRange { step, from: -1, until: i64::MAX, most: 9 };
            let read = ResultRange::try_from(v1::ResultRange::from(&asked)).unwrap();
            assert_eq!((read.step, read.from, read.until, read.most), (step, -1, i64::MAX, 9));
        }
        let other = v1::ResultRange { step: 61, ..v1::ResultRange::default() };
        assert!(ResultRange::try_from(other).is_err());
    }
}
