//! Schemas without what is only for readers of the source.

use schemars::Schema;
use schemars::transform::transform_subschemas;
use serde_json::Value;

/// Formats of JSON Schema that the types have. Others, such as `uint64`, are rejected by strict validators.
const FORMATS: [&str; 2] = ["ipv4", "ipv6"];

/// Removes defaults and formats that JSON Schema does not define, and converts descriptions to plain text; also in all
/// subschemas.
pub(super) fn plain(schema: &mut Schema) {
    if let Some(members) = schema.as_object_mut() {
        // Defaults are for readers of a document; here all keys are written.
        members.shift_remove("default");
        let format = members.get("format").and_then(Value::as_str);
        if format.is_some_and(|it| !FORMATS.contains(&it)) {
            members.shift_remove("format");
        }
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = plain_text(description);
    }
    transform_subschemas(&mut plain, schema);
}

/// Text of a documentation comment: a line for each paragraph, without links.
fn plain_text(text: &str) -> String {
    let paragraphs =
        text.split("\n\n").map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    let text = paragraphs.collect::<Vec<_>>().join("\n\n").replace("`None`", "null");
    let mut parts = text.split("[`");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((path, rest)) = part.split_once("`]") else {
            plain += "[`";
            plain += part;
            continue;
        };
        let name = path.rsplit("::").next().unwrap_or(path);
        // The target of a link in parentheses.
        let target = rest.strip_prefix('(').and_then(|it| it.split_once(')'));
        plain += &format!("`{name}`{}", target.map_or(rest, |(_, rest)| rest));
    }
    plain
}

#[cfg(test)]
mod tests {
    use schemars::json_schema;

    use super::*;

    #[test]
    fn text_has_no_links() {
        for (text, expected) in [
            ("A name,\nof two lines.\n\nMore.", "A name, of two lines.\n\nMore."),
            ("as [`Self::lost`]; see [`Clock`](a::Clock).", "as `lost`; see `Clock`."),
            ("`None` without [`a`] (b) [`", "null without `a` (b) [`"),
            ("", ""),
        ] {
            assert_eq!(plain_text(text), expected);
        }
    }

    #[test]
    fn subschemas_are_plain() {
        let mut schema = json_schema!({
            "properties": {"a": {"type": "integer", "format": "uint64", "default": 1}},
            "items": {"format": "ipv4", "description": "a\nb"},
        });
        plain(&mut schema);
        let expected = json_schema!({
            "properties": {"a": {"type": "integer"}},
            "items": {"format": "ipv4", "description": "a b"},
        });
        assert_eq!(schema, expected);
    }
}
