//! The page on which people watch the mesh.

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
use super::refusal::{Refusal, Refusals};
use crate::Name;
use crate::pki::Role;

/// Everything comes from here, nothing of it is written into the page itself, and no other page holds it in
/// a frame (Content Security Policy Level 3).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Who asks.
#[derive(Serialize, ToSchema)]
pub(super) struct Me {
    name: Name,
    role: Role,
}

/// Who asks, and what they may do
#[utoipa::path(get, path = "/api/v1/me", responses(
    (status = 200, description = "As the certificate says; on the controller's machine, where none is needed, \
                                  an operator called `local`", body = Me),
    Refusals,
))]
pub(super) async fn me(Reader(caller): Reader) -> Json<Me> {
    let subject = caller.subject().clone();
    Json(Me { name: subject.name, role: subject.role })
}

pub(super) async fn page(reader: Reader, asked: HeaderMap) -> Result<Response, Refusal> {
    file(reader, Path(embedded::PAGE.to_owned()), asked).await
}

pub(super) async fn file(
    _: Reader,
    Path(name): Path<String>,
    asked: HeaderMap,
) -> Result<Response, Refusal> {
    let file = embedded::file(&name).ok_or_else(Refusal::nothing_here)?;
    let tag = format!("\"{}\"", file.fingerprint);
    let is_known = asked.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    // A browser keeps the file, and asks each time whether it is still the same.
    let kept = [(ETAG, tag), (CACHE_CONTROL, "no-cache".to_owned())];
    Ok(if is_known {
        (StatusCode::NOT_MODIFIED, kept).into_response()
    } else {
        (kept, [(CONTENT_TYPE, file.kind)], file.body).into_response()
    })
}

/// An answer with what browsers have to be told so that no other page makes use of it.
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
