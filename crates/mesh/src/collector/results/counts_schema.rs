//! Schema of a window's packet counts.

use std::borrow::Cow;

use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Schema of [`wirestamp_metrics::Counts`], which has none of its own.
pub(super) struct CountsSchema;

const COUNTS: [(&str, &str); 10] = [
    ("sent", "Packets seen at the first point."),
    ("received", "Packets seen at the second point, including duplicates."),
    ("matched", "Packets seen at both points."),
    (
        "lost",
        "Packets seen at the first point and not at the second within the timeout (RFC 7680).",
    ),
    ("duplicated", "Duplicates at the second point (RFC 5560)."),
    ("reordered", "Packets that arrived after a later packet of their flow (RFC 4737)."),
    ("unexpected", "Packets seen at the second point only."),
    ("given_up_sent", "Packets at the first point whose outcome is undetermined."),
    ("given_up_received", "Packets at the second point whose origin is undetermined."),
    ("identical", "Packets at the first point that are identical to an earlier one."),
];

impl PartialSchema for CountsSchema {
    fn schema() -> RefOr<Schema> {
        let all = ObjectBuilder::new().schema_type(Type::Object);
        let all = COUNTS.into_iter().fold(all, |all, (name, description)| {
            all.property(name, count(description)).required(name)
        });
        all.build().into()
    }
}

impl ToSchema for CountsSchema {
    fn name() -> Cow<'static, str> {
        "Fates".into()
    }
}

fn count(description: &str) -> Object {
    let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let format = SchemaFormat::KnownFormat(KnownFormat::Int64);
    count.format(Some(format)).description(Some(description)).build()
}

#[cfg(test)]
mod tests {
    use wirestamp_metrics::Counts;

    use super::*;

    #[test]
    fn every_count_has_a_schema() {
        let written = serde_json::to_value(Counts::default()).unwrap();
        let mut names: Vec<_> = COUNTS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        let mut written: Vec<_> = written.as_object().unwrap().keys().collect();
        written.sort_unstable();
        assert_eq!(names, written);
    }
}
