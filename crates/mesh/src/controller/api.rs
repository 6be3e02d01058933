//! What people and programs ask the controller for, over HTTP.
//!
//! Everything is JSON. What goes wrong is said by the status, and in words by `error` of the answer.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::block_in_place;
use tracing::info;

use super::credentials::now;
use super::metrics::{Totals, scrape};
use super::{
    Attendance, Attending, Change, ClockOffset, Plan, clocks, events, histogram, page, recent,
};
use crate::collector::{Collector, Counted, Measured, Step, Stretch};
use crate::gate::{Caller, Denied, Gate};
use crate::pki::Role;
use crate::task::{Entered, Measure, Task};
use crate::{DatabaseError, Name};

/// Results that are answered at once, if nothing else is said, and at the most.
const RESULTS: u32 = 3600;
const MOST_RESULTS: u32 = 100_000;

/// Flows, each of which takes some kilobytes.
const MOST_FLOWS: u32 = 5000;

#[derive(Clone)]
pub(super) struct Api {
    pub(super) gate: Arc<Gate>,
    pub(super) plan: Arc<Plan>,
    pub(super) collector: Arc<Collector>,
    pub(super) attendance: Arc<Attendance>,
    pub(super) totals: Arc<Totals>,
}

impl Api {
    pub(super) fn routes(self) -> Router {
        Router::new()
            .route("/api/v1/tasks", get(tasks))
            .route("/api/v1/tasks/{name}", put(enter).delete(end))
            .route("/api/v1/tasks/{name}/results", get(results))
            .route("/api/v1/tasks/{name}/histogram", get(histogram::histogram))
            .route("/api/v1/results", get(recent::recent))
            .route("/api/v1/probes", get(probes))
            .route("/metrics", get(scrape))
            .route("/api/v1/me", get(page::me))
            .route("/api/v1/events", get(events::events))
            .route("/", get(page::page))
            .route("/{file}", get(page::file))
            .fallback(async || nothing_here())
            .layer(map_response(page::guarded))
            .with_state(self)
    }
}

/// Somebody who may read.
pub(super) struct Reader(pub(super) Caller);

/// Somebody who may say what is measured.
struct Operator(Caller);

impl FromRequestParts<Api> for Reader {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        let may = [Role::Viewer, Role::Operator, Role::Controller];
        Ok(Self(api.gate.caller(&parts.extensions, &may)?))
    }
}

impl FromRequestParts<Api> for Operator {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        Ok(Self(api.gate.caller(&parts.extensions, &[Role::Operator, Role::Controller])?))
    }
}

/// Why something is not answered.
pub(super) struct Refusal(pub(super) StatusCode, pub(super) String);

