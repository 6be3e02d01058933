//! What people and programs ask the controller for, over HTTP.
//!
//! Everything is JSON. What goes wrong is said by the status, and in words by `error` of the answer. The description
//! of it all is made of what stands above each function here, and of the types that it takes and gives.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::map_response;
use axum::routing::get;
use axum::{Extension, Json, Router};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::task::block_in_place;
use tracing::info;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::credentials::now;
use super::homes::Homes;
use super::metrics::{self, Totals};
use super::refusal::{Refusal, Refusals, Refused};
use super::{
    Attendance, Attending, Change, Plan, Sources, description, events, histogram, page, recent,
    results,
};
use crate::Name;
use crate::gate::{Caller, Gate};
use crate::pki::Role;
use crate::task::{Entered, Task};

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
            .routes(routes!(results::results))
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
