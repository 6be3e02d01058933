//! The quality of packets in documents: members that a measurement does not know are null.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use wirestamp_metrics::Quality;

/// JSON of a quality, with null for the members `unknown`.
pub(crate) fn without(quality: &Quality, unknown: &[&str]) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(quality)?;
    if let Some(members) = value.as_object_mut() {
        members.extend(unknown.iter().map(|name| ((*name).to_owned(), Value::Null)));
    }
    Ok(value)
}

/// Schema of such JSON: the members `nullable` can be null.
pub(crate) fn schema(generator: &mut SchemaGenerator, nullable: &[&str]) -> Schema {
    let mut schema = Quality::json_schema(generator);
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, member) in
        properties.into_iter().flatten().filter(|(name, _)| nullable.contains(&name.as_str()))
    {
        allow_null(member);
    }
    schema
}

/// Adds null to the values of a schema that has one type, or is a reference.
fn allow_null(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    if let Some(kind) = members.get_mut("type")
        && kind.is_string()
    {
        *kind = json!([kind.take(), "null"]);
    } else if let Some(reference) = members.shift_remove("$ref") {
        let reference = Map::from_iter([("$ref".to_owned(), reference)]);
        members.insert("anyOf".to_owned(), json!([reference, {"type": "null"}]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_members_are_null_and_nullable() {
        let nullable = ["owd_ns", "lost"];
        let value = without(&Quality::default(), &nullable).unwrap();
        let schema = schema(&mut SchemaGenerator::default(), &nullable);
        let kinds = |name: &str| schema.get("properties").unwrap()[name].clone();
        assert_eq!((&value["owd_ns"], &value["lost"]), (&Value::Null, &Value::Null));
        assert_eq!((&value["sent"], kinds("sent")["type"].as_str()), (&json!(0), Some("integer")));
        assert_eq!(kinds("lost")["type"], json!(["integer", "null"]));
        assert_eq!(kinds("owd_ns")["anyOf"][1], json!({"type": "null"}));
    }

    #[test]
    fn keys_have_the_order_of_the_type() {
        let value = without(&Quality::default(), &["lost"]).unwrap();
        let schema = schema(&mut SchemaGenerator::default(), &["lost"]);
        let written: Vec<_> = value.as_object().unwrap().keys().collect();
        let described: Vec<_> =
            schema.get("properties").unwrap().as_object().unwrap().keys().collect();
        assert_eq!(written[..2], ["sent", "received"]);
        // Further keys are absent without packets.
        assert_eq!(written, described[..written.len()]);
    }
}
