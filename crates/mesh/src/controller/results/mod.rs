//! Results of a task. Long responses are streamed, so that they need no more memory than short ones.

use std::sync::Arc;

use axum::BoxError;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tracing::warn;
use utoipa::{IntoParams, ToSchema};

use super::api::{Api, MAX_FLOWS, MAX_RESULTS, NumberedTask, PathName, Reader, nanos, query_time};
use super::clocks;
use super::description;
use super::error_response::{ApiError, CommonErrors, ErrorBody};
use super::health::ClockOffset;
use super::sources::{MissingPart, QueryError, Sources};
use crate::Name;
use crate::collector::{Counted, FlowReport, Measured, ResultRange, Step};
use crate::task::Measure;

/// Default number of results.
const RESULTS: u32 = 3600;

/// Results in memory at a time, for each request: about a megabyte.
const CHUNK_ROWS: u32 = 1000;

/// Selection of results.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ResultsQuery {
    /// Number of the task; default: the newest one of the name.
    #[param(nullable = false, maximum = 9_223_372_036_854_775_807_i64)]
    number: Option<u64>,
    /// Only results that begin at or after this time; of flows, those whose last packet passed at or after it.
    #[param(nullable = false)]
    #[serde(default, deserialize_with = "query_time")]
    from: Option<Timestamp>,
    /// Only results that begin before this time.
    #[param(nullable = false)]
    #[serde(default, deserialize_with = "query_time")]
    until: Option<Timestamp>,
    /// Step in seconds: 1 (default) is as measured.
    #[param(schema_with = description::step)]
    step: Option<u32>,
    /// Max number of results, the first ones; default 3600. At most 5000 flows are returned.
    #[param(schema_with = description::limit)]
    limit: Option<u32>,
}

impl ResultsQuery {
    fn range(&self) -> Result<ResultRange, ApiError> {
        let step = match self.step {
            None | Some(1) => Step::AsMeasured,
            Some(60) => Step::Minute,
            Some(3600) => Step::Hour,
            Some(_) => return Err(ApiError::wrong("step: must be 1, 60 or 3600 seconds")),
        };
        let most = self.limit.unwrap_or(RESULTS);
        if most > MAX_RESULTS {
            let why = format!(
                "limit: max {MAX_RESULTS}; request a shorter time or a coarser step, or \
                 continue after the last result"
            );
            return Err(ApiError::wrong(why));
        }
        let (from, until) = (self.from.map_or(i64::MIN, nanos), self.until.map_or(i64::MAX, nanos));
        Ok(ResultRange { step, from, until, most })
    }
}

/// The results of a task.
#[derive(Serialize, ToSchema)]
#[schema(as = Results)]
struct ResultsResponse {
    task: NumberedTask,
    /// The requested step in seconds; 1 is as measured.
    #[schema(schema_with = description::step)]
    step_s: u32,
    /// Current offset of the clocks of its two probes, if test packets between them measure it.
    #[schema(required)]
    clocks: Option<ClockOffset>,
    /// Collectors that the task had or has and that do not answer: the response contains the results of the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    partial: Vec<MissingPart>,
    // Streamed, so it must be the last field.
    /// Delay windows, or intervals of `volume` and `traffic`, ordered by time; or flows, the latest last packet first.
    results: Vec<Measurement>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Result)]
