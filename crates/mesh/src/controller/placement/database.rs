//! File of the placements.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, params};

use super::{PartStart, Placed};
use crate::Name;
use crate::database::{DatabaseSchema, unsigned};

/// "WSHO".
pub(super) const SCHEMA: DatabaseSchema = DatabaseSchema {
    application: 0x5753_484f,
    version: 2,
    tables: TABLES,
    upgrades: &[(1, HISTORY)],
};

/// Tasks from before version 2 have not moved.
const HISTORY: &str = "
    BEGIN;
    CREATE TABLE history (
        task INTEGER NOT NULL, epoch INTEGER NOT NULL, collector TEXT, start INTEGER, spool INTEGER,
        behind INTEGER, PRIMARY KEY (task, epoch)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO history (task, epoch, collector) SELECT task, 0, collector FROM home;
    PRAGMA user_version = 2;
    COMMIT;";

/// `home` has the current collector of a task, and `history` the one of each epoch. A task without a collector belongs
/// to the controller's own. `start` is the begin of the results in an epoch, in nanoseconds since 1970 (UTC).
const TABLES: &str = "
    BEGIN;
    CREATE TABLE collector (name TEXT PRIMARY KEY, address TEXT NOT NULL) STRICT;
    CREATE TABLE home (task INTEGER PRIMARY KEY, collector TEXT) STRICT;
    CREATE TABLE history (
        task INTEGER NOT NULL, epoch INTEGER NOT NULL, collector TEXT, start INTEGER, spool INTEGER,
        behind INTEGER, PRIMARY KEY (task, epoch)
    ) STRICT, WITHOUT ROWID;
    PRAGMA application_id = 0x5753484f;
    PRAGMA user_version = 2;
    COMMIT;";

/// Stores the collector of a task in an epoch.
pub(super) fn insert(
    change: &Transaction<'_>,
    task: u64,
    epoch: u64,
    collector: Option<&Name>,
) -> rusqlite::Result<()> {
    let (task, collector) = (task.cast_signed(), collector.map(AsRef::as_ref));
    let query = "INSERT INTO home VALUES (?1, ?2) ON CONFLICT (task) DO UPDATE SET collector = ?2";
    change.execute(query, params![task, collector])?;
    let query = "INSERT INTO history (task, epoch, collector) VALUES (?, ?, ?)";
    change.execute(query, params![task, epoch.cast_signed(), collector])?;
    Ok(())
}

/// Stores the start of an epoch.
pub(super) fn start(
    change: &Transaction<'_>,
    (task, epoch): (u64, u64),
    start: &PartStart,
) -> rusqlite::Result<()> {
    let query =
        "UPDATE history SET start = ?3, spool = ?4, behind = ?5 WHERE task = ?1 AND epoch = ?2";
    let PartStart { at, spool, behind } = *start;
    let [task, epoch, behind] = [task, epoch, behind].map(u64::cast_signed);
    change.execute(query, [task, epoch, at, spool, behind])?;
    Ok(())
}

/// Addresses of the collectors.
pub(super) fn collectors(database: &Connection) -> rusqlite::Result<BTreeMap<Name, String>> {
    let mut statement = database.prepare("SELECT name, address FROM collector")?;
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?;
    let known = rows.map(|row| {
        let (name, address) = row?;
        // The table has no others.
        Ok(Name::try_from(name).ok().map(|name| (name, address)))
    });
    known.filter_map(Result::transpose).collect()
}

/// The placements of each task, by epoch.
pub(super) fn placement(database: &Connection) -> rusqlite::Result<BTreeMap<u64, Vec<Placed>>> {
    let query = "SELECT task, collector, start, spool, behind FROM history ORDER BY task, epoch";
    let mut statement = database.prepare(query)?;
    let mut rows = statement.query([])?;
    let mut all = BTreeMap::<u64, Vec<Placed>>::new();
    while let Some(row) = rows.next()? {
        let name: Option<String> = row.get(1)?;
        let collector = name.and_then(|name| Name::try_from(name).ok());
        let start = match row.get(2)? {
            Some(at) => Some(PartStart { at, spool: row.get(3)?, behind: unsigned(row, 4)? }),
            None => None,
        };
        all.entry(unsigned(row, 0)?).or_default().push(Placed { collector, start });
    }
    Ok(all)
}
