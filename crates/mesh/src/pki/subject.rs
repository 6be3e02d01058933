//! Subjects of certificates.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};
use thiserror::Error;
use utoipa::ToSchema;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::Serial;
use crate::{Name, NotAName};

/// Domain of all node names. `.internal` is reserved for private use (ICANN Board resolution 2024.07.29.06), so no
/// public CA issues certificates for it.
const DOMAIN: &str = "wirestamp.internal";

/// Role of a member of the mesh.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    ToSchema,
    Display,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "kebab-case")]
pub enum Role {
    /// Observes packets for tasks.
    Probe,
    /// Receives and correlates observations.
    Collector,
    /// Assigns tasks to probes, and serves the API and the page.
    Controller,
    /// A person or program that reads results and manages tasks.
    Operator,
    /// A person or program that reads results.
    Viewer,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 5] =
        [Self::Probe, Self::Collector, Self::Controller, Self::Operator, Self::Viewer];

    /// Name of the role.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it accepts connections.
    pub(super) fn listens(self) -> bool {
        matches!(self, Self::Collector | Self::Controller)
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is not a role: expected {names}")
        })
    }
}

/// Subject of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// Unique among nodes of this role.
    pub name: Name,
    /// Role.
    pub role: Role,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role, self.name)
    }
}

/// Why a certificate is not of the mesh.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotOfTheMesh {
    /// It cannot be parsed.
    #[error("cannot parse the certificate")]
    Unreadable,
    /// It contains no name of the mesh.
    #[error("the certificate does not contain exactly one name below {DOMAIN}")]
    NoSubject,
    /// Its name is not valid.
    #[error(transparent)]
    Name(#[from] NotAName),
}

impl Subject {
    /// DNS name in the certificate, which callers verify at any address.
    #[must_use]
    pub fn domain(&self) -> String {
        format!("{}.{}.{DOMAIN}", self.name, self.role)
    }

    /// Whether a domain is reserved for the mesh.
    pub(super) fn is_of_the_mesh(domain: &str) -> bool {
        let domain = domain.to_ascii_lowercase();
        domain.strip_suffix(DOMAIN).is_some_and(|it| it.is_empty() || it.ends_with('.'))
    }

    /// Subject and serial number of a certificate. The signature is not verified.
    ///
    /// # Errors
    /// When it is not a certificate of the mesh.
    pub fn of(certificate: &[u8]) -> Result<(Self, Serial), NotOfTheMesh> {
        let (_, certificate) =
            X509Certificate::from_der(certificate).map_err(|_| NotOfTheMesh::Unreadable)?;
        let names = certificate.subject_alternative_name().map_err(|_| NotOfTheMesh::Unreadable)?;
        let names = names.iter().flat_map(|it| &it.value.general_names);
        let mut subjects = names.filter_map(|name| match name {
            GeneralName::DNSName(name) => Self::of_domain(name),
            _ => None,
        });
        let (Some(subject), None) = (subjects.next(), subjects.next()) else {
            return Err(NotOfTheMesh::NoSubject);
        };
        let serial = Serial::of(certificate.raw_serial()).ok_or(NotOfTheMesh::NoSubject)?;
        Ok((subject?, serial))
    }

    /// Subject of a DNS name; none if it is not of the mesh.
    fn of_domain(domain: &str) -> Option<Result<Self, NotOfTheMesh>> {
        let (name, role) = domain.strip_suffix(DOMAIN)?.strip_suffix('.')?.split_once('.')?;
        let role = role.parse().ok()?;
        Some(name.parse().map(|name| Self { name, role }).map_err(NotOfTheMesh::Name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn role_names_round_trip() {
        for role in Role::ALL {
            assert_eq!(role.name().parse(), Ok(role));
            assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
        }
        assert!("Probe".parse::<Role>().unwrap_err().contains("expected probe, collector"));
    }

    #[test]
    fn subject_is_parsed_from_its_domain_only() {
        let subject = Subject { name: "roof-7".parse().unwrap(), role: Role::Probe };
        assert_eq!(Subject::of_domain(&subject.domain()), Some(Ok(subject)));
        let others =
            ["localhost", "a.b.example", "wirestamp.internal", "a.guest.wirestamp.internal"];
        for other in others {
            assert_eq!(Subject::of_domain(other), None, "{other}");
        }
        assert_eq!(others.map(Subject::is_of_the_mesh), [false, false, true, true]);
        assert!(Subject::is_of_the_mesh("*.Wirestamp.internal"));
        assert!(matches!(Subject::of_domain("A.probe.wirestamp.internal"), Some(Err(_))));
        assert_eq!(Subject::of(b"no certificate"), Err(NotOfTheMesh::Unreadable));
    }
}
