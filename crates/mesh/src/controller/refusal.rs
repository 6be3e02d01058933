//! What is answered where something is not: a status, and in words why.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema, openapi};

use super::NoAnswer;
use crate::gate::Denied;
use crate::task::WrongTask;
use crate::{DatabaseError, Name};

/// Why something is not answered.
pub(super) struct Refusal(pub(super) StatusCode, pub(super) String);

/// What is said in place of an answer.
#[derive(Serialize, ToSchema)]
pub(super) struct Refused {
    /// What happened, and what to do next, in one line.
    error: String,
}

impl Refusal {
    /// The fault is not the caller's.
    pub(super) fn failure(why: impl ToString) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
    }

    /// What was asked for makes no sense.
    pub(super) fn wrong(why: impl ToString) -> Self {
        Self(StatusCode::BAD_REQUEST, why.to_string())
    }

    pub(super) fn no_such(name: &Name) -> Self {
        Self(StatusCode::NOT_FOUND, format!("there is no task {name}"))
    }

    pub(super) fn nothing_here() -> Self {
        Self(StatusCode::NOT_FOUND, "there is nothing here".to_owned())
    }

    /// There is something, and it is not asked for so.
    pub(super) fn not_so() -> Self {
        Self(StatusCode::METHOD_NOT_ALLOWED, "this is not done here: see `Allow`".to_owned())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(Refused { error: self.1 })).into_response()
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let status = match denied {
            Denied::Nobody | Denied::NotGood(_) => StatusCode::UNAUTHORIZED,
            Denied::Role(_) => StatusCode::FORBIDDEN,
            Denied::Authority(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, denied.to_string())
    }
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

impl From<NoAnswer> for Refusal {
    fn from(error: NoAnswer) -> Self {
        let status = match error {
            NoAnswer::TooMuch(_) => StatusCode::BAD_REQUEST,
            NoAnswer::Database(_) | NoAnswer::Away { .. } => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, error.to_string())
    }
}

impl From<WrongTask> for Refusal {
    fn from(wrong: WrongTask) -> Self {
        let status = match wrong {
            WrongTask::Senseless { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::BAD_REQUEST,
        };
        Self(status, wrong.to_string())
    }
}

/// How anything may be refused, whatever was asked for.
pub(super) struct Refusals;

const REFUSALS: [(StatusCode, &str); 3] = [
    (StatusCode::UNAUTHORIZED, "The caller has no certificate of the mesh that is good"),
    (StatusCode::FORBIDDEN, "The caller's role may not do this, or the page of somebody else asks"),
    (
        StatusCode::SERVICE_UNAVAILABLE,
        "A file of the controller cannot be used just now, or a collector does not answer",
    ),
];

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let refusal = |(status, why): (StatusCode, &str)| {
            let said = Ref::from_schema_name(Refused::name());
            let content = ContentBuilder::new().schema(Some(said)).build();
            let response = ResponseBuilder::new().description(why);
            let response = response.content("application/json", content).build();
            (status.as_str().to_owned(), response.into())
        };
        REFUSALS.into_iter().map(refusal).collect()
    }
}
