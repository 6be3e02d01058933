//! Removal of ended tasks with their results.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use tokio::task::block_in_place;
use tracing::info;
use utoipa::IntoParams;

use super::api::{Api, Operator, PathName};
use super::error_response::{ApiError, CommonErrors, ErrorBody};
use super::task_store::Removal;
use crate::Name;

/// Selection of the task.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RemovalQuery {
    /// Number of the task.
    #[param(maximum = 9_223_372_036_854_775_807_i64)]
    number: u64,
}

/// Removes an ended task with its results
///
/// Its collector deletes the results soon, or when it connects again. They cannot be restored. The number is not used
/// again.
#[utoipa::path(delete, path = "/api/v1/tasks/{name}/results", params(("name" = Name, Path), RemovalQuery), responses(
    (status = 204, description = "The task was removed"),
    (status = 400, description = "The name or the number is not valid", body = ErrorBody),
    (status = 404, description = "There is no task of this name and number", body = ErrorBody),
    (status = 409, description = "The task has not ended", body = ErrorBody),
    CommonErrors,
))]
pub(super) async fn remove(
    Operator(caller): Operator,
    State(api): State<Api>,
    PathName(name): PathName,
    query: Result<Query<RemovalQuery>, QueryRejection>,
) -> Result<StatusCode, ApiError> {
    let Query(RemovalQuery { number }) = query?;
    match block_in_place(|| api.plan.remove(&name, number))? {
        Removal::Removed => {
            info!("the {} removed task {name} with number {number}", caller.subject());
            Ok(StatusCode::NO_CONTENT)
        }
        Removal::Running => {
            let why = format!("cannot remove task {name}: it has not ended; end it first");
            Err(ApiError(StatusCode::CONFLICT, why))
        }
        Removal::NoSuchTask => Err(ApiError::no_such(&name)),
    }
}
