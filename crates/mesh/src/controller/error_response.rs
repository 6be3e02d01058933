//! Error responses: a status and a text.

use std::collections::BTreeMap;
use std::error::Error;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema, openapi};

use super::sources::QueryError;
use crate::authorizer::AuthorizationError;
use crate::task::WrongTask;
use crate::{DatabaseError, Name};

/// An error response.
pub(super) struct ApiError(pub(super) StatusCode, pub(super) String);

/// Body of an error response.
#[derive(Serialize, ToSchema)]
#[schema(as = Refused)]
pub(super) struct ErrorBody {
    /// Error and next step, in one text.
    error: String,
}

impl ApiError {
    /// An error of the controller.
    pub(super) fn failure(why: impl ToString) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
    }

    /// A request that is not valid.
    pub(super) fn wrong(why: impl ToString) -> Self {
        Self(StatusCode::BAD_REQUEST, why.to_string())
    }

    pub(super) fn no_such(name: &Name) -> Self {
        Self(StatusCode::NOT_FOUND, format!("there is no task {name}"))
    }

    pub(super) fn nothing_here() -> Self {
        Self(StatusCode::NOT_FOUND, "there is nothing at this path".to_owned())
    }

    /// The path exists, but not with this method.
    pub(super) fn not_so() -> Self {
        Self(
            StatusCode::METHOD_NOT_ALLOWED,
            "this method is not supported here: see `Allow`".to_owned(),
        )
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.0, Json(ErrorBody { error: self.1 })).into_response()
    }
}

impl From<QueryRejection> for ApiError {
    /// The parameter and its error, without the text of the library.
    fn from(rejection: QueryRejection) -> Self {
        Self::wrong(rejection.source().map_or_else(|| rejection.body_text(), ToString::to_string))
    }
}

impl From<AuthorizationError> for ApiError {
    fn from(denied: AuthorizationError) -> Self {
        let status = match denied {
            AuthorizationError::NoCertificate | AuthorizationError::NotValid(_) => {
                StatusCode::UNAUTHORIZED
            }
            AuthorizationError::Role(_) => StatusCode::FORBIDDEN,
            AuthorizationError::Authority(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self(status, denied.to_string())
    }
}

impl From<DatabaseError> for ApiError {
    fn from(error: DatabaseError) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        let status = match error {
            QueryError::TooMuch(_) => StatusCode::BAD_REQUEST,
            QueryError::Database(_) | QueryError::Own(_) | QueryError::Away { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        Self(status, error.to_string())
    }
}

impl From<WrongTask> for ApiError {
    fn from(wrong: WrongTask) -> Self {
        let status = match wrong {
            WrongTask::Contradiction { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::BAD_REQUEST,
        };
        Self(status, wrong.to_string())
    }
}

/// Error responses that every path may return.
pub(super) struct CommonErrors;

const REFUSALS: [(StatusCode, &str); 3] = [
    (StatusCode::UNAUTHORIZED, "The caller has no valid certificate of the mesh"),
    (
        StatusCode::FORBIDDEN,
        "The caller's role may not do this, or another web page sent the request",
    ),
    (
        StatusCode::SERVICE_UNAVAILABLE,
        "A file of the controller cannot be used at the moment, or a collector does not answer",
    ),
];

impl IntoResponses for CommonErrors {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let refusal = |(status, why): (StatusCode, &str)| {
            let said = Ref::from_schema_name(ErrorBody::name());
            let content = ContentBuilder::new().schema(Some(said)).build();
            let response = ResponseBuilder::new().description(why);
            let response = response.content("application/json", content).build();
            (status.as_str().to_owned(), response.into())
        };
        REFUSALS.into_iter().map(refusal).collect()
    }
}
