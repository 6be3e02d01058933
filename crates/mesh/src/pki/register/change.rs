//! A transaction that changes the certificates and tokens of a CA.

use jiff::Timestamp;
use rusqlite::{Transaction, params};

use super::rows::{self, Entry, Signer};
use crate::Name;
use crate::pki::{Issued, Result, Role, Serial, Subject, Token};

/// A transaction.
pub(in crate::pki) struct Change<'a>(pub(super) Transaction<'a>);

impl Change<'_> {
    pub(in crate::pki) fn commit(self) -> Result<()> {
        Ok(self.0.commit()?)
    }

    /// CA certificates that have not expired, the signing one first.
    pub(in crate::pki) fn signers(&self, now: Timestamp) -> Result<Vec<Signer>> {
        rows::signers(&self.0, now)
    }

    /// Adds a CA certificate.
    pub(in crate::pki) fn add_signer(&self, signer: &Signer) -> Result<()> {
        let Signer { serial, certificate, key, signs_from, expires } = signer;
        self.0.execute(
            "INSERT INTO authority VALUES (?, ?, ?, ?, ?)",
            params![serial.bytes(), certificate, key, signs_from.as_second(), expires.as_second()],
        )?;
        Ok(())
    }

    /// Revokes all certificates and tokens, and deletes the CA certificates.
    pub(in crate::pki) fn distrust_all(&self, now: Timestamp) -> Result<()> {
        let now = now.as_second();
        self.0.execute("DELETE FROM authority", [])?;
        self.0.execute("DELETE FROM token WHERE used IS NULL", [])?;
        self.0.execute("UPDATE token SET key = NULL", [])?;
        let query = "UPDATE certificate SET revoked = ?1 WHERE revoked IS NULL AND expires > ?1";
        self.0.execute(query, [now])?;
        Ok(())
    }

    /// Adds an issued certificate.
    pub(in crate::pki) fn add(
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
    pub(in crate::pki) fn entry(&self, serial: Serial) -> Result<Option<Entry>> {
        rows::one_entry(&self.0, serial)
    }

    /// Revokes the valid certificates of a name, for one role or all. Returns how many.
    pub(in crate::pki) fn revoke(
        &self,
        name: &Name,
        role: Option<Role>,
        now: Timestamp,
    ) -> Result<u64> {
        let query = "UPDATE certificate SET revoked = ?1
                     WHERE name = ?2 AND coalesce(role = ?3, TRUE) AND revoked IS NULL
                         AND expires > ?1";
        self.count(query, name, role, now)
    }

    /// Deletes the unused tokens of a name and returns how many; used ones no longer work for their key.
    pub(in crate::pki) fn take_back(
        &self,
        name: &Name,
        role: Option<Role>,
        now: Timestamp,
    ) -> Result<u64> {
        let query = "UPDATE token SET key = NULL WHERE name = ?1 AND coalesce(role = ?2, TRUE)";
        self.0.execute(query, params![name.as_ref(), role.map(Role::name)])?;
        let query = "DELETE FROM token WHERE name = ?2 AND coalesce(role = ?3, TRUE)
                         AND used IS NULL AND expires > ?1";
        self.count(query, name, role, now)
    }

    /// Revokes the valid certificates of a name whose serial begins with these hexadecimal digits, and deletes its unused
    /// tokens whose identifier does. Returns how many.
    pub(in crate::pki) fn revoke_by_id(
        &self,
        name: &Name,
        id: &str,
        now: Timestamp,
    ) -> Result<u64> {
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

    pub(in crate::pki) fn add_token(
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
    pub(in crate::pki) fn use_token(
        &self,
        token: &Token,
        key: &[u8],
        now: Timestamp,
    ) -> Result<Subject> {
        let stored = rows::stored_token(&self.0, token)?;
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