#[serde(untagged)]
enum Measurement {
    Window(Box<Measured>),
    Interval(Counted),
    Flow(#[schema(inline)] Reported),
}

/// The report of a flow, as sent by its probe.
#[derive(Serialize, ToSchema)]
#[schema(value_type = FlowReport)]
struct Reported(Value);

/// Results of the newest task of a name, or of an earlier one
///
/// A long response is streamed. If it breaks off it is incomplete; repeat the request.
#[utoipa::path(get, path = "/api/v1/tasks/{name}/results", params(("name" = Name, Path), ResultsQuery), responses(
    (status = 200, description = "The results", body = ResultsResponse),
    (status = 400, description = "The name or the selection is not valid, or selects too many results", body = ErrorBody),
    (status = 404, description = "There is no task of this name, or of this number", body = ErrorBody),
    CommonErrors,
))]
pub(super) async fn results(
    _: Reader,
    State(api): State<Api>,
    PathName(name): PathName,
    query: Result<Query<ResultsQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query?;
    let (number, entered) =
        api.plan.find(&name, query.number).ok_or_else(|| ApiError::no_such(&name))?;
    let measure = entered.task.measure.clone();
    let clocks = clocks::between(&measure, &api.plan.subscribe().borrow(), &api.probes);
    let (sources, rest) = (Arc::clone(&api.sources), query.range()?);
    let mut reader = ResultReader { sources, number, measure, rest, partial: None };
    // Errors must be detected before the response begins.
    let results = reader.next().await?;
    let (task, step_s) = (api.numbered(number, entered), query.step.unwrap_or(1));
    let partial = reader.partial.clone().unwrap_or_default();
    let answer = ResultsResponse { task, step_s, clocks, partial, results };
    let answer = serde_json::to_string(&answer);
    let answer = answer.map_err(ApiError::failure)?;
    let body = if reader.rest.most == 0 { Body::from(answer) } else { reader.in_pieces(answer) };
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

/// The rest of a response.
struct ResultReader {
    sources: Arc<Sources>,
    number: u64,
    measure: Measure,
    /// `most` is 0 when the response is complete.
    rest: ResultRange,
    /// Collectors that did not answer the first query.
    partial: Option<Vec<MissingPart>>,
}

impl ResultReader {
    /// The next results; empty when there are no more.
    async fn next(&mut self) -> Result<Vec<Measurement>, QueryError> {
        let Self { sources, number, measure, rest, partial } = self;
        let range = ResultRange { most: rest.most.min(CHUNK_ROWS), ..*rest };
        let missing;
        let (found, behind): (Vec<_>, _) = match measure {
            Measure::Volume { .. } | Measure::Traffic { .. } => {
                let counted;
                (counted, missing) = sources.counted_parts(*number, &range).await?;
                let last = counted.last().map(|it| it.begin_ns);
                (counted.into_iter().map(Measurement::Interval).collect(), last)
            }
            Measure::Flows { .. } => {
                // Flows have no order in which reading could continue.
                let range = ResultRange { most: rest.most.min(MAX_FLOWS), ..*rest };
                let reports;
                (reports, missing) = sources.flows_parts(*number, &range).await?;
                // Only valid JSON is stored.
                let values = reports.iter().filter_map(|report| serde_json::from_str(report).ok());
                (values.map(|it| Measurement::Flow(Reported(it))).collect(), None)
            }
            Measure::PassiveDelay(_) | Measure::ReportedDelay(_) | Measure::ActiveDelay(_) => {
                let measured;
                (measured, missing) = sources.measured_parts(*number, &range).await?;
                let last = measured.last().map(|it| it.begin_ns);
                (measured.into_iter().map(|it| Measurement::Window(it.into())).collect(), last)
            }
        };
        // The response already states which results are missing.
        if let Some(partial) = partial
            && *partial != missing
        {
            let why = "a collector began or ceased to answer; repeat the request".to_owned();
            return Err(QueryError::Own(why));
        }
        *partial = Some(missing);
        let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        let is_more = behind.is_some() && count == range.most;
        rest.most = if is_more { rest.most - count } else { 0 };
        rest.from = behind.map_or(rest.from, |begin| begin.saturating_add(1));
        Ok(found)
    }

    /// Streams a response whose first results are known, as fast as the client reads.
    fn in_pieces(self, answer: String) -> Body {
        let (pieces, body) = mpsc::channel(1);
        tokio::spawn(async move {
            let number = self.number;
            if let Err(why) = self.answer(answer, &pieces).await {
                warn!("the response with results of task {number} broke off: {why}");
                drop(pieces.send(Err(why)).await);
            }
        });
        Body::from_stream(ReceiverStream::new(body))
    }

    async fn answer(
        mut self,
        mut answer: String,
        pieces: &mpsc::Sender<Result<String, BoxError>>,
    ) -> Result<(), BoxError> {
        answer.truncate(answer.len() - END.len());
        // Stops when the client is gone.
        while pieces.send(Ok(std::mem::take(&mut answer))).await.is_ok() {
            let more = self.next().await?;
            if more.is_empty() {
                drop(pieces.send(Ok(END.to_owned())).await);
                break;
            }
            answer = [",", serde_json::to_string(&more)?.trim_matches(['[', ']'])].concat();
        }
        Ok(())
    }
}

/// End of the JSON document, after the last result.
const END: &str = "]}";

#[cfg(test)]
mod tests;