impl Refusal {
    /// The fault is not the caller's.
    pub(super) fn failure(why: impl ToString) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Said {
            error: String,
        }
        (self.0, Json(Said { error: self.1 })).into_response()
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let status = match denied {
            Denied::Nobody | Denied::NotGood(_) => StatusCode::UNAUTHORIZED,
            Denied::Role(_) => StatusCode::FORBIDDEN,
            Denied::Authority(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, denied.to_string())
    }
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

pub(super) fn nothing_here() -> Refusal {
    Refusal(StatusCode::NOT_FOUND, "there is nothing here".to_owned())
}

pub(super) fn wrong(why: impl ToString) -> Refusal {
    Refusal(StatusCode::BAD_REQUEST, why.to_string())
}

pub(super) fn no_such(name: &Name) -> Refusal {
    Refusal(StatusCode::NOT_FOUND, format!("there is no task {name}"))
}

/// A task with its number.
#[derive(Serialize)]
pub(super) struct Numbered {
    pub(super) number: u64,
    #[serde(flatten)]
    pub(super) entered: Entered,
}

async fn tasks(_: Reader, State(api): State<Api>) -> Json<Vec<Numbered>> {
    let tasks = api.plan.subscribe().borrow().clone();
    let numbered =
        tasks.iter().map(|(number, it)| Numbered { number: *number, entered: it.clone() });
    Json(numbered.collect())
}

async fn enter(
    // Looked at when the body is there: curl takes an answer that comes before for an error.
    operator: Result<Operator, Refusal>,
    State(api): State<Api>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<Numbered>), Refusal> {
    let Operator(caller) = operator?;
    let name: Name = name.parse().map_err(wrong)?;
    let task = task(&name, &body)?;
    let (status, number) = match block_in_place(|| api.plan.enter(&task, now()))? {
        Change::Made(number) => (StatusCode::CREATED, number),
        Change::Kept(number) => (StatusCode::OK, number),
    };
    if status == StatusCode::CREATED {
        info!("the {} enters task {name}", caller.subject());
    }
    let entered = api.plan.subscribe().borrow().get(&number).cloned();
    let entered = entered.ok_or_else(|| no_such(&name))?;
    Ok((status, Json(Numbered { number, entered })))
}

/// The task that is put to a name, which need not be in it.
fn task(name: &Name, body: &[u8]) -> Result<Task, Refusal> {
    let mut value: Value = serde_json::from_slice(body).map_err(wrong)?;
    if let Value::Object(keys) = &mut value {
        keys.entry("name").or_insert_with(|| name.to_string().into());
    }
    let task: Task = serde_json::from_value(value).map_err(wrong)?;
    if task.name == *name {
        Ok(task)
    } else {
        Err(wrong(format!("the task is called {}, and is put to {name}", task.name)))
    }
}

async fn end(
    Operator(caller): Operator,
    State(api): State<Api>,
    Path(name): Path<String>,
) -> Result<StatusCode, Refusal> {
    let name: Name = name.parse().map_err(wrong)?;
    let ended = block_in_place(|| api.plan.end(&name, now()))?;
    ended.ok_or_else(|| no_such(&name))?;
    info!("the {} ends task {name}", caller.subject());
    Ok(StatusCode::NO_CONTENT)
}

/// In nanoseconds since 1970; of times too far from it, the farthest that there is.
pub(super) fn nanos(time: Timestamp) -> i64 {
    let nanos = time.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// Which results.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    from: Option<Timestamp>,
    until: Option<Timestamp>,
    /// In seconds.
    step: Option<u32>,
    limit: Option<u32>,
}

impl Which {
    fn stretch(&self) -> Result<Stretch, Refusal> {
        let step = match self.step {
            None | Some(1) => Step::AsMeasured,
            Some(60) => Step::Minute,
            Some(3600) => Step::Hour,
            Some(_) => return Err(wrong("step: it has to be 1, 60 or 3600 seconds")),
        };
        Ok(Stretch {
            step,
            from: self.from.map_or(i64::MIN, nanos),
            until: self.until.map_or(i64::MAX, nanos),
            most: self.limit.unwrap_or(RESULTS).min(MOST_RESULTS),
        })
    }
}

/// What a task has measured.
#[derive(Serialize)]
struct Found {
    task: Numbered,
    /// What was asked for; 1 is as the task measures.
    step_s: u32,
    /// How far the clocks of its two probes are apart now, if test packets between them tell.
    clocks: Option<ClockOffset>,
    results: Measurements,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Measurements {
    Windows(Vec<Measured>),
    Intervals(Vec<Counted>),
    Flows(Vec<Value>),
}

async fn results(
    _: Reader,
    State(api): State<Api>,
    Path(name): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Found>, Refusal> {
    let name: Name = name.parse().map_err(wrong)?;
    let Query(which) = which.map_err(|why| wrong(why.body_text()))?;
    let (number, entered) = api.plan.newest(&name).ok_or_else(|| no_such(&name))?;
    let stretch = which.stretch()?;
    let of_flows = Stretch { most: stretch.most.min(MOST_FLOWS), ..stretch };
    let results = block_in_place(|| match entered.task.measure {
        Measure::Volume { .. } | Measure::Traffic { .. } => {
            api.collector.counted(number, &stretch).map(Measurements::Intervals)
        }
        Measure::Flows { .. } => api.collector.flows(number, &of_flows).map(|reports| {
            // Nothing else is kept.
            let values = reports.iter().filter_map(|report| serde_json::from_str(report).ok());
            Measurements::Flows(values.collect())
        }),
        Measure::PassiveDelay(_) | Measure::ReportedDelay(_) | Measure::ActiveDelay(_) => {
            api.collector.measured(number, &stretch).map(Measurements::Windows)
        }
    });
    let step_s = which.step.unwrap_or(1);
    let tasks = api.plan.subscribe().borrow().clone();
    let clocks = clocks::between(&entered.task.measure, &tasks, &api.attendance);
    Ok(Json(Found { task: Numbered { number, entered }, step_s, clocks, results: results? }))
}

/// A probe with its name.
#[derive(Serialize)]
struct Named {
    name: Name,
    #[serde(flatten)]
    attending: Attending,
}

async fn probes(_: Reader, State(api): State<Api>) -> Json<Vec<Named>> {
    let all = api.attendance.all().into_iter();
    Json(all.map(|(name, attending)| Named { name, attending }).collect())
}
