//! Observation points of the mesh, and ends of its active tests.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Name;

/// An interface of a probe, written `PROBE/INTERFACE`, or `PROBE/INTERFACE@NAMESPACE` in a network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Point {
    /// Probe.
    pub probe: Name,
    /// Interface, as in `wirestamp capture -i`.
    pub interface: String,
}

/// A text that is not a [`Point`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not an observation point: expected PROBE/INTERFACE, such as roof/eth0")]
pub struct NotAPoint(String);

/// Max length of an interface name (Linux `IFNAMSIZ` less the final zero) and of a namespace name (a file name).
const MAX_INTERFACE_LENGTH: usize = 15;
const MAX_NAMESPACE_LENGTH: usize = 255;

impl Point {
    /// Regular expression of the text form.
    pub(super) fn pattern() -> String {
        let [interface, namespace] = [MAX_INTERFACE_LENGTH, MAX_NAMESPACE_LENGTH]
            .map(|longest| format!("[!-.0-?A-~]{{1,{longest}}}"));
        format!("{}/{interface}(@{namespace})?", Name::PATTERN)
    }
}

impl FromStr for Point {
    type Err = NotAPoint;

    fn from_str(text: &str) -> Result<Self, NotAPoint> {
        let wrong = || NotAPoint(text.to_owned());
        let (probe, interface) = text.split_once('/').ok_or_else(wrong)?;
        let is_usual = |it: char| it.is_ascii_graphic() && !['/', '@'].contains(&it);
        let can_be = |name: &str, longest: usize| {
            (1..=longest).contains(&name.len()) && name.chars().all(is_usual)
        };
        let can_be = match interface.split_once('@') {
            Some((interface, namespace)) => {
                can_be(interface, MAX_INTERFACE_LENGTH) && can_be(namespace, MAX_NAMESPACE_LENGTH)
            }
            None => can_be(interface, MAX_INTERFACE_LENGTH),
        };
        if !can_be {
            return Err(wrong());
        }
        Ok(Self { probe: probe.parse().map_err(|_| wrong())?, interface: interface.to_owned() })
    }
}

impl TryFrom<String> for Point {
    type Error = NotAPoint;

    fn try_from(text: String) -> Result<Self, NotAPoint> {
        text.parse()
    }
}

impl From<Point> for String {
    fn from(point: Point) -> Self {
        point.to_string()
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.probe, self.interface)
    }
}

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
    fn point_is_an_interface_of_a_probe() {
        let point: Point = "roof/tap-a@wirestamp-router".parse().unwrap();
        assert_eq!((point.probe.as_ref(), &*point.interface), ("roof", "tap-a@wirestamp-router"));
        assert_eq!(point.to_string().parse(), Ok(point));
        for none in
            ["roof", "roof/", "/eth0", "Roof/eth0", "roof/a/b", "roof/a b", "roof/a@", "roof/a@b@c"]
        {
            assert!(none.parse::<Point>().unwrap_err().to_string().contains("such as roof/eth0"));
        }
    }

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
