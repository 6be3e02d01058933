//! The dashboard over HTTP.

use axum::Json;
use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::api::Reader;
use super::embedded;
use super::error_response::{ApiError, CommonErrors};
use crate::Name;
use crate::pki::Role;

/// Only resources of this origin, no inline code, and no framing by other pages (Content Security Policy Level 3).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The caller.
#[derive(Serialize, ToSchema)]
pub(super) struct Me {
    name: Name,
    role: Role,
}

/// Name and role of the caller
#[utoipa::path(get, path = "/api/v1/me", responses(
    (status = 200, description = "From the certificate; without one, on the controller's machine, \
                                  the operator `local`", body = Me),
    CommonErrors,
))]
pub(super) async fn me(Reader(caller): Reader) -> Json<Me> {
    let subject = caller.subject().clone();
    Json(Me { name: subject.name, role: subject.role })
}

pub(super) async fn page(reader: Reader, asked: HeaderMap) -> Result<Response, ApiError> {
    file(reader, Path(embedded::PAGE.to_owned()), asked).await
}

pub(super) async fn file(
    _: Reader,
    Path(name): Path<String>,
    asked: HeaderMap,
) -> Result<Response, ApiError> {
    let file = embedded::file(&name).ok_or_else(ApiError::nothing_here)?;
    let tag = format!("\"{}\"", file.fingerprint);
    let is_known = asked.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    // The browser caches the file and revalidates it each time.
    let kept = [(ETAG, tag), (CACHE_CONTROL, "no-cache".to_owned())];
    Ok(if is_known {
        (StatusCode::NOT_MODIFIED, kept).into_response()
    } else {
        (kept, [(CONTENT_TYPE, file.kind)], file.body).into_response()
    })
}

/// Adds headers that keep other pages from using the response.
pub(super) async fn guarded(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (RESOURCE_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
