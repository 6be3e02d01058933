//! Database of the positions in Kafka: the first offset that is still needed of each partition, and the newest session of
//! each point.
//!
//! It is not part of the results. Too low an offset only means that records are read again; results are stored with the
//! numbers of their batches. A session is stored before the first batch of it is taken. Without this file, reading begins
//! with new records, and probes send again what is missing.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, params};

use crate::DatabaseError;
use crate::database::{Database, DatabaseSchema, unsigned};

/// "WSKP".
const SCHEMA: DatabaseSchema = DatabaseSchema {
    application: 0x5753_4B50,
    version: 1,
    tables: "
        BEGIN;
        CREATE TABLE session (
            task INTEGER NOT NULL, point INTEGER NOT NULL, session INTEGER NOT NULL,
            PRIMARY KEY (task, point)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE partition (
            number INTEGER NOT NULL, partitions INTEGER NOT NULL, needed INTEGER NOT NULL,
            PRIMARY KEY (number, partitions)
        ) STRICT, WITHOUT ROWID;
        PRAGMA application_id = 0x57534B50;
        PRAGMA user_version = 1;
        COMMIT;",
    upgrades: &[],
};

/// The database.
pub(super) struct Positions {
    database: Database,
    sessions: HashMap<(u64, u32), u64>,
}

impl Positions {
    /// Opens or creates the file.
    pub(super) fn open(path: &Path) -> Result<Self, DatabaseError> {
        let database = Database::open(path, &SCHEMA)?;
        let read = |database: &Connection| {
            let mut statement = database.prepare("SELECT task, point, session FROM session")?;
            let rows = statement
                .query_map([], |row| Ok(((unsigned(row, 0)?, row.get(1)?), unsigned(row, 2)?)))?;
            rows.collect()
        };
        let sessions = database.read(read)?;
        Ok(Self { database, sessions })
    }

    /// The newest session of a point; 0 if there is none.
    pub(super) fn session(&self, point: (u64, u32)) -> u64 {
        self.sessions.get(&point).copied().unwrap_or(0)
    }

    /// Stores a newer session of a point.
    pub(super) fn begin_session(
        &mut self,
        point: (u64, u32),
        session: u64,
    ) -> Result<(), DatabaseError> {
        self.database.change(|change| {
            let query = "INSERT INTO session VALUES (?1, ?2, ?3)
                         ON CONFLICT DO UPDATE SET session = ?3";
            let (task, point) = point;
            change.execute(query, params![task.cast_signed(), point, session.cast_signed()])
        })?;
        self.sessions.insert(point, session);
        Ok(())
    }

    /// First offset that is still needed of a partition, in a topic with this number of them; none if it is not known.
    pub(super) fn needed(
        &self,
        partition: u32,
        partitions: u32,
    ) -> Result<Option<i64>, DatabaseError> {
        self.database.read(|database| {
            let query = "SELECT needed FROM partition WHERE number = ? AND partitions = ?";
            let mut statement = database.prepare_cached(query)?;
            let mut rows = statement.query(params![partition, partitions])?;
            rows.next()?.map(|row| row.get(0)).transpose()
        })
    }

    /// Stores the first offset that is still needed of a partition.
    pub(super) fn set_needed(
        &mut self,
        partition: u32,
        partitions: u32,
        needed: i64,
    ) -> Result<(), DatabaseError> {
        self.database.change(|change| {
            let query = "INSERT INTO partition VALUES (?1, ?2, ?3)
                         ON CONFLICT DO UPDATE SET needed = ?3";
            change.execute(query, params![partition, partitions, needed])
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Positions::open(&folder.path().join("kafka.sqlite")).unwrap();
        let mut positions = open();
        assert_eq!((positions.session((7, 0)), positions.needed(3, 12).unwrap()), (0, None));
        for session in [5, u64::MAX] {
            positions.begin_session((7, 0), session).unwrap();
            positions.set_needed(3, 12, 40).unwrap();
            positions.set_needed(3, 12, 41).unwrap();
        }
        drop(positions);
        let positions = open();
        assert_eq!([(7, 0), (7, 1)].map(|it| positions.session(it)), [u64::MAX, 0]);
        let needed = [(3, 12), (3, 24), (4, 12)].map(|(it, of)| positions.needed(it, of).unwrap());
        assert_eq!(needed, [Some(41), None, None]);
    }
}
