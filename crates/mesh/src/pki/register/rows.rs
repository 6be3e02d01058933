//! Rows of the tables of a CA: its certificates, those that it has issued, and tokens.

use jiff::Timestamp;
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::pki::{Error, Result, Serial, Subject, Token};

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
pub(in crate::pki) struct Signer {
    pub(in crate::pki) serial: Serial,
    pub(in crate::pki) certificate: Vec<u8>,
    /// PKCS #8, in DER.
    pub(in crate::pki) key: Vec<u8>,
    /// Announced until then, used afterwards.
    pub(in crate::pki) signs_from: Timestamp,
    pub(in crate::pki) expires: Timestamp,
}

/// A row of the table of tokens.
pub(super) struct StoredToken {
    pub(super) subject: Subject,
    expires: Timestamp,
    used: Option<Timestamp>,
    /// Digest of the key that has used it and may use it again.
    pub(super) key: Option<Vec<u8>>,
}

impl StoredToken {
    /// Fails if it has expired, or was used with another key than the one with this digest.
    pub(super) fn check(&self, key: Option<&[u8]>, now: Timestamp) -> Result<()> {
        let is_other = key.is_none() || self.key.as_deref() != key;
        if let Some(when) = self.used.filter(|_| is_other) {
            return Err(Error::UsedToken { subject: self.subject.clone(), when });
        }
        self.check_expiry(now)
    }

    pub(super) fn check_expiry(&self, now: Timestamp) -> Result<()> {
        if self.expires <= now {
            return Err(Error::ExpiredToken { subject: self.subject.clone(), when: self.expires });
        }
        Ok(())
    }
}

pub(super) fn stored_token(database: &Connection, token: &Token) -> Result<StoredToken> {
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

pub(super) fn signers(database: &Connection, now: Timestamp) -> Result<Vec<Signer>> {
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
pub(super) const ENTRY: &str = "serial, name, role, also, issued, expires, revoked";

pub(super) fn one_entry(database: &Connection, serial: Serial) -> Result<Option<Entry>> {
    let query = format!("SELECT {ENTRY} FROM certificate WHERE serial = ?");
    Ok(database.prepare_cached(&query)?.query_row([serial.bytes()], entry).optional()?)
}

pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
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
pub(super) fn subject(row: &Row<'_>, column: usize) -> rusqlite::Result<Subject> {
    let (name, role): (String, String) = (row.get(column)?, row.get(column + 1)?);
    Ok(Subject {
        name: name.parse().map_err(|error| damaged(column, Type::Text, error))?,
        role: role.parse().map_err(|error: String| damaged(column + 1, Type::Text, error))?,
    })
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
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
