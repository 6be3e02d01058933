//! Delay histograms of any time range.

use std::ops::Range;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wirestamp_metrics::{Bucket, CompactHistogram};

use super::api::{Api, NumberedTask, PathName, Reader, nanos, query_time};
use super::error_response::{ApiError, CommonErrors, ErrorBody};
use super::sources::MissingPart;
use crate::Name;
use crate::collector::{Histograms, Missing};

/// The time range.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistogramQuery {
    /// Number of the task; default: the newest one of the name.
    #[param(nullable = false, maximum = 9_223_372_036_854_775_807_i64)]
    number: Option<u64>,
    /// Only seconds that begin at or after this time.
    #[param(nullable = false)]
    #[serde(default, deserialize_with = "query_time")]
    from: Option<Timestamp>,
    /// Only seconds that begin before this time.
    #[param(nullable = false)]
    #[serde(default, deserialize_with = "query_time")]
    until: Option<Timestamp>,
}

impl HistogramQuery {
    fn range(&self) -> Range<i64> {
        self.from.map_or(i64::MIN, nanos)..self.until.map_or(i64::MAX, nanos)
    }
}

/// The histograms of a task. Histograms without values are empty.
#[derive(Serialize, ToSchema)]
#[schema(as = Histograms)]
pub(super) struct HistogramResponse {
    task: NumberedTask,
    /// One-way delays of the windows in which they are known.
    delay_ns: Vec<Counted>,
    /// Delay variation from packet to packet.
    variation_ns: Vec<Counted>,
    /// Max relative error of a bucket's middle.
    relative_error: f64,
    /// Values that were measured but are in neither histogram.
    missing: Missing,
    /// Collectors that the task had or has and that do not answer: their values are not contained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    partial: Vec<MissingPart>,
}

/// Number of values in a range, in nanoseconds.
#[derive(Serialize, ToSchema)]
#[schema(as = Bucket)]
struct Counted {
    /// Lower bound, inclusive.
    from: i64,
    /// Upper bound, exclusive.
    until: i64,
    /// Number of values.
    count: u64,
}

impl From<Bucket> for Counted {
    fn from(Bucket { from, until, count }: Bucket) -> Self {
        Self { from, until, count }
    }
}

/// Delay histograms of the newest task of a name, or of an earlier one
#[utoipa::path(get, path = "/api/v1/tasks/{name}/histogram", params(("name" = Name, Path), HistogramQuery), responses(
    (status = 200, description = "The histograms", body = HistogramResponse),
    (status = 400, description = "The name or the time range is not valid", body = ErrorBody),
    (status = 404, description = "There is no task of this name, or of this number", body = ErrorBody),
    (status = 422, description = "The task does not measure delay", body = ErrorBody),
    CommonErrors,
))]
pub(super) async fn histogram(
    _: Reader,
    State(api): State<Api>,
    PathName(name): PathName,
    query: Result<Query<HistogramQuery>, QueryRejection>,
) -> Result<Json<HistogramResponse>, ApiError> {
    let Query(query) = query?;
    let (number, entered) =
        api.plan.find(&name, query.number).ok_or_else(|| ApiError::no_such(&name))?;
    let measure = &entered.task.measure;
    if !measure.is_delay() {
        let measure = measure.name();
        let why =
            format!("cannot show histograms of task {name}: it measures {measure}, not delay");
        return Err(ApiError(StatusCode::UNPROCESSABLE_ENTITY, why));
    }
    let (found, partial) = api.sources.histograms_parts(number, query.range()).await?;
    let Histograms { delay, variation, missing } = found;
    Ok(Json(HistogramResponse {
        task: api.numbered(number, entered),
        delay_ns: delay.buckets().map(Counted::from).collect(),
        variation_ns: variation.buckets().map(Counted::from).collect(),
        relative_error: CompactHistogram::ERROR,
        missing,
        partial,
    }))
}
