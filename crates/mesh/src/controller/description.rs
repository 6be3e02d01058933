//! The description of the API (OpenAPI 3.1), for programs and for those who write them.

use std::borrow::Cow;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::security::{SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::api::{Numbered, Reader};
use super::refusal::{Refusals, Refused};
use super::results::{MOST_FLOWS, MOST_RESULTS};
use crate::task;

const CERTIFICATE: &str = "certificate";

/// What there is to say before any function is described.
pub(super) fn begin() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Wirestamp's controller")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(about()));
    let certificate = SecurityScheme::MutualTls {
        description: Some("A certificate of the mesh (`wirestamp pki issue`)".to_owned()),
        deprecated: None,
        extensions: None,
    };
    let components = ComponentsBuilder::new()
        .schema_from::<Refused>()
        .security_scheme(CERTIFICATE, certificate)
        .build();
    // On the controller's machine none is needed where it was told so (`--page`).
    let security =
        [SecurityRequirement::new::<_, _, &str>(CERTIFICATE, []), SecurityRequirement::default()];
    let description = OpenApiBuilder::new().info(info.build()).components(Some(components));
    description.security(Some(security)).build()
}

/// What holds for all functions.
fn about() -> String {
    format!(
        "Tasks, probes and results of a mesh of Wirestamp's probes. An answer has {MOST_RESULTS} results or \
         {MOST_FLOWS} flows at the most: who wants more asks again from behind the last, and who wants less in place \
         of it asks for a coarser step or a shorter time. What is sent has 2 MB at the most."
    )
}

/// This description
#[utoipa::path(get, path = "/api/v1/openapi.json", responses(
    (status = 200, description = "In the format of OpenAPI 3.1", body = Object),
    Refusals,
))]
pub(super) async fn description(
    _: Reader,
    Extension(described): Extension<Arc<OpenApi>>,
) -> Response {
    Json(&*described).into_response()
}

/// By what results can be asked for, in seconds.
pub(super) fn step() -> Object {
    let step = ObjectBuilder::new().schema_type(Type::Integer);
    let format = SchemaFormat::KnownFormat(KnownFormat::Int32);
    step.format(Some(format)).enum_values(Some([1, 60, 3600])).build()
}

/// How many results can be asked for.
pub(super) fn limit() -> Object {
    let limit = ObjectBuilder::new().schema_type(Type::Integer);
    limit.minimum(Some(0)).maximum(Some(MOST_RESULTS)).build()
}

impl PartialSchema for Numbered {
    fn schema() -> RefOr<Schema> {
        task::entered_schema()
    }
}

impl ToSchema for Numbered {
    fn name() -> Cow<'static, str> {
        "EnteredTask".into()
    }
}
