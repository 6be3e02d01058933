//! How often which delay was, in any stretch of time.

use std::ops::Range;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::task::block_in_place;
use wirestamp_metrics::{Bucket, CompactHistogram};

use super::api::{Api, Numbered, Reader, Refusal, nanos, no_such, wrong};
use crate::Name;
use crate::collector::{Histograms, Missing};

/// Of which time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Which {
    fn stretch(&self) -> Range<i64> {
        self.from.map_or(i64::MIN, nanos)..self.until.map_or(i64::MAX, nanos)
    }
}

/// The histograms of a task. Those without values are empty.
#[derive(Serialize)]
pub(super) struct Found {
    task: Numbered,
    delay_ns: Vec<Counted>,
    variation_ns: Vec<Counted>,
    /// How far the middle of a bucket may be off from its values, as a share of these.
    relative_error: f64,
    /// Values that were measured, and are in neither.
    missing: Missing,
}

/// So many values from one on and below another, in nanoseconds.
#[derive(Serialize)]
struct Counted {
    from: i64,
    until: i64,
    count: u64,
}

impl From<Bucket> for Counted {
    fn from(Bucket { from, until, count }: Bucket) -> Self {
        Self { from, until, count }
    }
}

/// `GET /api/v1/tasks/{name}/histogram`.
pub(super) async fn histogram(
    _: Reader,
    State(api): State<Api>,
    Path(name): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Found>, Refusal> {
    let name: Name = name.parse().map_err(wrong)?;
    let Query(which) = which.map_err(|why| wrong(why.body_text()))?;
    let (number, entered) = api.plan.newest(&name).ok_or_else(|| no_such(&name))?;
    let measure = &entered.task.measure;
    if !measure.is_delay() {
        let measure = measure.name();
        return Err(wrong(format!("task {name} measures {measure}, and histograms are of delays")));
    }
    let found = block_in_place(|| api.collector.histograms(number, which.stretch()))?;
    let Histograms { delay, variation, missing } = found;
    Ok(Json(Found {
        task: Numbered { number, entered },
        delay_ns: delay.buckets().map(Counted::from).collect(),
        variation_ns: variation.buckets().map(Counted::from).collect(),
        relative_error: CompactHistogram::ERROR,
        missing,
    }))
}
