//! Errors of the CA.

use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use thiserror::Error;

use super::Subject;
use crate::Name;

/// Result of a CA operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a CA operation failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The CA does not exist.
    #[error("cannot open the CA at {}: no such file; create one with `wirestamp pki create`", .0.display())]
    Missing(PathBuf),
    /// The CA exists already.
    #[error("cannot create a CA at {}: it exists; certificates that it issued need it", .0.display())]
    Exists(PathBuf),
    /// The file cannot be created or read.
    #[error("cannot use the CA at {}: {cause}", path.display())]
    File {
        /// Path.
        path: PathBuf,
        /// Cause.
        cause: io::Error,
    },
    /// The file was written by an unknown version.
    #[error("the CA at {} was written by another version of wirestamp (its schema is {schema})", path.display())]
    Version {
        /// Path.
        path: PathBuf,
        /// Version of the tables.
        schema: i64,
    },
    /// The database cannot be read or written.
    #[error("cannot use the database of the CA: {0}")]
    Database(rusqlite::Error),
    /// A request or certificate cannot be parsed or created.
    #[error("cannot issue a certificate: {0}")]
    Certificate(rcgen::Error),
    /// A name is reserved for the mesh.
    #[error("cannot use the name {0}: only the CA assigns names of the mesh")]
    OwnName(String),
    /// The controller's own collector has this name.
    #[error(
        "cannot create a token for a collector {0}: the controller's own collector has this name; choose another one, \
         such as \"store\""
    )]
    OwnCollector(Name),
    /// All CA certificates have expired.
    #[error("all CA certificates have expired; create a new CA and enrol every node again")]
    CaExpired,
    /// Random numbers are not available.
    #[error("cannot read random numbers: {0}")]
    Random(getrandom::Error),
    /// The text is not a token.
    #[error(transparent)]
    NotAToken(#[from] super::NotAToken),
    /// The token is unknown, or was revoked.
    #[error("the token is unknown to this CA")]
    UnknownToken,
    /// The token was used.
    #[error("the token for {subject} was used at {when}")]
    UsedToken {
        /// Subject.
        subject: Subject,
        /// Time of use.
        when: Timestamp,
    },
    /// The token has expired.
    #[error("the token for {subject} expired at {when}")]
    ExpiredToken {
        /// Subject.
        subject: Subject,
        /// Expiry.
        when: Timestamp,
    },
    /// The certificate to renew is revoked, or was not issued by this CA.
    #[error("the certificate of {0} is not valid any more")]
    InvalidCertificate(Subject),
    /// There is nothing to revoke.
    #[error("cannot revoke {0}: it has no valid certificate or token; see `wirestamp pki list`")]
    NothingToRevoke(Name),
    /// Several certificates or tokens begin with the digits.
    #[error("cannot revoke {id} of {name}: more than one serial begins with it; give more digits")]
    AmbiguousId {
        /// Their name.
        name: Name,
        /// The digits.
        id: String,
    },
}

// Without `#[from]`, because the message already contains the cause.
impl From<rusqlite::Error> for Error {
    fn from(cause: rusqlite::Error) -> Self {
        Self::Database(cause)
    }
}

impl From<rcgen::Error> for Error {
    fn from(cause: rcgen::Error) -> Self {
        Self::Certificate(cause)
    }
}
