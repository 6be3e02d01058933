//! The HTTP API for people and programs.
//!
//! All bodies are JSON. Errors have a status and a text in `error`. The OpenAPI description is generated from the doc
//! comments of the handlers and from their types.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::middleware::map_response;
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde::Serialize;
use serde_json::Value;
use tokio::task::block_in_place;
use tracing::info;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::api::{Api, NumberedTask, Operator, PathName, Reader};
use super::credentials::now;
use super::error_response::{ApiError, CommonErrors, ErrorBody};
use super::probe_registry::RegisteredProbe;
use super::task_store::Change;
use super::{description, events, histogram, metrics, move_task, page, recent, removal, results};
use crate::Name;
use crate::task::{Task, without_shards};

/// The routes of the API and the page.
pub(super) fn routes(api: Api) -> Router {
    let (routes, described) = OpenApiRouter::with_openapi(description::begin())
        .routes(routes!(tasks))
        .routes(routes!(enter, end))
        .routes(routes!(move_task::move_task))
        .routes(routes!(results::results, removal::remove))
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
        .route("/healthz", get(health))
        .route("/{file}", get(page::file))
        .fallback(async || ApiError::nothing_here())
        .method_not_allowed_fallback(async || ApiError::not_so())
        .layer(map_response(page::guarded))
        .with_state(api)
}

/// Health of the controller, for monitoring: it needs no certificate.
async fn health(State(api): State<Api>) -> (StatusCode, &'static str) {
    if api.sources.troubles().iter().any(|(collector, _)| collector.is_none()) {
        (StatusCode::SERVICE_UNAVAILABLE, "cannot store results\n")
    } else {
        (StatusCode::OK, "ok\n")
    }
}

/// All tasks, also ended ones
///
/// Ordered by number. Numbers are never reused.
#[utoipa::path(get, path = "/api/v1/tasks", responses(
    (status = 200, description = "All tasks", body = [NumberedTask]),
    CommonErrors,
))]
async fn tasks(_: Reader, State(api): State<Api>) -> Json<Vec<NumberedTask>> {
    let tasks = api.plan.subscribe().borrow().clone();
    Json(without_shards(&tasks).map(|(number, it)| api.numbered(*number, it.clone())).collect())
}

/// Creates a task
///
/// A different task of the same name is ended; its results stay.
#[utoipa::path(put, path = "/api/v1/tasks/{name}", params(("name" = Name, Path)), request_body = Task, responses(
    (status = 200, description = "The same task exists already", body = NumberedTask),
    (status = 201, description = "The task was created", body = NumberedTask),
    (status = 400, description = "The body is not a task", body = ErrorBody),
    (status = 413, description = "The body is too long", body = ErrorBody),
    (status = 422, description = "The values of some keys contradict each other, or the filter is not valid", body = ErrorBody),
    CommonErrors,
))]
async fn enter(
    // Checked after the body was read: curl treats an earlier response as an error.
    operator: Result<Operator, ApiError>,
    State(api): State<Api>,
    name: Result<PathName, ApiError>,
    body: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<NumberedTask>), ApiError> {
    let (Operator(caller), PathName(name)) = (operator?, name?);
    let body = body.map_err(|why| ApiError(why.status(), why.body_text()))?;
    let task = task(&name, &body)?;
    let (status, number) = match block_in_place(|| api.plan.enter(&task, now()))? {
        Change::Created(number) => (StatusCode::CREATED, number),
        Change::Unchanged(number) => (StatusCode::OK, number),
    };
    if status == StatusCode::CREATED {
        info!("the {} created task {name}", caller.subject());
    }
    let entered = api.plan.subscribe().borrow().get(&number).cloned();
    let entered = entered.ok_or_else(|| ApiError::no_such(&name))?;
    Ok((status, Json(api.numbered(number, entered))))
}

/// Parses the task for `name`. The body may omit its name.
fn task(name: &Name, body: &[u8]) -> Result<Task, ApiError> {
    let mut value: Value = serde_json::from_slice(body).map_err(ApiError::wrong)?;
    if let Value::Object(keys) = &mut value {
        keys.entry("name").or_insert_with(|| name.to_string().into());
    }
    let task = Task::read(value)?;
    if task.name == *name {
        Ok(task)
    } else {
        let why = format!("cannot create task {name}: the body names it {}", task.name);
        Err(ApiError(StatusCode::UNPROCESSABLE_ENTITY, why))
    }
}

/// Ends a task
///
/// Its results stay until the task is removed.
#[utoipa::path(delete, path = "/api/v1/tasks/{name}", params(("name" = Name, Path)), responses(
    (status = 204, description = "The task was ended"),
    (status = 400, description = "The name is not valid", body = ErrorBody),
    (status = 404, description = "There is no current task of this name", body = ErrorBody),
    CommonErrors,
))]
async fn end(
    Operator(caller): Operator,
    State(api): State<Api>,
    PathName(name): PathName,
) -> Result<StatusCode, ApiError> {
    let ended = block_in_place(|| api.plan.end(&name, now()))?;
    ended.ok_or_else(|| ApiError::no_such(&name))?;
    info!("the {} ended task {name}", caller.subject());
    Ok(StatusCode::NO_CONTENT)
}

/// A probe with its name.
#[derive(Serialize, ToSchema)]
#[schema(as = Probe)]
struct NamedProbe {
    name: Name,
    #[serde(flatten)]
    attending: RegisteredProbe,
}

/// Probes that are or were connected since the controller started
#[utoipa::path(get, path = "/api/v1/probes", responses(
    (status = 200, description = "All probes", body = [NamedProbe]),
    CommonErrors,
))]
async fn probes(_: Reader, State(api): State<Api>) -> Json<Vec<NamedProbe>> {
    let all = api.probes.all().into_iter();
    Json(all.map(|(name, attending)| NamedProbe { name, attending }).collect())
}
