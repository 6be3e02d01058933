//! Ends of active tests.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::Name;

/// A probe that sends or reflects, written `PROBE`, or `PROBE@NAMESPACE` for another network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// Probe.
    pub probe: Name,
    /// Network namespace, as in `ip netns`.
    pub namespace: Option<String>,
}

/// A text that is not an [`End`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not an end of a test: expected PROBE or PROBE@NAMESPACE")]
pub struct NotAnEnd(String);

/// Max length of a file name, and so of a namespace name.
const MAX_NAMESPACE_LENGTH: usize = 255;

impl End {
    /// Regular expression of the text form.
    pub(super) fn pattern() -> String {
        format!("{}(@[!-.0-?A-~]{{1,{MAX_NAMESPACE_LENGTH}}})?", Name::PATTERN)
    }
}

impl FromStr for End {
    type Err = NotAnEnd;

    fn from_str(text: &str) -> Result<Self, NotAnEnd> {
        let wrong = || NotAnEnd(text.to_owned());
        let (probe, namespace) = match text.split_once('@') {
            Some((probe, namespace)) => (probe, Some(namespace)),
            None => (text, None),
        };
        let is_usual = |it: char| it.is_ascii_graphic() && !['/', '@'].contains(&it);
        let can_be = |name: &str| {
            (1..=MAX_NAMESPACE_LENGTH).contains(&name.len()) && name.chars().all(is_usual)
        };
        if !namespace.is_none_or(can_be) {
            return Err(wrong());
        }
        let probe = probe.parse().map_err(|_| wrong())?;
        Ok(Self { probe, namespace: namespace.map(str::to_owned) })
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}@{namespace}", self.probe),
            None => write!(f, "{}", self.probe),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_is_a_probe_with_optional_namespace() {
        for text in ["roof", "roof@wirestamp-source"] {
            assert_eq!(text.parse::<End>().unwrap().to_string(), text);
        }
        for none in ["", "Roof", "roof@", "@ns", "roof@a/b", "roof@a@b", "roof@a b"] {
            assert!(none.parse::<End>().unwrap_err().to_string().contains("expected PROBE"));
        }
    }
}
