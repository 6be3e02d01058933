//! Methods, timestamp sources and pairs by their names, and the default source of a method.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use wirestamp_clock::Domain;

use super::{PAIRS, Pair};
use crate::Error;
use crate::method::{Method, StampSource};

impl Method {
    /// The source used by default.
    #[must_use]
    pub fn default_stamp(self) -> StampSource {
        let mut pairs = PAIRS.iter();
        pairs.find(|pair| pair.method == self).expect("PAIRS has every method").stamp
    }
}

impl StampSource {
    /// Clock domain of the stamps.
    #[must_use]
    pub fn domain(self) -> Domain {
        let mut pairs = PAIRS.iter();
        pairs.find(|pair| pair.stamp == self).expect("PAIRS has every source").domain
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        named("method", name, |pair| pair.method)
    }
}

impl FromStr for StampSource {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        named("timestamp source", name, |pair| pair.stamp)
    }
}

/// Parses `name` as one of the members that `member` takes from each pair.
fn named<T: fmt::Display>(
    what: &'static str,
    name: &str,
    member: fn(&Pair) -> T,
) -> Result<T, Error> {
    PAIRS.iter().map(member).find(|found| found.to_string() == name).ok_or_else(|| {
        let names: BTreeSet<_> = PAIRS.iter().map(|pair| member(pair).to_string()).collect();
        let known = Vec::from_iter(names).join(", ");
        Error::NoSuchName { what, name: name.to_owned(), known }
    })
}

/// The pair of `method` and `stamp`.
///
/// # Errors
/// The method does not support this source; the error lists those that it supports.
pub fn pair(method: Method, stamp: StampSource) -> Result<&'static Pair, Error> {
    PAIRS.iter().find(|pair| pair.method == method && pair.stamp == stamp).ok_or_else(|| {
        let of_method: Vec<_> =
            PAIRS.iter().filter(|p| p.method == method).map(|p| p.stamp.name()).collect();
        Error::NoSuchPair {
            method: method.to_string(),
            stamp: stamp.to_string(),
            alternatives: of_method.join(", "),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_source_is_first_of_method() {
        assert_eq!(Method::Ring.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::Recvmsg.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::Recvmmsg.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::LibPcap.default_stamp(), StampSource::Kernel);
        assert_eq!(Method::Xdp.default_stamp(), StampSource::Xdp);
        assert_eq!(Method::XdpPass.default_stamp(), StampSource::Xdp);
        assert_eq!(Method::TcPass.default_stamp(), StampSource::Tc);
        assert_eq!(Method::TracePass.default_stamp(), StampSource::Trace);
    }

    #[test]
    fn source_has_same_clock_in_every_method() {
        for pair in PAIRS {
            assert_eq!(pair.stamp.domain(), pair.domain, "{} {}", pair.method, pair.stamp);
        }
    }

    #[test]
    fn every_name_parses_and_unknown_names_fail() {
        for pair in PAIRS {
            assert_eq!(pair.method.name().parse::<Method>().unwrap(), pair.method);
            assert_eq!(pair.stamp.name().parse::<StampSource>().unwrap(), pair.stamp);
        }
        let error = "rong".parse::<Method>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no method is called rong; choose one of libpcap, recvmmsg, recvmsg, ring, tc-pass, \
             trace-pass, xdp, xdp-pass"
        );
        let error = "Raw".parse::<StampSource>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no timestamp source is called Raw; choose one of hardware, kernel, raw, tc, trace, xdp"
        );
    }

    #[test]
    fn unsupported_pair_lists_supported_sources() {
        let error = pair(Method::Ring, StampSource::Xdp).unwrap_err();
        assert_eq!(
            error.to_string(),
            "method ring has no xdp stamps; it has kernel, raw, hardware"
        );
    }
}
