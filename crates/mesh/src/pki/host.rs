//! Host names and addresses in server certificates.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// A host name (RFC 1123 section 2.1), in lower case, or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host(String);

/// A text that is not a [`Host`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is not a host: expected a name such as main.example.org, or an address")]
pub struct NotAHost(String);

/// RFC 1035 section 2.3.4.
const MAX_LENGTH: usize = 253;
const MAX_LABEL_LENGTH: usize = 63;

impl Host {
    /// Names of the local host.
    pub(crate) fn itself() -> [Self; 3] {
        ["localhost", "127.0.0.1", "::1"].map(|it| Self(it.to_owned()))
    }
}

impl FromStr for Host {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<Self, NotAHost> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(address.to_string()));
        }
        let is_label = |label: &str| {
            (1..=MAX_LABEL_LENGTH).contains(&label.len())
                && label.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        // A last label that begins with a digit is a malformed address.
        let is_name = text.len() <= MAX_LENGTH
            && text.split('.').all(is_label)
            && text
                .rsplit('.')
                .next()
                .is_some_and(|it| !it.starts_with(|it: char| it.is_ascii_digit()));
        if is_name { Ok(Self(text.to_ascii_lowercase())) } else { Err(NotAHost(text.to_owned())) }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_a_name_or_an_address() {
        for (text, host) in [
            ("main.example.org", "main.example.org"),
            ("Main", "main"),
            ("3com.com", "3com.com"),
            ("192.0.2.7", "192.0.2.7"),
            ("2001:DB8:0::7", "2001:db8::7"),
        ] {
            assert_eq!(text.parse::<Host>().unwrap().to_string(), host);
        }
        for none in [
            "",
            "a b",
            "a..b",
            "main.",
            "-a",
            "192.0.2.256",
            "192.0.2.7:4747",
            "*.example.org",
            "ä",
        ] {
            let error = none.parse::<Host>().unwrap_err().to_string();
            assert!(error.contains("is not a host"), "{error}");
        }
    }
}
