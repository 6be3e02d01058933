//! What people and programs ask the controller for, over HTTP.
//!
//! Everything is JSON. What goes wrong is said by the status, and in words by `error` of the answer. The description
//! of it all is made of what stands above each function here, and of the types that it takes and gives.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::map_response;
use axum::routing::get;
use axum::{Extension, Json, Router};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::block_in_place;
use tracing::info;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::credentials::now;
use super::homes::Homes;
use super::metrics::{self, Totals};
use super::refusal::{Refusal, Refusals, Refused};
use super::{
    Attendance, Attending, Change, ClockOffset, Plan, Sources, clocks, description, events,
    histogram, page, recent,
};
use crate::Name;
use crate::collector::{Counted, FlowReport, Measured, Step, Stretch};
use crate::gate::{Caller, Gate};
use crate::pki::Role;
use crate::task::{Entered, Measure, Task};

/// Results that are answered at once, if nothing else is said, and at the most.
const RESULTS: u32 = 3600;
const MOST_RESULTS: u32 = 100_000;

/// Flows, each of which takes some kilobytes.
const MOST_FLOWS: u32 = 5000;

#[derive(Clone)]
pub(super) struct Api {
    pub(super) gate: Arc<Gate>,
    pub(super) plan: Arc<Plan>,
    pub(super) sources: Arc<Sources>,
    pub(super) attendance: Arc<Attendance>,
    pub(super) homes: Arc<Homes>,
    pub(super) totals: Arc<Totals>,
}

impl Api {
    pub(super) fn routes(self) -> Router {
        let (routes, described) = OpenApiRouter::with_openapi(description::begin())
            .routes(routes!(tasks))
            .routes(routes!(enter, end))
            .routes(routes!(results))
            .routes(routes!(histogram::histogram))
            .routes(routes!(recent::recent))
            .routes(routes!(probes))
            .routes(routes!(page::me))
            .routes(routes!(events::events))
            .routes(routes!(metrics::scrape))
            .routes(routes!(description::description))
            .split_for_parts();
        routes
            .layer(Extension(Arc::new(described)))
            .route("/", get(page::page))
            .route("/{file}", get(page::file))
            .fallback(async || Refusal::nothing_here())
            .method_not_allowed_fallback(async || Refusal::not_so())
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

/// The task whose name is in the path.
pub(super) struct Called(pub(super) Name);

impl<S: Send + Sync> FromRequestParts<S> for Called {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(name) = path.map_err(|why| Refusal::wrong(why.body_text()))?;
        name.parse().map(Self).map_err(Refusal::wrong)
    }
}

/// A task with its number.
#[derive(Serialize)]
pub(super) struct Numbered {
    pub(super) number: u64,
    #[serde(flatten)]
    pub(super) entered: Entered,
}

/// The tasks that there are or were
///
/// By their numbers, which are never given again.
#[utoipa::path(get, path = "/api/v1/tasks", responses(
    (status = 200, description = "All of them", body = [Numbered]),
    Refusals,
))]
async fn tasks(_: Reader, State(api): State<Api>) -> Json<Vec<Numbered>> {
    let tasks = api.plan.subscribe().borrow().clone();
    let numbered =
        tasks.iter().map(|(number, it)| Numbered { number: *number, entered: it.clone() });
    Json(numbered.collect())
}

/// Enters a task
///
/// A task of this name that is another is ended, and its results stay.
#[utoipa::path(put, path = "/api/v1/tasks/{name}", params(("name" = Name, Path)), request_body = Task, responses(
    (status = 200, description = "The same task is there already", body = Numbered),
    (status = 201, description = "The task was entered", body = Numbered),
    (status = 400, description = "What was sent is no such task", body = Refused),
    (status = 413, description = "What was sent is too long for a task", body = Refused),
    (status = 422, description = "Some keys cannot be what they are together", body = Refused),
    Refusals,
))]
async fn enter(
    // Looked at when the body is there: curl takes an answer that comes before for an error.
    operator: Result<Operator, Refusal>,
    State(api): State<Api>,
    name: Result<Called, Refusal>,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Numbered>), Refusal> {
    let (Operator(caller), Called(name)) = (operator?, name?);
    let body = body.map_err(|why| Refusal(why.status(), why.body_text()))?;
    let task = task(&name, &body)?;
    let (status, number) = match block_in_place(|| api.plan.enter(&task, now()))? {
        Change::Made(number) => (StatusCode::CREATED, number),
        Change::Kept(number) => (StatusCode::OK, number),
    };
    if status == StatusCode::CREATED {
        info!("the {} enters task {name}", caller.subject());
    }
    let entered = api.plan.subscribe().borrow().get(&number).cloned();
    let entered = entered.ok_or_else(|| Refusal::no_such(&name))?;
    Ok((status, Json(Numbered { number, entered })))
}

