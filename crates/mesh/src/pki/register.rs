//! Database of the CA: issued certificates and tokens.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::{Error, Issued, Result, Role, Serial, Subject, Token};
use crate::Name;
use crate::atomic_file::folder_of;

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

/// An issued certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Serial number.
    pub serial: Serial,
    /// Subject.
    pub subject: Subject,
    /// Other names: hosts and addresses.
    pub also_known_as: Vec<String>,
    /// Time of issue.
    pub issued: Timestamp,
    /// Expiry.
    pub expires: Timestamp,
    /// Time of revocation, if any.
    pub revoked: Option<Timestamp>,
}

/// A token that was not used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedToken {
    /// Identifier: the begin of the secret's digest, in hexadecimal.
    pub id: String,
    /// Subject.
    pub subject: Subject,
    /// Expiry.
    pub expires: Timestamp,
}

impl Entry {
    /// Whether it is valid at `now`.
    #[must_use]
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && now < self.expires
    }
}

/// A CA certificate and its private key.
pub(super) struct Signer {
    pub(super) serial: Serial,
    pub(super) certificate: Vec<u8>,
    /// PKCS #8, in DER.
    pub(super) key: Vec<u8>,
    /// Announced until then, used afterwards.
    pub(super) signs_from: Timestamp,
    pub(super) expires: Timestamp,
}

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
        signers(&self.0, now)
    }

    /// An issued certificate.
    pub(super) fn entry(&self, serial: Serial) -> Result<Option<Entry>> {
        one_entry(&self.0, serial)
    }

    /// All issued certificates, in order of issue.
    pub(super) fn entries(&self) -> Result<Vec<Entry>> {
        let query = format!("SELECT {ENTRY} FROM certificate ORDER BY issued, rowid");
        let mut statement = self.0.prepare(&query)?;
        let entries = statement.query_map([], entry)?;
        Ok(entries.collect::<rusqlite::Result<_>>()?)
    }

    /// Unused tokens.
    pub(super) fn unused_tokens(&self, now: Timestamp) -> Result<Vec<UnusedToken>> {
        let query = "SELECT name, role, expires, lower(hex(substr(digest, 1, 8))) FROM token
                     WHERE used IS NULL AND expires > ? ORDER BY expires, rowid";
        let mut statement = self.0.prepare(query)?;
        let unused = statement.query_map([now.as_second()], |row| {
            let (subject, expires) = (subject(row, 0)?, time(row, 2)?);
            Ok(UnusedToken { id: row.get(3)?, subject, expires })
        })?;
        Ok(unused.collect::<rusqlite::Result<_>>()?)
    }

    /// Checks a token without its key, and without a transaction: whether it exists, has not expired, and was not used
    /// by a node that cannot enrol again.
    pub(super) fn check_token(&self, token: &Token, now: Timestamp) -> Result<()> {
        let stored = stored_token(&self.0, token)?;
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

/// A transaction.
pub(super) struct Change<'a>(Transaction<'a>);

