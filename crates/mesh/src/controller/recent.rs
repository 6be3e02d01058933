//! The newest results of all tasks at once, in a few numbers: a page with all of them asks for nothing else.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::task::block_in_place;
use wirestamp_clock::Time;

use super::api::{Api, Reader, Refusal, nanos, wrong};
use crate::collector::Recent;

/// Results of each task, at the most: the page shows three minutes.
const MOST: u32 = 200;

/// From when on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    from: Option<Timestamp>,
}

/// By the numbers of tasks.
#[derive(Serialize)]
pub(super) struct Found {
    results: BTreeMap<u64, Recent>,
}

/// `GET /api/v1/results`.
pub(super) async fn recent(
    _: Reader,
    State(api): State<Api>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Found>, Refusal> {
    let Query(which) = which.map_err(|why| wrong(why.body_text()))?;
    let from = Time::from_nanos(which.from.map_or(i64::MIN, nanos));
    Ok(Json(Found { results: block_in_place(|| api.collector.recent(from, MOST))? }))
}
