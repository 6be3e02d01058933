//! Observation points of foreign exporters.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// A point of a foreign exporter that reports packet digests (PSAMP, RFC 5476), written `ipfix:ADDRESS/DOMAIN`, or
/// `ipfix:ADDRESS/DOMAIN/POINT` for one of several points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ForeignPoint {
    /// Source address of its messages.
    pub address: IpAddr,
    /// Observation domain.
    pub domain: u32,
    /// Observation point (`observationPointId`); none for all of the domain.
    pub point: Option<u64>,
}

/// A text that is not a [`ForeignPoint`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{0:?} is not a point of an IPFIX exporter: expected ipfix:ADDRESS/DOMAIN, such as ipfix:192.0.2.7/3"
)]
pub struct NotForeign(String);

const SCHEME: &str = "ipfix:";

/// A group of an IPv6 address, and an octet of an IPv4 address.
const GROUP: &str = "[0-9a-fA-F]{1,4}";
const OCTET: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";

impl ForeignPoint {
    /// Regular expression of the text form. Numbers have one digit less than the largest possible ones.
    pub(super) fn pattern() -> String {
        let several = |groups: usize| format!("({GROUP}(:{GROUP}){{0,{groups}}})?");
        // `::` replaces at least one of eight groups, once.
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

    /// Whether a text is meant as a foreign point.
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
    fn foreign_point_is_a_domain_or_its_point() {
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
            assert!(
                none.parse::<ForeignPoint>().unwrap_err().to_string().contains("such as ipfix:")
            );
        }
    }
}