impl Change<'_> {
    pub(super) fn commit(self) -> Result<()> {
        Ok(self.0.commit()?)
    }

    /// CA certificates that have not expired, the signing one first.
    pub(super) fn signers(&self, now: Timestamp) -> Result<Vec<Signer>> {
        signers(&self.0, now)
    }

    /// Adds a CA certificate.
    pub(super) fn add_signer(&self, signer: &Signer) -> Result<()> {
        let Signer { serial, certificate, key, signs_from, expires } = signer;
        self.0.execute(
            "INSERT INTO authority VALUES (?, ?, ?, ?, ?)",
            params![serial.bytes(), certificate, key, signs_from.as_second(), expires.as_second()],
        )?;
        Ok(())
    }

    /// Revokes all certificates and tokens, and deletes the CA certificates.
    pub(super) fn distrust_all(&self, now: Timestamp) -> Result<()> {
        let now = now.as_second();
        self.0.execute("DELETE FROM authority", [])?;
        self.0.execute("DELETE FROM token WHERE used IS NULL", [])?;
        self.0.execute("UPDATE token SET key = NULL", [])?;
        let query = "UPDATE certificate SET revoked = ?1 WHERE revoked IS NULL AND expires > ?1";
        self.0.execute(query, [now])?;
        Ok(())
    }

    /// Adds an issued certificate.
    pub(super) fn add(
        &self,
        issued: &Issued,
        also_known_as: &[String],
        now: Timestamp,
    ) -> Result<()> {
        let Issued { subject, serial, expires, .. } = issued;
        self.0.execute(
            "INSERT INTO certificate VALUES (?, ?, ?, ?, ?, ?, NULL)",
            params![
                serial.bytes(),
                subject.name.as_ref(),
                subject.role.name(),
                also_known_as.join(" "),
                now.as_second(),
                expires.as_second()
            ],
        )?;
        Ok(())
    }

    /// An issued certificate.
    pub(super) fn entry(&self, serial: Serial) -> Result<Option<Entry>> {
        one_entry(&self.0, serial)
    }

    /// Revokes the valid certificates of a name, for one role or all. Returns how many.
    pub(super) fn revoke(&self, name: &Name, role: Option<Role>, now: Timestamp) -> Result<u64> {
        let query = "UPDATE certificate SET revoked = ?1
                     WHERE name = ?2 AND coalesce(role = ?3, TRUE) AND revoked IS NULL
                         AND expires > ?1";
        self.count(query, name, role, now)
    }

    /// Deletes the unused tokens of a name and returns how many; used ones no longer work for their key.
    pub(super) fn take_back(&self, name: &Name, role: Option<Role>, now: Timestamp) -> Result<u64> {
        let query = "UPDATE token SET key = NULL WHERE name = ?1 AND coalesce(role = ?2, TRUE)";
        self.0.execute(query, params![name.as_ref(), role.map(Role::name)])?;
        let query = "DELETE FROM token WHERE name = ?2 AND coalesce(role = ?3, TRUE)
                         AND used IS NULL AND expires > ?1";
        self.count(query, name, role, now)
    }

    /// Revokes the valid certificates of a name whose serial begins with these hexadecimal digits, and deletes its unused
    /// tokens whose identifier does. Returns how many.
    pub(super) fn revoke_by_id(&self, name: &Name, id: &str, now: Timestamp) -> Result<u64> {
        let of = params![now.as_second(), name.as_ref(), id];
        let query = "UPDATE certificate SET revoked = ?1 WHERE name = ?2 AND revoked IS NULL AND expires > ?1
                         AND substr(lower(hex(serial)), 1, length(?3)) = lower(?3)";
        let certificates = self.0.execute(query, of)?;
        if certificates > 0 {
            // The node cannot enrol again with the token that it has used.
            let query = "UPDATE token SET key = NULL WHERE name = ?1 AND role IN (
                             SELECT role FROM certificate WHERE name = ?1
                                 AND substr(lower(hex(serial)), 1, length(?2)) = lower(?2))";
            self.0.execute(query, params![name.as_ref(), id])?;
        }
        let query = "DELETE FROM token WHERE name = ?2 AND used IS NULL AND expires > ?1
                         AND substr(lower(hex(digest)), 1, length(?3)) = lower(?3)";
        Ok((certificates + self.0.execute(query, of)?) as u64)
    }

    /// Runs a change on the rows of a name. Returns the number of rows.
    fn count(&self, query: &str, name: &Name, role: Option<Role>, now: Timestamp) -> Result<u64> {
        let of = params![now.as_second(), name.as_ref(), role.map(Role::name)];
        Ok(self.0.execute(query, of)? as u64)
    }

    pub(super) fn add_token(
        &self,
        token: &Token,
        subject: &Subject,
        expires: Timestamp,
    ) -> Result<()> {
        let Subject { name, role } = subject;
        self.0.execute(
            "INSERT INTO token VALUES (?, ?, ?, ?, NULL, NULL)",
            params![token.digest(), name.as_ref(), role.name(), expires.as_second()],
        )?;
        Ok(())
    }

    /// Uses a token for a key: once, and again for the same key, in case the response was lost. Returns its subject.
    pub(super) fn use_token(&self, token: &Token, key: &[u8], now: Timestamp) -> Result<Subject> {
        let stored = stored_token(&self.0, token)?;
        stored.check(Some(key), now)?;
        let subject = stored.subject;
        // An earlier node of this name cannot enrol again.
        let query = "UPDATE token SET key = NULL WHERE name = ? AND role = ?";
        self.0.execute(query, params![subject.name.as_ref(), subject.role.name()])?;
        let query = "UPDATE token SET used = coalesce(used, ?1), key = ?2 WHERE digest = ?3";
        self.0.execute(query, params![now.as_second(), key, token.digest()])?;
        Ok(subject)
    }
}

