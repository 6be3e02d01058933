//! State of the HTTP API, and what its handlers have in common.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::watch;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::error_response::ApiError;
use super::metrics::totals::Totals;
use super::placement::TaskPlacement;
use super::probe_registry::ProbeRegistry;
use super::shared_ca::ValidCertificates;
use super::sources::Sources;
use super::task_store::TaskStore;
use crate::Name;
use crate::authorizer::{Authorizer, Caller};
use crate::pki::Role;
use crate::task::{self, TaskRecord};

/// Max number of results: 100,000 seconds are more than a day.
pub(super) const MAX_RESULTS: u32 = 100_000;

/// Max number of flows; each takes some kilobytes.
pub(super) const MAX_FLOWS: u32 = 5000;

#[derive(Clone)]
pub(super) struct Api {
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) plan: Arc<TaskStore>,
    pub(super) sources: Arc<Sources>,
    pub(super) probes: Arc<ProbeRegistry>,
    pub(super) placement: Arc<TaskPlacement>,
    pub(super) members: watch::Receiver<Arc<ValidCertificates>>,
    pub(super) totals: Arc<Totals>,
}

/// A caller with a role that may read.
pub(super) struct Reader(pub(super) Caller);

/// A caller with a role that may change tasks.
pub(super) struct Operator(pub(super) Caller);

impl FromRequestParts<Api> for Reader {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let may = [Role::Viewer, Role::Operator, Role::Controller];
        Ok(Self(api.authorizer.caller(&parts.extensions, &may)?))
    }
}

impl FromRequestParts<Api> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        Ok(Self(api.authorizer.caller(&parts.extensions, &[Role::Operator, Role::Controller])?))
    }
}

/// The task name from the path.
pub(super) struct PathName(pub(super) Name);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let Path(name) = path.map_err(|why| ApiError::wrong(why.body_text()))?;
        name.parse().map(Self).map_err(ApiError::wrong)
    }
}

/// A task with its number.
#[derive(Serialize)]
pub(super) struct NumberedTask {
    pub(super) number: u64,
    #[serde(flatten)]
    pub(super) entered: TaskRecord,
    /// Its probes that are not connected, unless the task has ended: it waits for them.
    pub(super) unconnected: Vec<Name>,
}

impl Api {
    /// A task with its number.
    pub(super) fn numbered(&self, number: u64, entered: TaskRecord) -> NumberedTask {
        let probes =
            if entered.ended.is_some() { Vec::new() } else { entered.task.measure.probes() };
        let mut unconnected: Vec<_> =
            probes.into_iter().filter(|it| !self.probes.is_connected(it)).cloned().collect();
        unconnected.dedup();
        NumberedTask { number, entered, unconnected }
    }
}

impl PartialSchema for NumberedTask {
    fn schema() -> RefOr<Schema> {
        task::entered_schema()
    }
}

impl ToSchema for NumberedTask {
    fn name() -> Cow<'static, str> {
        "EnteredTask".into()
    }
}

/// Reads a time of a query.
pub(super) fn query_time<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Timestamp>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong =
        |_| D::Error::custom(format!("{text:?} is not a time such as 2026-11-22T15:00:00Z"));
    text.parse().map(Some).map_err(wrong)
}

/// Nanoseconds since 1970, clamped to the range of `i64`.
pub(super) fn nanos(time: Timestamp) -> i64 {
    let nanos = time.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}
