//! The documents that `wirestamp pki` prints.

use std::path::Path;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_mesh::Name;
use wirestamp_mesh::pki::{Entry, Role, Subject, UnusedToken};

use crate::table::table;

/// The document of `pki create`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Created<'a> {
    /// File of the certificate authority.
    pub(super) authority: &'a Path,
}

/// Name and role of a node, user or program.
#[derive(Serialize, JsonSchema)]
pub(super) struct Holder {
    /// Name, unique among those of this role.
    #[schemars(with = "String")]
    pub(super) name: Name,
    /// Role: probe, collector, controller, operator or viewer.
    #[schemars(with = "String")]
    pub(super) role: Role,
}

impl From<Subject> for Holder {
    fn from(Subject { name, role }: Subject) -> Self {
        Self { name, role }
    }
}

/// The document of `pki token`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NewToken {
    /// The token, which is used once.
    pub(super) token: String,
    #[serde(flatten)]
    pub(super) holder: Holder,
    /// End of its validity (UTC, RFC 3339).
    #[schemars(with = "String")]
    pub(super) expires: Timestamp,
}

/// The document of `pki issue`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct IssuedFile<'a> {
    #[serde(flatten)]
    pub(super) holder: Holder,
    /// File with key and certificates.
    pub(super) file: &'a Path,
    /// Serial number of the certificate, in hexadecimal digits.
    pub(super) serial: String,
    /// End of its validity (UTC, RFC 3339).
    #[schemars(with = "String")]
    pub(super) expires: Timestamp,
}

/// The document of `pki revoke`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Revoked<'a> {
    /// Name of the holder.
    #[schemars(with = "String")]
    pub(super) name: &'a Name,
    /// Number of certificates and tokens that were revoked.
    pub(super) revoked: u64,
}

/// The document of `pki rotate`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rotated {
    /// Time from which the new key signs (UTC, RFC 3339).
    #[schemars(with = "String")]
    pub(super) signs_from: Timestamp,
}

/// The document of `pki list`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct List {
    /// Certificates, also revoked and expired ones.
    pub(super) certificates: Vec<ListedCertificate>,
    /// Tokens that were not used yet.
    pub(super) tokens: Vec<ListedToken>,
}

/// A token that was not used yet.
#[derive(Serialize, JsonSchema)]
pub(super) struct ListedToken {
    #[serde(flatten)]
    holder: Holder,
    /// Serial number, in hexadecimal digits.
    serial: String,
    /// End of its validity (UTC, RFC 3339).
    #[schemars(with = "String")]
    expires: Timestamp,
}

impl From<UnusedToken> for ListedToken {
    fn from(UnusedToken { id, subject, expires }: UnusedToken) -> Self {
        Self { holder: subject.into(), serial: id, expires }
    }
}

/// A certificate.
#[derive(Serialize, JsonSchema)]
pub(super) struct ListedCertificate {
    #[serde(flatten)]
    holder: Holder,
    /// Serial number, in hexadecimal digits.
    serial: String,
    /// Domains and addresses that browsers use for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also_known_as: Vec<String>,
    /// Begin of its validity (UTC, RFC 3339).
    #[schemars(with = "String")]
    issued: Timestamp,
    /// End of its validity (UTC, RFC 3339).
    #[schemars(with = "String")]
    expires: Timestamp,
    /// When it was revoked (UTC, RFC 3339); null if it was not.
    #[schemars(with = "Option<String>")]
    revoked: Option<Timestamp>,
    /// Whether it is valid now.
    good: bool,
}

impl ListedCertificate {
    pub(super) fn new(entry: &Entry, now: Timestamp) -> Self {
        let Entry { serial, subject, also_known_as, issued, expires, revoked } = entry.clone();
        let (serial, good) = (serial.to_string(), entry.is_good(now));
        Self { holder: subject.into(), serial, also_known_as, issued, expires, revoked, good }
    }

    fn state(&self) -> String {
        match self.revoked {
            Some(when) => format!("revoked {when}"),
            None if self.good => "valid".to_owned(),
            None => "expired".to_owned(),
        }
    }
}

/// Digits of a serial in the table; all are in JSON.
const SERIAL_DIGITS: usize = 12;

/// The text of `pki list`.
pub(super) fn list(list: &List) -> String {
    let row = |holder: &Holder, serial: &str, signed: String, ends: Timestamp, state: String| {
        let Holder { name, role } = holder;
        let serial = serial.chars().take(SERIAL_DIGITS).collect();
        vec![name.to_string(), role.to_string(), serial, signed, ends.to_string(), state]
    };
    let certificates = list.certificates.iter();
    let certificates = certificates
        .map(|it| row(&it.holder, &it.serial, it.issued.to_string(), it.expires, it.state()));
    let tokens = list.tokens.iter();
    let tokens = tokens
        .map(|it| row(&it.holder, &it.serial, "-".to_owned(), it.expires, "token".to_owned()));
    let rows: Vec<_> = certificates.chain(tokens).collect();
    if rows.is_empty() {
        return "no certificates and no tokens\n".to_owned();
    }
    table(&["name", "role", "serial", "issued", "expires", "state"], &rows)
}