/// The task that is put to a name, which need not be in it.
fn task(name: &Name, body: &[u8]) -> Result<Task, Refusal> {
    let mut value: Value = serde_json::from_slice(body).map_err(Refusal::wrong)?;
    if let Value::Object(keys) = &mut value {
        keys.entry("name").or_insert_with(|| name.to_string().into());
    }
    let task = Task::read(value)?;
    if task.name == *name {
        Ok(task)
    } else {
        let why = format!("the task is called {}, and is put to {name}", task.name);
        Err(Refusal(StatusCode::UNPROCESSABLE_ENTITY, why))
    }
}

/// Ends a task
///
/// Its results stay.
#[utoipa::path(delete, path = "/api/v1/tasks/{name}", params(("name" = Name, Path)), responses(
    (status = 204, description = "It does not run any more"),
    (status = 400, description = "That is no name", body = Refused),
    (status = 404, description = "No such task runs, or waits to run", body = Refused),
    Refusals,
))]
async fn end(
    Operator(caller): Operator,
    State(api): State<Api>,
    Called(name): Called,
) -> Result<StatusCode, Refusal> {
    let ended = block_in_place(|| api.plan.end(&name, now()))?;
    ended.ok_or_else(|| Refusal::no_such(&name))?;
    info!("the {} ends task {name}", caller.subject());
    Ok(StatusCode::NO_CONTENT)
}

/// In nanoseconds since 1970; of times too far from it, the farthest that there is.
pub(super) fn nanos(time: Timestamp) -> i64 {
    let nanos = time.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// Which results.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Not those that begin before this time; of flows, not those whose latest packet passed before.
    #[param(nullable = false)]
    from: Option<Timestamp>,
    /// Nor those that begin then or later.
    #[param(nullable = false)]
    until: Option<Timestamp>,
    /// By so many seconds: 1 is as the task measures, and is taken if nothing is said.
    #[param(schema_with = description::step)]
    step: Option<u32>,
    /// So many at the most, of those that fit the first; 3600 if nothing is said, and never more than 100,000, or
    /// 5000 flows.
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
        Ok(Stretch {
            step,
            from: self.from.map_or(i64::MIN, nanos),
            until: self.until.map_or(i64::MAX, nanos),
            most: self.limit.unwrap_or(RESULTS).min(MOST_RESULTS),
        })
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
#[utoipa::path(get, path = "/api/v1/tasks/{name}/results", params(("name" = Name, Path), Which), responses(
    (status = 200, description = "What was asked for, as far as it was measured", body = Found),
    (status = 400, description = "That is no name, or no stretch of results", body = Refused),
    (status = 404, description = "There was never such a task", body = Refused),
    Refusals,
))]
async fn results(
    _: Reader,
    State(api): State<Api>,
    Called(name): Called,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Found>, Refusal> {
    let Query(which) = which.map_err(|why| Refusal::wrong(why.body_text()))?;
    let (number, entered) = api.plan.newest(&name).ok_or_else(|| Refusal::no_such(&name))?;
    let stretch = which.stretch()?;
    let of_flows = Stretch { most: stretch.most.min(MOST_FLOWS), ..stretch };
    let results: Vec<_> = match entered.task.measure {
        Measure::Volume { .. } | Measure::Traffic { .. } => {
            let counted = api.sources.counted(number, &stretch).await?;
            counted.into_iter().map(Measurement::Interval).collect()
        }
        Measure::Flows { .. } => {
            let reports = api.sources.flows(number, &of_flows).await?;
            // Nothing else is kept.
            let values = reports.iter().filter_map(|report| serde_json::from_str(report).ok());
            values.map(|it| Measurement::Flow(Reported(it))).collect()
        }
        Measure::PassiveDelay(_) | Measure::ReportedDelay(_) | Measure::ActiveDelay(_) => {
            let measured = api.sources.measured(number, &stretch).await?;
            measured.into_iter().map(|it| Measurement::Window(Box::new(it))).collect()
        }
    };
    let (task, step_s) = (Numbered { number, entered }, which.step.unwrap_or(1));
    let tasks = api.plan.subscribe().borrow().clone();
    let clocks = clocks::between(&task.entered.task.measure, &tasks, &api.attendance);
    Ok(Json(Found { task, step_s, clocks, results }))
}

/// A probe with its name.
#[derive(Serialize, ToSchema)]
#[schema(as = Probe)]
struct Named {
    name: Name,
    #[serde(flatten)]
    attending: Attending,
}

/// The probes that attend, or did since the controller was started
#[utoipa::path(get, path = "/api/v1/probes", responses(
    (status = 200, description = "All of them", body = [Named]),
    Refusals,
))]
async fn probes(_: Reader, State(api): State<Api>) -> Json<Vec<Named>> {
    let all = api.attendance.all().into_iter();
    Json(all.map(|(name, attending)| Named { name, attending }).collect())
}
