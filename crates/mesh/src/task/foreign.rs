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

/// One to four hexadecimal digits, and a number up to 255.
const GROUP: &str = "[0-9a-fA-F]{1,4}";
const OCTET: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";

impl ForeignPoint {
    /// What it looks like, as a regular expression: with a digit less than the greatest numbers have.
    pub(super) fn form() -> String {
        let several = |groups: usize| format!("({GROUP}(:{GROUP}){{0,{groups}}})?");
        // Of eight groups those left out are at one place, and at least one.
        let shortened = (0..7).map(|before| match before {
            0 => format!("::{}", several(6)),
            _ => format!("{GROUP}(:{GROUP}){{{}}}::{}", before - 1, several(6 - before)),
        });
        let whole = format!("{GROUP}(:{GROUP}){{7}}");
        let v4 = format!("{OCTET}(\\.{OCTET}){{3}}");
        let last = format!("{GROUP}(:{GROUP}){{6}}::");
        let addresses: Vec<_> = [v4, whole, last].into_iter().chain(shortened).collect();
        format!("{SCHEME}({})/[0-9]{{1,9}}(/[0-9]{{1,18}})?", addresses.join("|"))
    }

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
