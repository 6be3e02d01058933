//! Moves of tasks to other collectors: on request, and when a collector is away.

use std::future;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::block_in_place;
use tokio::time;
use tracing::{info, warn};
use utoipa::ToSchema;

use super::api::{Api, Operator, PathName};
use super::error_response::{ApiError, CommonErrors, ErrorBody};
use super::placement::{MoveError, TaskPlacement};
use super::shared_ca::SharedCa;
use super::task_store::TaskStore;
use crate::Name;
use crate::collector::Collector;
use crate::task::{make_whole, shards};

/// Interval of checks whether a collector is away for too long.
const INTERVAL: Duration = Duration::from_millis(500);

/// Name of the controller's own collector, unless another one has it.
const OWN: &str = "controller";

/// Where a task moves.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Destination)]
pub(super) struct MoveRequest {
    /// Name of a connected collector; `controller` is the controller's own.
    to: Name,
    /// Index of the shard that moves; by default all shards of the task move.
    #[schema(maximum = 63)]
    shard: Option<u16>,
}

/// Collector of a task.
#[derive(Serialize, ToSchema)]
#[schema(as = MovedTask)]
pub(super) struct MovedTask {
    /// Number of the task.
    number: u64,
    /// Its collector.
    collector: Name,
    /// Number of its moves; max of the shards that moved.
    epoch: u64,
}

/// Moves a current task to another collector
///
/// Each result is at one collector. Earlier results stay where they are, and are read from there.
#[utoipa::path(post, path = "/api/v1/tasks/{name}/move", params(("name" = Name, Path)), request_body = MoveRequest, responses(
    (status = 200, description = "The task is at this collector", body = MovedTask),
    (status = 400, description = "The name or the body is not valid", body = ErrorBody),
    (status = 404, description = "There is no current task or no collector of this name", body = ErrorBody),
    (status = 409, description = "The task cannot move, or the collector is not connected", body = ErrorBody),
    (status = 413, description = "The body is too long", body = ErrorBody),
    CommonErrors,
))]
pub(super) async fn move_task(
    // Checked after the body was read: curl treats an earlier response as an error.
    operator: Result<Operator, ApiError>,
    State(api): State<Api>,
    name: Result<PathName, ApiError>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<MovedTask>, ApiError> {
    let (Operator(caller), PathName(name)) = (operator?, name?);
    let body = body.map_err(|why| ApiError(why.status(), why.body_text()))?;
    let mut request: Value = serde_json::from_slice(&body).map_err(ApiError::wrong)?;
    request.as_object_mut().into_iter().flatten().for_each(|(_, value)| make_whole(value));
    let request = serde_json::from_value(request).map_err(ApiError::wrong)?;
    let MoveRequest { to: collector, shard } = request;
    let (number, entered) = api.plan.current(&name).ok_or_else(|| ApiError::no_such(&name))?;
    let is_other = api.placement.address(&collector).is_some();
    let to = Some(&collector).filter(|it| is_other || it.as_ref() != OWN);
    let members = Arc::clone(&api.members.borrow());
    let count = entered.task.measure.shards();
    if let Some(shard) = shard.filter(|it| *it >= count) {
        let why = format!("cannot move shard {shard} of task {name}: it has {count}");
        return Err(ApiError(StatusCode::NOT_FOUND, why));
    }
    let moved = || {
        let numbers = shards(number, &entered);
        let is_meant = |it: &u64| shard.is_none_or(|shard| *it == number + u64::from(shard));
        numbers.filter(is_meant).try_fold(0, |epoch, number| {
            let of_it = (number, &entered.task.measure);
            Ok(api.placement.move_to(of_it, to, &members)?.max(epoch))
        })
    };
    let epoch = block_in_place(moved).map_err(|why| {
        let status = match why {
            MoveError::Database(error) => return error.into(),
            MoveError::NoSuchCollector(_) => StatusCode::NOT_FOUND,
            MoveError::NotPlaced | MoveError::Foreign | MoveError::NotConnected(_) => {
                StatusCode::CONFLICT
            }
        };
        ApiError(status, format!("cannot move task {name}: {why}"))
    })?;
    info!("the {} moved task {name} to {collector}", caller.subject());
    Ok(Json(MovedTask { number, collector, epoch }))
}

/// Moves the tasks of collectors that are away for `limit`, or have no valid certificate any more, forever.
pub(super) async fn keep_moving(
    limit: Option<Duration>,
    plan: &TaskStore,
    placement: &TaskPlacement,
    authority: &SharedCa,
) {
    let Some(limit) = limit else { return future::pending().await };
    let (tasks, members) = (plan.subscribe(), authority.members());
    let (mut interval, mut last) = (time::interval(INTERVAL), None);
    loop {
        interval.tick().await;
        let (tasks, members) = (Arc::clone(&tasks.borrow()), Arc::clone(&members.borrow()));
        let moved = block_in_place(|| placement.move_from_absent(limit, &tasks, &members));
        let why = moved.err().map(|error| error.to_string());
        if let Some(why) = why.as_ref().filter(|_| why != last) {
            warn!("cannot move tasks: {why}; retrying");
        }
        last = why;
    }
}

/// Stores where the results of tasks begin that moved to the controller's own collector, forever.
pub(super) async fn keep_begun(own: &Collector, placement: &TaskPlacement) {
    let mut begun = own.begun();
    loop {
        let now = Arc::clone(&begun.borrow_and_update());
        if let Err(error) = block_in_place(|| placement.begun(None, now.values().copied())) {
            warn!("cannot store where the results of tasks begin: {error}");
        }
        if begun.changed().await.is_err() {
            return;
        }
    }
}
