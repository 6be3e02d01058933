//! Who a certificate is for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use super::Serial;
use crate::{Name, NotAName};

/// The domain below which every node has a name. `.internal` is reserved for private use (ICANN, Board
/// resolution 2024.07.29.06), so that no public authority signs for it.
const DOMAIN: &str = "wirestamp.internal";

/// What somebody may do in the mesh.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Measures: takes tasks and sends observations.
    Probe,
    /// Takes observations and correlates them.
    Collector,
    /// Gives tasks to probes, and answers people and programs.
    Controller,
    /// A person or program that reads results, and starts and ends tasks.
    Operator,
    /// A person or program that reads results.
    Viewer,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Probe, Self::Collector, Self::Controller, Self::Operator, Self::Viewer];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Collector => "collector",
            Self::Controller => "controller",
            Self::Operator => "operator",
            Self::Viewer => "viewer",
        }
    }

    /// Whether others call it.
    pub(super) fn listens(self) -> bool {
        matches!(self, Self::Collector | Self::Controller)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is no role: there are {names}")
        })
    }
}

/// Who a certificate is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Subject {
    /// Its name, which no other node of this role has.
    pub name: Name,
    /// What it may do.
    pub role: Role,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role, self.name)
    }
}

/// Why a certificate is none of the mesh's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NotOfTheMesh {
    /// It cannot be read.
    #[error("the certificate cannot be read")]
    Unreadable,
    /// It names nobody of the mesh.
    #[error("the certificate names no one node below {DOMAIN}")]
    Nobody,
    /// What it names is no name.
    #[error(transparent)]
    Name(#[from] NotAName),
}

impl Subject {
    /// Its name in the domain name system, which its certificate has and those who call it ask for,
    /// whatever address they call.
    #[must_use]
    pub fn domain(&self) -> String {
        format!("{}.{}.{DOMAIN}", self.name, self.role)
    }

    /// Whether a domain is the mesh's, where names say who is who.
    pub(super) fn is_of_the_mesh(domain: &str) -> bool {
        let domain = domain.to_ascii_lowercase();
        domain.strip_suffix(DOMAIN).is_some_and(|it| it.is_empty() || it.ends_with('.'))
    }

    /// Who a certificate is for, and its number. Whether the authority signed it is not looked at.
    ///
    /// # Errors
    /// When it is no certificate of the mesh.
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
            return Err(NotOfTheMesh::Nobody);
        };
        let serial = Serial::of(certificate.raw_serial()).ok_or(NotOfTheMesh::Nobody)?;
        Ok((subject?, serial))
    }

    /// Who has a name below the mesh's domain; none if the name is of another.
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
    fn a_role_has_one_name_everywhere() {
        for role in Role::ALL {
            assert_eq!(role.name().parse(), Ok(role));
            assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
        }
        assert!("Probe".parse::<Role>().unwrap_err().contains("there are probe, collector"));
    }

    #[test]
    fn a_subject_is_found_by_its_domain_and_nobody_by_another() {
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
