//! SQLite databases. Committed data survives a kill or a crash.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, Row, Transaction, TransactionBehavior};
use thiserror::Error;

/// Schema of a database file.
pub(crate) struct DatabaseSchema {
    /// `application_id` of SQLite.
    pub(crate) application: i64,
    /// Version of the tables (`user_version`).
    pub(crate) version: i64,
    /// SQL that creates the tables and sets both numbers.
    pub(crate) tables: &'static str,
    /// SQL that upgrades from each earlier version to the next, and sets the version.
    pub(crate) upgrades: &'static [(i64, &'static str)],
}

/// Why a database cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// It cannot be read or written.
    #[error("{}: {cause}", path.display())]
    Database {
        /// Path.
        path: PathBuf,
        /// Cause.
        cause: rusqlite::Error,
    },
    /// Its contents are damaged, or are no database.
    #[error(
        "cannot use {}: it is damaged ({cause}); move it away, and the next start creates an empty one",
        path.display()
    )]
    Damaged {
        /// Path.
        path: PathBuf,
        /// Cause.
        cause: rusqlite::Error,
    },
    /// Another process has it open.
    #[error("cannot open {}: another wirestamp uses it; give each process its own folder", .0.display())]
    InUse(PathBuf),
    /// It is the database of another program.
    #[error("cannot open {}: it is the database of another program", .0.display())]
    Foreign(PathBuf),
    /// It has an unknown version.
    #[error("cannot open {}: it was written by another version of wirestamp (schema {schema})", path.display())]
    Version {
        /// Path.
        path: PathBuf,
        /// Version of the tables.
        schema: i64,
    },
}

/// An open database, readable by its owner only, and by one process at a time.
pub(crate) struct Database {
    connection: Connection,
    path: PathBuf,
}

impl Database {
    /// Opens or creates a database.
    pub(crate) fn open(path: &Path, schema: &DatabaseSchema) -> Result<Self, Error> {
        let about = |cause| about(path, cause);
        let connection = connect(path).map_err(about)?;
        let is_new = match kind(&connection).map_err(about)? {
            (0, 0, 0) => true,
            (application, _, _) if application != schema.application => {
                return Err(Error::Foreign(path.to_owned()));
            }
            (_, version, _) => {
                upgrade(&connection, path, schema, version)?;
                false
            }
        };
        // A write-ahead log is fast and survives a kill.
        connection.pragma_update(None, "journal_mode", "WAL").map_err(about)?;
        if is_new {
            connection.execute_batch(schema.tables).map_err(about)?;
        }
        Ok(Self { connection, path: path.to_owned() })
    }

    /// A new database in memory.
    pub(crate) fn in_memory(schema: &DatabaseSchema) -> Result<Self, Error> {
        let path = PathBuf::from("memory");
        let open = || {
            let connection = Connection::open_in_memory()?;
            connection.execute_batch(schema.tables)?;
            Ok(connection)
        };
        let connection = open().map_err(|cause| about(&path, cause))?;
        Ok(Self { connection, path })
    }

    /// Reads from the database.
    pub(crate) fn read<T>(
        &self,
        act: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        act(&self.connection).map_err(|cause| about(&self.path, cause))
    }

    /// Changes the database in a transaction.
    pub(crate) fn change<T>(
        &mut self,
        act: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let Self { connection, path } = self;
        transact(connection, act).map_err(|cause| about(path, cause))
    }

    /// Changes the database in a transaction that survives a kill, but that a power failure may undo until the next
    /// [`Self::change`]: it does not wait for the disk.
    pub(crate) fn change_soon<T>(
        &mut self,
        act: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let Self { connection, path } = self;
        let set = |connection: &Connection, to| connection.pragma_update(None, "synchronous", to);
        let changed = set(connection, "NORMAL").and_then(|()| transact(connection, act));
        let changed = set(connection, "FULL").and(changed);
        changed.map_err(|cause| about(path, cause))
    }
}

fn transact<T>(
    connection: &mut Connection,
    act: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = act(&change)?;
    change.commit()?;
    Ok(done)
}

/// Upgrades the tables to the current version.
fn upgrade(
    connection: &Connection,
    path: &Path,
    schema: &DatabaseSchema,
    mut version: i64,
) -> Result<(), Error> {
    while version != schema.version {
        let upgrade = schema.upgrades.iter().find(|(from, _)| *from == version);
        let unknown = || Error::Version { path: path.to_owned(), schema: version };
        let (_, change) = upgrade.ok_or_else(unknown)?;
        connection.execute_batch(change).map_err(|cause| about(path, cause))?;
        version += 1;
    }
    Ok(())
}

/// An unsigned number, which SQLite stores as a signed one.
pub(crate) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

fn about(path: &Path, cause: rusqlite::Error) -> Error {
    let path = path.to_owned();
    match cause.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::InUse(path),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Damaged { path, cause }
        }
        _ => Error::Database { path, cause },
    }
}

/// Opens or creates the file.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // If this fails, SQLite reports the error.
    drop(OpenOptions::new().append(true).create(true).mode(0o600).open(path));
    let connection = Connection::open(path)?;
    // One process at a time; others fail at once.
    connection.busy_timeout(Duration::ZERO)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    // Acknowledged data must survive a power failure.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // More than the statements of any database here: parsing them takes longer than most of them run.
    connection.set_prepared_statement_cache_capacity(64);
    // Otherwise they are parsed again for other values (https://www.sqlite.org/queryplanner-ng.html#qpstab).
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Deleted data includes secrets: overwrite it where this needs no extra writes.
    connection.pragma_update(None, "secure_delete", "FAST")?;
    Ok(connection)
}

