//! Observation points that are not of the mesh.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// A point of another program, which reports digests of packets (PSAMP, RFC 5476), written `ipfix:ADDRESS/DOMAIN`,
/// or `ipfix:ADDRESS/DOMAIN/POINT` where its domain has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ForeignPoint {
    /// Where its messages come from.
    pub address: IpAddr,
    /// The observation domain that they are of.
    pub domain: u32,
    /// The observation point in it (`observationPointId`); all, if there is none.
    pub point: Option<u64>,
}

/// What is no [`ForeignPoint`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} is no point of an exporter of IPFIX: expected ipfix:ADDRESS/DOMAIN, as ipfix:192.0.2.7/3"
)]
pub struct NotForeign(String);

const SCHEME: &str = "ipfix:";

impl ForeignPoint {
    /// Whether a text is meant to be one.
    pub(super) fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }
}

impl FromStr for ForeignPoint {
    type Err = NotForeign;

    fn from_str(text: &str) -> Result<Self, NotForeign> {
        let read = || {
            let mut parts = text.strip_prefix(SCHEME)?.split('/');
            let address: IpAddr = parts.next()?.parse().ok()?;
            let domain = parts.next()?.parse().ok()?;
            let point = parts.next().map(str::parse).transpose().ok()?;
            let address = address.to_canonical();
            parts.next().is_none().then_some(Self { address, domain, point })
        };
        read().ok_or_else(|| NotForeign(text.to_owned()))
    }
}

impl fmt::Display for ForeignPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, domain, point } = self;
        write!(f, "{SCHEME}{address}/{domain}")?;
        point.map_or(Ok(()), |point| write!(f, "/{point}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_point_is_a_domain_of_an_exporter_or_a_point_of_it() {
        for text in ["ipfix:192.0.2.7/3", "ipfix:2001:db8::7/0/18446744073709551615"] {
            let point: ForeignPoint = text.parse().unwrap();
            assert_eq!(point.to_string(), text);
        }
        let mapped: ForeignPoint = "ipfix:::ffff:192.0.2.7/3".parse().unwrap();
        assert_eq!(mapped.to_string(), "ipfix:192.0.2.7/3");
        for none in [
            "ipfix:192.0.2.7",
            "192.0.2.7/3",
            "ipfix:host/3",
            "ipfix:192.0.2.7/-1",
            "ipfix:192.0.2.7/",
            "ipfix:192.0.2.7/3/",
            "ipfix:192.0.2.7/3/4/5",
            "ipfix:192.0.2.7/4294967296",
        ] {
            assert!(none.parse::<ForeignPoint>().unwrap_err().to_string().contains("as ipfix:"));
        }
    }
}
