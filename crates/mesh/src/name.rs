//! Names of nodes, tasks and people.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A name: 1 to 63 letters a-z, digits and hyphens, with no hyphen first or last.
///
/// It is a DNS label (RFC 1035 section 2.3.1, RFC 1123 section 2.1), usable without escaping in certificates, URLs and
/// file names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// A text that is not a [`Name`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} is not a name: expected 1 to 63 letters a-z, digits and hyphens, no hyphen first or last"
)]
pub struct NotAName(String);

const MAX_LENGTH: usize = 63;

impl Name {
    /// Regular expression of a name.
    pub(crate) const PATTERN: &str = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";

    /// Name of the controller. A mesh has one.
    pub(crate) fn of_the_controller() -> Self {
        Self("controller".to_owned())
    }

    /// Name of callers on the controller's machine, which need no certificate.
    pub(crate) fn of_local_caller() -> Self {
        Self("local".to_owned())
    }
}

impl TryFrom<String> for Name {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        let usual = |it: u8| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_name = (1..=MAX_LENGTH).contains(&text.len())
            && text.bytes().all(usual)
            && !text.starts_with('-')
            && !text.ends_with('-');
        if is_name { Ok(Self(text)) } else { Err(NotAName(text)) }
    }
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        text.to_owned().try_into()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PartialSchema for Name {
    fn schema() -> RefOr<Schema> {
        let name = ObjectBuilder::new().schema_type(Type::String);
        let name = name.pattern(Some(format!("^{}$", Self::PATTERN))).examples(["backbone"]);
        name.description(Some("A DNS label in lower case.")).build().into()
    }
}

impl ToSchema for Name {}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_a_dns_label_in_lower_case() {
        for name in ["a", "probe-1", "0", &"x".repeat(63)] {
            assert_eq!(name.parse::<Name>().unwrap().to_string(), name);
        }
        for none in ["", "-a", "a-", "A", "a.b", "a/b", "ä", "a b", &"x".repeat(64)] {
            assert!(
                none.parse::<Name>().unwrap_err().to_string().contains("is not a name"),
                "{none}"
            );
        }
        assert!(serde_json::from_str::<Name>("\"../x\"").is_err());
    }
}