/// Application ID, schema version, and number of objects.
fn kind(connection: &Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let number = |query| connection.query_row(query, [], |row| row.get(0));
    Ok((
        number("PRAGMA application_id")?,
        number("PRAGMA user_version")?,
        number("SELECT count(*) FROM sqlite_master")?,
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const SCHEMA: DatabaseSchema = DatabaseSchema {
        application: 7,
        version: 1,
        tables: "BEGIN;
            CREATE TABLE thing (number INTEGER);
            PRAGMA application_id = 7;
            PRAGMA user_version = 1;
            COMMIT;",
        upgrades: &[],
    };

    fn open(path: &Path) -> Result<Database, Error> {
        Database::open(path, &SCHEMA)
    }

    #[test]
    fn file_is_private_and_exclusive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things");
        let mut database = open(&path).unwrap();
        database.change(|change| change.execute("INSERT INTO thing VALUES (3)", [])).unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let mode = file.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let error = open(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("another wirestamp uses it"), "{error}");
        drop(database);
        let read = |it: &Connection| {
            it.query_row("SELECT number FROM thing", [], |row| row.get::<_, i64>(0))
        };
        assert_eq!(open(&path).unwrap().read(read).unwrap(), 3);
    }

    #[test]
    fn failed_transaction_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut database = open(&folder.path().join("things")).unwrap();
        let failed = database.change(|change| {
            change.execute("INSERT INTO thing VALUES (3)", [])?;
            change.execute("INSERT INTO elsewhere VALUES (3)", [])
        });
        let why = failed.unwrap_err().to_string();
        assert!(why.contains("things: ") && why.contains("no such table"), "{why}");
        let count = |it: &Connection| {
            it.query_row("SELECT count(*) FROM thing", [], |row| row.get::<_, i64>(0))
        };
        assert_eq!(database.read(count).unwrap(), 0);
    }

    #[test]
    fn change_without_waiting_leaves_others_durable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things");
        let mut database = open(&path).unwrap();
        database.change_soon(|change| change.execute("INSERT INTO thing VALUES (3)", [])).unwrap();
        let failed = database.change_soon(|change| change.execute("INSERT INTO elsewhere", []));
        assert!(failed.is_err());
        // FULL (https://www.sqlite.org/pragma.html#pragma_synchronous).
        let mode = |it: &Connection| it.query_row("PRAGMA synchronous", [], |row| row.get(0));
        assert_eq!(database.read::<i64>(mode).unwrap(), 2);
        drop(database);
        let read = |it: &Connection| it.query_row("SELECT number FROM thing", [], |row| row.get(0));
        assert_eq!(open(&path).unwrap().read::<i64>(read).unwrap(), 3);
    }

    #[test]
    fn earlier_version_is_upgraded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things");
        let mut database = open(&path).unwrap();
        database.change(|change| change.execute("INSERT INTO thing VALUES (3)", [])).unwrap();
        drop(database);
        let upgrades = &[
            (
                1,
                "BEGIN; ALTER TABLE thing ADD COLUMN size INTEGER; PRAGMA user_version = 2; COMMIT;",
            ),
            (2, "BEGIN; UPDATE thing SET size = 7 * number; PRAGMA user_version = 3; COMMIT;"),
        ];
        let newer = DatabaseSchema { version: 3, upgrades, ..SCHEMA };
        let sizes = |it: &Connection| it.query_row("SELECT size FROM thing", [], |row| row.get(0));
        for _ in 0..2 {
            let database = Database::open(&path, &newer).unwrap();
            assert_eq!(database.read::<i64>(sizes).unwrap(), 21);
        }
        let error = open(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("(schema 3)"), "{error}");
    }

    #[test]
    fn damaged_page_is_an_error_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("things");
        let mut database = open(&path).unwrap();
        let fill = |change: &Transaction<'_>| {
            (0..5000)
                .try_for_each(|it| change.execute("INSERT INTO thing VALUES (?)", [it]).map(drop))
        };
        database.change(fill).unwrap();
        drop(database);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4096..].fill(0x55);
        std::fs::write(&path, bytes).unwrap();
        let sum = |it: &Connection| {
            it.query_row("SELECT sum(number) FROM thing", [], |row| row.get::<_, i64>(0))
        };
        let error = open(&path).and_then(|it| it.read(sum)).unwrap_err().to_string();
        assert!(error.contains("is damaged") && error.contains("move it away"), "{error}");
    }

    #[test]
    fn foreign_file_is_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "this is not an SQLite database, but some other text").unwrap();
        let error = open(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("text: it is damaged (file is not a database)"), "{error}");
        let path = folder.path().join("newer");
        drop(open(&path).unwrap());
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 7).unwrap();
        let error = open(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("(schema 7)"), "{error}");
        let path = folder.path().join("foreign");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE batch (age)").unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = open(&path).map(drop).unwrap_err().to_string();
        assert!(error.contains("is the database of another program"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let nowhere = open(Path::new("/nowhere/things")).map(drop).unwrap_err();
        assert!(nowhere.to_string().contains("/nowhere/things: "), "{nowhere}");
    }
}
