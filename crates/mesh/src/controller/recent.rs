//! The newest results of all tasks in a compact schema, for the dashboard.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wirestamp_clock::Time;

use super::api::{Api, Reader, nanos};
use super::error_response::{ApiError, CommonErrors, ErrorBody};
use super::sources::QueryError;
use crate::collector::Recent;
use crate::task::first_shard;

/// Max results per task: the dashboard shows three minutes.
const MAX_RESULTS: u32 = 200;

/// Begin of the time range.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RecentQuery {
    /// Only results that begin at or after this time.
    #[param(nullable = false)]
    from: Option<Timestamp>,
}

/// Results by task number.
#[derive(Serialize, ToSchema)]
#[schema(as = RecentResults)]
pub(super) struct RecentResponse {
    /// Delay windows, and intervals of `volume` and `traffic`, ordered by time.
    results: BTreeMap<u64, Recent>,
    /// Collectors that do not answer, whose results are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    not_answered: Vec<String>,
    /// Current tasks of these collectors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    without_results: Vec<u64>,
    /// Collectors that cannot store new results, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    cannot_store: Vec<String>,
}

/// The newest results of all current tasks, in a compact schema
///
/// At most 200 per task.
#[utoipa::path(get, path = "/api/v1/results", params(RecentQuery), responses(
    (status = 200, description = "Results by task number", body = RecentResponse),
    (status = 400, description = "The time is not valid", body = ErrorBody),
    CommonErrors,
))]
pub(super) async fn recent(
    _: Reader,
    State(api): State<Api>,
    query: Result<Query<RecentQuery>, QueryRejection>,
) -> Result<Json<RecentResponse>, ApiError> {
    let Query(query) = query?;
    let from = Time::from_nanos(query.from.map_or(i64::MIN, nanos));
    let (results, away) = api.sources.recent(from, MAX_RESULTS).await?;
    let tasks = api.plan.subscribe().borrow().clone();
    let without_results = away
        .iter()
        .filter_map(QueryError::collector)
        .flat_map(|collector| api.placement.tasks_of(&tasks, Some(collector)))
        .filter_map(|(number, task)| task.ended.is_none().then_some(first_shard(number, &tasks)))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let not_answered = away.iter().map(QueryError::to_string).collect();
    let cannot_store = api.sources.troubles().into_iter().map(|(collector, why)| {
        let who = collector.map_or_else(
            || "the controller".to_owned(),
            |collector| format!("the collector {collector}"),
        );
        format!("{who} cannot store results: {why}")
    });
    let cannot_store = cannot_store.collect();
    Ok(Json(RecentResponse { results, not_answered, without_results, cannot_store }))
}
