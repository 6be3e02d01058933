//! The OpenAPI 3.1 description of the API.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::security::{SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder};

use super::api::{MAX_FLOWS, MAX_RESULTS, Reader};
use super::error_response::{CommonErrors, ErrorBody};

const CERTIFICATE: &str = "certificate";

/// The description without its paths.
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
        .schema_from::<ErrorBody>()
        .security_scheme(CERTIFICATE, certificate)
        .build();
    // On the controller's machine no certificate is needed with `--page`.
    let security =
        [SecurityRequirement::new::<_, _, &str>(CERTIFICATE, []), SecurityRequirement::default()];
    let description = OpenApiBuilder::new().info(info.build()).components(Some(components));
    description.security(Some(security)).build()
}

/// General description of the API.
fn about() -> String {
    format!(
        "Tasks, probes and results of a mesh of Wirestamp probes. A response has at most {MAX_RESULTS} results or \
         {MAX_FLOWS} flows. For more, request again from after the last result; for fewer, request a \
         coarser step or a shorter time. A request body has at most 2 MB."
    )
}

/// This description
#[utoipa::path(get, path = "/api/v1/openapi.json", responses(
    (status = 200, description = "In the format of OpenAPI 3.1", body = Object),
    CommonErrors,
))]
pub(super) async fn description(
    _: Reader,
    Extension(described): Extension<Arc<OpenApi>>,
) -> Response {
    Json(&*described).into_response()
}

/// Steps of results, in seconds.
pub(super) fn step() -> Object {
    let step = ObjectBuilder::new().schema_type(Type::Integer);
    let format = SchemaFormat::KnownFormat(KnownFormat::Int32);
    step.format(Some(format)).enum_values(Some([1, 60, 3600])).build()
}

/// Max number of results.
pub(super) fn limit() -> Object {
    let limit = ObjectBuilder::new().schema_type(Type::Integer);
    limit.minimum(Some(0)).maximum(Some(MAX_RESULTS)).build()
}
