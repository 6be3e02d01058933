//! Parties of a call: the values of From and To (RFC 3261 sections 8.1.1.2, 8.1.1.3 and 20.10).

use super::is_identifier;

/// A party of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Party<'a> {
    /// Address, such as `sip:alice@example.com`.
    pub uri: &'a str,
    /// The tag, its part of the dialog's identifier; none for the callee before its first response.
    pub tag: Option<&'a str>,
}

impl<'a> Party<'a> {
    /// `"Alice" <sip:alice@example.com>;tag=1928`, or `sip:alice@example.com;tag=1928`.
    pub(super) fn parse(value: &'a str) -> Option<Self> {
        let after_name = after_quotes(value)?;
        let (uri, parameters) = match after_name.split_once('<') {
            Some((_, rest)) => rest.split_once('>')?,
            // Without brackets, parameters belong to the header field.
            None => {
                let end = after_name.find(';').unwrap_or(after_name.len());
                after_name.split_at(end)
            }
        };
        let mut parameters = parameters.split(';').map(str::trim_ascii);
        let tag = parameters.find_map(|it| {
            let (name, value) = it.split_once('=')?;
            name.trim_ascii_end().eq_ignore_ascii_case("tag").then_some(value.trim_ascii())
        });
        let uri = uri.trim_ascii();
        (is_identifier(uri) && tag.is_none_or(is_identifier)).then_some(Self { uri, tag })
    }
}

/// The text after a quoted display name, which may have any characters; none if the quotes do not end.
fn after_quotes(value: &str) -> Option<&str> {
    let Some(quoted) = value.strip_prefix('"') else { return Some(value) };
    let mut is_escaped = false;
    let end = quoted.find(|character| {
        let ends = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        ends
    })?;
    quoted.get(end + 1..)
}