/// A row of the table of tokens.
struct StoredToken {
    subject: Subject,
    expires: Timestamp,
    used: Option<Timestamp>,
    /// Digest of the key that has used it and may use it again.
    key: Option<Vec<u8>>,
}

impl StoredToken {
    /// Fails if it has expired, or was used with another key than the one with this digest.
    fn check(&self, key: Option<&[u8]>, now: Timestamp) -> Result<()> {
        let is_other = key.is_none() || self.key.as_deref() != key;
        if let Some(when) = self.used.filter(|_| is_other) {
            return Err(Error::UsedToken { subject: self.subject.clone(), when });
        }
        self.check_expiry(now)
    }

    fn check_expiry(&self, now: Timestamp) -> Result<()> {
        if self.expires <= now {
            return Err(Error::ExpiredToken { subject: self.subject.clone(), when: self.expires });
        }
        Ok(())
    }
}

fn stored_token(database: &Connection, token: &Token) -> Result<StoredToken> {
    let query = "SELECT name, role, expires, used, key FROM token WHERE digest = ?";
    let mut statement = database.prepare_cached(query)?;
    let found = statement.query_row([token.digest()], |row| {
        Ok(StoredToken {
            subject: subject(row, 0)?,
            expires: time(row, 2)?,
            used: optional_time(row, 3)?,
            key: row.get(4)?,
        })
    });
    found.optional()?.ok_or(Error::UnknownToken)
}

fn signers(database: &Connection, now: Timestamp) -> Result<Vec<Signer>> {
    let query = "SELECT serial, certificate, key, signs_from, expires FROM authority
                 WHERE expires > ?1 ORDER BY signs_from > ?1, signs_from DESC, rowid DESC";
    let mut statement = database.prepare(query)?;
    let signers = statement.query_map([now.as_second()], |row| {
        Ok(Signer {
            serial: serial(row)?,
            certificate: row.get(1)?,
            key: row.get(2)?,
            signs_from: time(row, 3)?,
            expires: time(row, 4)?,
        })
    })?;
    Ok(signers.collect::<rusqlite::Result<_>>()?)
}

/// Columns of an [`Entry`].
const ENTRY: &str = "serial, name, role, also, issued, expires, revoked";

fn one_entry(database: &Connection, serial: Serial) -> Result<Option<Entry>> {
    let query = format!("SELECT {ENTRY} FROM certificate WHERE serial = ?");
    Ok(database.prepare_cached(&query)?.query_row([serial.bytes()], entry).optional()?)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let also: String = row.get(3)?;
    Ok(Entry {
        serial: serial(row)?,
        subject: subject(row, 1)?,
        also_known_as: also.split_whitespace().map(str::to_owned).collect(),
        issued: time(row, 4)?,
        expires: time(row, 5)?,
        revoked: optional_time(row, 6)?,
    })
}

/// Serial number in the first column.
fn serial(row: &Row<'_>) -> rusqlite::Result<Serial> {
    let bytes: Vec<u8> = row.get(0)?;
    let error = FromSqlError::InvalidBlobSize { expected_size: 16, blob_size: bytes.len() };
    Serial::of(&bytes).ok_or_else(|| damaged(0, Type::Blob, error))
}

/// Subject in two columns.
fn subject(row: &Row<'_>, column: usize) -> rusqlite::Result<Subject> {
    let (name, role): (String, String) = (row.get(column)?, row.get(column + 1)?);
    Ok(Subject {
        name: name.parse().map_err(|error| damaged(column, Type::Text, error))?,
        role: role.parse().map_err(|error: String| damaged(column + 1, Type::Text, error))?,
    })
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let seconds = Timestamp::from_second(row.get(column)?);
    seconds.map_err(|error| damaged(column, Type::Integer, error))
}

fn optional_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    let seconds: Option<i64> = row.get(column)?;
    let time = seconds.map(Timestamp::from_second).transpose();
    time.map_err(|error| damaged(column, Type::Integer, error))
}

/// Error for an invalid value in a column.
fn damaged(
    column: usize,
    found: Type,
    why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, found, why.into())
}
