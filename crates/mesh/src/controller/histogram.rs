//! How often which delay was, in any stretch of time.

use std::ops::Range;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wirestamp_metrics::{Bucket, CompactHistogram};

use super::api::{Api, Called, Numbered, Reader, nanos};
use super::refusal::{Refusal, Refusals, Refused};
use crate::Name;
use crate::collector::{Histograms, Missing};

/// Of which time.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Not what was measured in seconds that begin before this time,
    #[param(nullable = false)]
    from: Option<Timestamp>,
    /// nor then or later.
    #[param(nullable = false)]
    until: Option<Timestamp>,
}

impl Which {
    fn stretch(&self) -> Range<i64> {
        self.from.map_or(i64::MIN, nanos)..self.until.map_or(i64::MAX, nanos)
    }
}

/// The histograms of a task. Those without values are empty.
#[derive(Serialize, ToSchema)]
#[schema(as = Histograms)]
pub(super) struct Found {
    task: Numbered,
    /// One-way delays, of the windows in which they are known.
    delay_ns: Vec<Counted>,
    /// Variations of delay from packet to packet.
    variation_ns: Vec<Counted>,
    /// How far the middle of a bucket may be off from its values, as a share of these.
    relative_error: f64,
    /// Values that were measured, and are in neither.
    missing: Missing,
}

/// So many values from one on and below another, in nanoseconds.
#[derive(Serialize, ToSchema)]
#[schema(as = Bucket)]
struct Counted {
    /// Values are this at the least,
    from: i64,
    /// and below this.
    until: i64,
    /// How many they are.
    count: u64,
}

impl From<Bucket> for Counted {
    fn from(Bucket { from, until, count }: Bucket) -> Self {
        Self { from, until, count }
    }
}

/// How often which delay was, as the newest task of a name has measured it
#[utoipa::path(get, path = "/api/v1/tasks/{name}/histogram", params(("name" = Name, Path), Which), responses(
    (status = 200, description = "Of all that was asked for", body = Found),
    (status = 400, description = "That is no name, or no stretch of time", body = Refused),
    (status = 404, description = "There was never such a task", body = Refused),
    (status = 422, description = "The task measures no delays", body = Refused),
    Refusals,
))]
pub(super) async fn histogram(
    _: Reader,
    State(api): State<Api>,
    Called(name): Called,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Found>, Refusal> {
    let Query(which) = which.map_err(|why| Refusal::wrong(why.body_text()))?;
    let (number, entered) = api.plan.newest(&name).ok_or_else(|| Refusal::no_such(&name))?;
    let measure = &entered.task.measure;
    if !measure.is_delay() {
        let measure = measure.name();
        let why = format!("task {name} measures {measure}, and histograms are of delays");
        return Err(Refusal(StatusCode::UNPROCESSABLE_ENTITY, why));
    }
    let found = api.sources.histograms(number, which.stretch()).await?;
    let Histograms { delay, variation, missing } = found;
    Ok(Json(Found {
        task: Numbered { number, entered },
        delay_ns: delay.buckets().map(Counted::from).collect(),
        variation_ns: variation.buckets().map(Counted::from).collect(),
        relative_error: CompactHistogram::ERROR,
        missing,
    }))
}
