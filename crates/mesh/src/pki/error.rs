//! What can go wrong with the authority.

use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use thiserror::Error;

use super::Subject;
use crate::Name;

/// The result of what the authority does.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the authority did not do it.
#[derive(Debug, Error)]
pub enum Error {
    /// There is none.
    #[error("there is no authority at {}: `wirestamp pki create` makes one", .0.display())]
    Missing(PathBuf),
    /// There is one.
    #[error("there is an authority at {} already; without it, no certificate that it signed is good", .0.display())]
    Exists(PathBuf),
    /// Its file cannot be made or read.
    #[error("the authority at {}: {cause}", path.display())]
    File {
        /// Its file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The file is of a version that this program does not know.
    #[error("the authority at {} was written by another version of wirestamp (its schema is {schema})", path.display())]
    Version {
        /// Its file.
        path: PathBuf,
        /// The version of the tables.
        schema: i64,
    },
    /// The database cannot be read or written.
    #[error("the database of the authority: {0}")]
    Database(rusqlite::Error),
    /// A request or a certificate cannot be read or made.
    #[error("no certificate can be made: {0}")]
    Certificate(rcgen::Error),
    /// A name is one that only the mesh gives.
    #[error("{0} is a name that tells who is who in the mesh: only the authority gives it")]
    OwnName(String),
    /// The authority's own certificates have ended.
    #[error(
        "all certificates of the authority have ended: a new authority has to be made, and every node let in again"
    )]
    Ended,
    /// There are no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
    /// A token is not one of the authority's, or was taken back.
    #[error("the token is not known to this authority")]
    UnknownToken,
    /// A token was used before.
    #[error("the token for {subject} was used before, at {when}")]
    UsedToken {
        /// Who it was for.
        subject: Subject,
        /// When it was used.
        when: Timestamp,
    },
    /// A token is too old.
    #[error("the token for {subject} ended at {when}")]
    EndedToken {
        /// Who it was for.
        subject: Subject,
        /// When it ended.
        when: Timestamp,
    },
    /// A certificate that shall be renewed is revoked, or not one of the authority's.
    #[error("the certificate of {0} is not good any more")]
    NotGood(Subject),
    /// There is nothing to be taken back.
    #[error(
        "{0} has no certificate that is good, and no token: `wirestamp pki list` shows who has"
    )]
    NothingToRevoke(Name),
}

// By hand, because what they say is in our line already.
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
