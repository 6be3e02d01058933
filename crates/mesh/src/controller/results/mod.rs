//! What a task has measured, as much as somebody asks for. Long answers come in pieces, so that they take no more of the
//! controller's memory than short ones.

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

use super::api::{Api, Called, Numbered, Reader, nanos};
use super::refusal::{Refusal, Refusals, Refused};
use super::{ClockOffset, NoAnswer, Sources, clocks, description};
use crate::Name;
use crate::collector::{Counted, FlowReport, Measured, Step, Stretch};
use crate::task::Measure;

/// Results that are answered if nothing else is said, and at the most: by the second, those of a day and more.
const RESULTS: u32 = 3600;
pub(super) const MOST_RESULTS: u32 = 100_000;

/// Flows, each of which takes some kilobytes.
pub(super) const MOST_FLOWS: u32 = 5000;

/// Results that are in memory at once, for each of who asks: a megabyte.
const PIECE: u32 = 1000;

/// Which results.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Not those that begin before this time; of flows, not those whose latest packet passed before.
    #[param(nullable = false)]
    from: Option<Timestamp>,
    /// Nor those that begin then or later.
    #[param(nullable = false)]
    until: Option<Timestamp>,
    /// By so many seconds: 1 is as the task measures, and is taken if nothing is said.
    #[param(schema_with = description::step)]
    step: Option<u32>,
    /// So many at the most, of those that fit the first; 3600 if nothing is said. Of flows there are never more than
    /// 5000.
    #[param(schema_with = description::limit)]
    limit: Option<u32>,
}

impl Which {
    fn stretch(&self) -> Result<Stretch, Refusal> {
        let step = match self.step {
            None | Some(1) => Step::AsMeasured,
            Some(60) => Step::Minute,
            Some(3600) => Step::Hour,
            Some(_) => return Err(Refusal::wrong("step: it has to be 1, 60 or 3600 seconds")),
        };
        let most = self.limit.unwrap_or(RESULTS);
        if most > MOST_RESULTS {
            let why = format!(
                "limit: {MOST_RESULTS} at the most: ask for a shorter time or a coarser step, or \
                 again from behind the last that was answered"
            );
            return Err(Refusal::wrong(why));
        }
        let (from, until) = (self.from.map_or(i64::MIN, nanos), self.until.map_or(i64::MAX, nanos));
        Ok(Stretch { step, from, until, most })
    }
}

/// What a task has measured.
#[derive(Serialize, ToSchema)]
#[schema(as = Results)]
struct Found {
    task: Numbered,
    /// What was asked for; 1 is as the task measures.
    #[schema(schema_with = description::step)]
    step_s: u32,
    /// How far the clocks of its two probes are apart now, if test packets between them tell.
    #[schema(required)]
    clocks: Option<ClockOffset>,
    // What is told in pieces comes behind everything else.
    /// In the order of their times; flows by their latest packet, the latest first. Windows of delays, intervals of
    /// `volume` and `traffic`, or flows.
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

/// A flow as its probe told of it.
#[derive(Serialize, ToSchema)]
#[schema(value_type = FlowReport)]
struct Reported(Value);

/// What the newest task of a name has measured
///
/// A long answer comes in pieces. One that breaks off is not whole, and is asked for again.
#[utoipa::path(get, path = "/api/v1/tasks/{name}/results", params(("name" = Name, Path), Which), responses(
    (status = 200, description = "What was asked for, as far as it was measured", body = Found),
    (status = 400, description = "That is no name, no stretch of results, or one of too many", body = Refused),
    (status = 404, description = "There was never such a task", body = Refused),
    Refusals,
))]
pub(super) async fn results(
    _: Reader,
    State(api): State<Api>,
    Called(name): Called,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(which) = which.map_err(|why| Refusal::wrong(why.body_text()))?;
    let (number, entered) = api.plan.newest(&name).ok_or_else(|| Refusal::no_such(&name))?;
    let measure = entered.task.measure.clone();
    let clocks = clocks::between(&measure, &api.plan.subscribe().borrow(), &api.attendance);
    let (sources, rest) = (Arc::clone(&api.sources), which.stretch()?);
    let mut asked = Asked { sources, number, measure, rest };
    // What cannot be answered is refused before an answer begins.
    let results = asked.next().await?;
    let (task, step_s) = (Numbered { number, entered }, which.step.unwrap_or(1));
    let answer = serde_json::to_string(&Found { task, step_s, clocks, results });
    let answer = answer.map_err(Refusal::failure)?;
    let body = if asked.rest.most == 0 { Body::from(answer) } else { asked.in_pieces(answer) };
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

/// What is still to be answered.
struct Asked {
    sources: Arc<Sources>,
    number: u64,
    measure: Measure,
    /// None at the most, when that was all.
    rest: Stretch,
}

impl Asked {
    /// The next results; nothing, when that was all.
    async fn next(&mut self) -> Result<Vec<Measurement>, NoAnswer> {
        let Self { sources, number, measure, rest } = self;
        let stretch = Stretch { most: rest.most.min(PIECE), ..*rest };
        let (found, behind): (Vec<_>, _) = match measure {
            Measure::Volume { .. } | Measure::Traffic { .. } => {
                let counted = sources.counted(*number, &stretch).await?;
                let last = counted.last().map(|it| it.begin_ns);
                (counted.into_iter().map(Measurement::Interval).collect(), last)
            }
            Measure::Flows { .. } => {
                // They have no order in which one could go on behind the last.
                let stretch = Stretch { most: rest.most.min(MOST_FLOWS), ..*rest };
                let reports = sources.flows(*number, &stretch).await?;
                // Nothing else is kept.
                let values = reports.iter().filter_map(|report| serde_json::from_str(report).ok());
                (values.map(|it| Measurement::Flow(Reported(it))).collect(), None)
            }
            Measure::PassiveDelay(_) | Measure::ReportedDelay(_) | Measure::ActiveDelay(_) => {
                let measured = sources.measured(*number, &stretch).await?;
                let last = measured.last().map(|it| it.begin_ns);
                (measured.into_iter().map(|it| Measurement::Window(it.into())).collect(), last)
            }
        };
        let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        let is_more = behind.is_some() && count == stretch.most;
        rest.most = if is_more { rest.most - count } else { 0 };
        rest.from = behind.map_or(rest.from, |begin| begin.saturating_add(1));
        Ok(found)
    }

    /// An answer whose first results are there. The others are asked for as fast as they are read.
    fn in_pieces(self, answer: String) -> Body {
        let (pieces, body) = mpsc::channel(1);
        tokio::spawn(async move {
            let number = self.number;
            if let Err(why) = self.answer(answer, &pieces).await {
                warn!("an answer with results of task {number} breaks off: {why}");
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
        // Who does not listen any more asks for nothing more.
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

/// Of an answer, behind its last result.
const END: &str = "]}";

#[cfg(test)]
mod tests;
