//! Database of the CA: issued certificates and tokens.

mod change;
mod rows;

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, TransactionBehavior};

use super::{Error, Result, Serial, Token};
use crate::atomic_file::folder_of;
pub(super) use change::Change;
use rows::ENTRY;
pub(super) use rows::Signer;
pub use rows::{Entry, UnusedToken};

/// `application_id` of the database: "WSPA".
const APPLICATION: i64 = 0x5753_5041;

/// The version of the tables, in the database's `user_version`.
const SCHEMA: i64 = 1;

const TABLES: &str = "
    BEGIN;
    CREATE TABLE authority (
        serial BLOB PRIMARY KEY, certificate BLOB NOT NULL, key BLOB NOT NULL,
        signs_from INTEGER NOT NULL, expires INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE certificate (
        serial BLOB PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, also TEXT NOT NULL,
        issued INTEGER NOT NULL, expires INTEGER NOT NULL, revoked INTEGER
    ) STRICT;
    CREATE TABLE token (
        digest BLOB PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL,
        expires INTEGER NOT NULL, used INTEGER, key BLOB
    ) STRICT;
    PRAGMA application_id = 0x57535041;
    PRAGMA user_version = 1;
    COMMIT;";

/// Max time to wait for a lock of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The database. It has no write-ahead log, so that a copy of the file is complete.
pub(super) struct Register(Connection);

impl Register {
    /// Creates a database, readable by its owner only, with the first CA certificate.
    pub(super) fn create(path: &Path, signer: &Signer) -> Result<()> {
        let about = |cause: io::Error| match cause.kind() {
            io::ErrorKind::AlreadyExists => Error::Exists(path.to_owned()),
            _ => Error::File { path: path.to_owned(), cause },
        };
        // The file appears under its name only when it is complete.
        let folder = folder_of(path);
        let file = tempfile::NamedTempFile::new_in(folder).map_err(about)?;
        let mut register = Self(connect(file.path())?);
        register.0.execute_batch(TABLES)?;
        let change = register.change()?;
        change.add_signer(signer)?;
        change.commit()?;
        drop(register);
        file.persist_noclobber(path).map_err(|error| about(error.error))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(about)
    }

    /// Opens a database.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let about = |cause: io::Error| match cause.kind() {
            io::ErrorKind::NotFound => Error::Missing(path.to_owned()),
            _ => Error::File { path: path.to_owned(), cause },
        };
        fs::metadata(path).map_err(about)?;
        let unreadable = |cause| about(io::Error::other(cause));
        let register = Self(connect(path).map_err(unreadable)?);
        let number = |pragma| register.0.query_row(pragma, [], |row| row.get(0));
        let application: i64 = number("PRAGMA application_id").map_err(unreadable)?;
        if application != APPLICATION {
            return Err(about(io::Error::other("it is the database of something else")));
        }
        match number("PRAGMA user_version").map_err(unreadable)? {
            SCHEMA => Ok(register),
            schema => Err(Error::Version { path: path.to_owned(), schema }),
        }
    }

    /// Begins an exclusive transaction.
    pub(super) fn change(&mut self) -> Result<Change<'_>> {
        Ok(Change(self.0.transaction_with_behavior(TransactionBehavior::Immediate)?))
    }

    /// See [`Change::signers`].
    pub(super) fn signers(&self, now: Timestamp) -> Result<Vec<Signer>> {
        rows::signers(&self.0, now)
    }

    /// An issued certificate.
    pub(super) fn entry(&self, serial: Serial) -> Result<Option<Entry>> {
        rows::one_entry(&self.0, serial)
    }

    /// All issued certificates, in order of issue.
    pub(super) fn entries(&self) -> Result<Vec<Entry>> {
        let query = format!("SELECT {ENTRY} FROM certificate ORDER BY issued, rowid");
        let mut statement = self.0.prepare(&query)?;
        let entries = statement.query_map([], rows::entry)?;
        Ok(entries.collect::<rusqlite::Result<_>>()?)
    }

    /// Unused tokens.
    pub(super) fn unused_tokens(&self, now: Timestamp) -> Result<Vec<UnusedToken>> {
        let query = "SELECT name, role, expires, lower(hex(substr(digest, 1, 8))) FROM token
                     WHERE used IS NULL AND expires > ? ORDER BY expires, rowid";
        let mut statement = self.0.prepare(query)?;
        let unused = statement.query_map([now.as_second()], |row| {
            let (subject, expires) = (rows::subject(row, 0)?, rows::time(row, 2)?);
            Ok(UnusedToken { id: row.get(3)?, subject, expires })
        })?;
        Ok(unused.collect::<rusqlite::Result<_>>()?)
    }

    /// Checks a token without its key, and without a transaction: whether it exists, has not expired, and was not used
    /// by a node that cannot enrol again.
    pub(super) fn check_token(&self, token: &Token, now: Timestamp) -> Result<()> {
        let stored = rows::stored_token(&self.0, token)?;
        if stored.key.is_some() { stored.check_expiry(now) } else { stored.check(None, now) }
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // A used token must stay used, even after a power failure.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}
