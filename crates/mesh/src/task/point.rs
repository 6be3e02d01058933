//! Observation points of a mesh.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Name;

/// An interface of a probe, written `PROBE/INTERFACE`, or `PROBE/INTERFACE@NAMESPACE` where the interface is
/// in a network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Point {
    /// The probe.
    pub probe: Name,
    /// Its interface, as `wirestamp capture -i` has it.
    pub interface: String,
}

/// What is no [`Point`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no observation point: expected PROBE/INTERFACE, as roof/eth0")]
pub struct NotAPoint(String);

/// The longest name of an interface (`IFNAMSIZ` of Linux, less the zero behind it), a separator, and the
/// longest name of a file, which is what a namespace's is.
const LONGEST: usize = 15 + 1 + 255;

impl FromStr for Point {
    type Err = NotAPoint;

    fn from_str(text: &str) -> Result<Self, NotAPoint> {
        let wrong = || NotAPoint(text.to_owned());
        let (probe, interface) = text.split_once('/').ok_or_else(wrong)?;
        let is_usual = |it: char| it.is_ascii_graphic() && it != '/';
        let is_whole = interface.split('@').all(|part| !part.is_empty())
            && interface.matches('@').count() <= 1;
        if !is_whole || interface.len() > LONGEST || !interface.chars().all(is_usual) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_an_interface_of_a_probe() {
        let point: Point = "roof/tap-a@wirestamp-router".parse().unwrap();
        assert_eq!((point.probe.as_ref(), &*point.interface), ("roof", "tap-a@wirestamp-router"));
        assert_eq!(point.to_string().parse(), Ok(point));
        for none in
            ["roof", "roof/", "/eth0", "Roof/eth0", "roof/a/b", "roof/a b", "roof/a@", "roof/a@b@c"]
        {
            assert!(none.parse::<Point>().unwrap_err().to_string().contains("as roof/eth0"));
        }
    }
}
