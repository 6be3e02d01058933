//! The newest results of all tasks at once, in a few numbers: a page with all of them asks for nothing else.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wirestamp_clock::Time;

use super::NoAnswer;
use super::api::{Api, Reader, nanos};
use super::refusal::{Refusal, Refusals, Refused};
use crate::collector::Recent;

/// Results of each task, at the most: the page shows three minutes.
const MOST: u32 = 200;

/// From when on.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Not those that begin before this time.
    #[param(nullable = false)]
    from: Option<Timestamp>,
}

/// By the numbers of tasks.
#[derive(Serialize, ToSchema)]
#[schema(as = RecentResults)]
pub(super) struct Found {
    /// Windows of delays, and intervals of `volume` and `traffic`, in their order.
    results: BTreeMap<u64, Recent>,
    /// Whose results are missing, because a collector does not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    not_answered: Vec<String>,
}

/// The newest results of all tasks that are not ended, in a few numbers
///
/// 200 of each at the most.
#[utoipa::path(get, path = "/api/v1/results", params(Which), responses(
    (status = 200, description = "By the numbers of tasks", body = Found),
    (status = 400, description = "That is no time", body = Refused),
    Refusals,
))]
pub(super) async fn recent(
    _: Reader,
    State(api): State<Api>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Found>, Refusal> {
    let Query(which) = which.map_err(|why| Refusal::wrong(why.body_text()))?;
    let from = Time::from_nanos(which.from.map_or(i64::MIN, nanos));
    let (results, away) = api.sources.recent(from, MOST).await?;
    let not_answered = away.iter().map(NoAnswer::to_string).collect();
    Ok(Json(Found { results, not_answered }))
}
