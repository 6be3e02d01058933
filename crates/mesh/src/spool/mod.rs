//! What a probe holds until the collector has taken it: on disk, within a bound.
//!
//! It is a SQLite database, so that what was committed is there after a kill or a crash. What does not find
//! room any more, the oldest first, is given up: of that is kept, beyond the bound, how much it was and when, to
//! be told to the collector.

mod tables;

use std::fs::OpenOptions;
use std::ops::RangeInclusive;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use thiserror::Error;

use tables::{APPLICATION, BESIDE, FORM, Known, TABLES};

/// What goes to the collector at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// How many observations or results it has.
    pub items: u64,
    /// The times that it tells of, in nanoseconds since 1970 (UTC).
    pub times: RangeInclusive<i64>,
    /// What it says.
    pub body: Vec<u8>,
}

/// What is held of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A batch, and its number: 1, 2, 3...
    Batch(u64, Batch),
    /// Batches that found no room.
    GivenUp(GivenUp),
}

/// Batches in a row that found no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// Their numbers.
    pub sequences: RangeInclusive<u64>,
    /// How many observations or results they had.
    pub items: u64,
    /// The times that they told of, in nanoseconds since 1970 (UTC).
    pub times: RangeInclusive<i64>,
}

/// Why nothing can be held.
#[derive(Debug, Error)]
pub enum Error {
    /// The database cannot be read or written.
    #[error("what is held for the collector in {}: {cause}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: rusqlite::Error,
    },
    /// Another program has the file open.
    #[error("another probe holds what it has for the collector in {}: each needs a file of its own", .0.display())]
    InUse(PathBuf),
    /// The file is a database of something else.
    #[error("{} is the database of something else, and is left as it is", .0.display())]
    Foreign(PathBuf),
    /// The file is of a version that this program does not know.
    #[error("{} was written by another version of wirestamp (its form is {form}); without it, what it \
             holds is not sent any more", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the tables.
        form: i64,
    },
}

/// What is held for the collector, in channels, each of which has an order of its own.
pub struct Spool {
    database: Connection,
    path: PathBuf,
    /// Bytes that are held at the most, and that are.
    bound: u64,
    bytes: u64,
    known: Known,
}

impl Spool {
    /// Opens what a file holds, or makes a new one, which only its owner can read. It holds so many bytes at
    /// the most: of batches, and 64 for each.
    ///
    /// # Errors
    /// When the file cannot be read or written, or another program has it open.
    pub fn open(path: &Path, bound: u64) -> Result<Self, Error> {
        let about = |cause| about(path, cause);
        let database = connect(path).map_err(about)?;
        let is_new = match kind(&database).map_err(about)? {
            (0, 0, 0) => true,
            (APPLICATION, FORM, _) => false,
            (APPLICATION, form, _) => return Err(Error::Version { path: path.to_owned(), form }),
            _ => return Err(Error::Foreign(path.to_owned())),
        };
        // What is written into a log is fast, and survives a kill.
        database.pragma_update(None, "journal_mode", "WAL").map_err(about)?;
        if is_new {
            database.execute_batch(TABLES).map_err(about)?;
        }
        let bytes = tables::bytes(&database).map_err(about)?;
        let known = tables::all_known(&database).map_err(about)?;
        let mut spool = Self { database, path: path.to_owned(), bound, bytes, known };
        spool.append(&[])?;
        Ok(spool)
    }

    /// By what this spool is told from one that was there before it, or comes after it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn stream(&self) -> Result<i64, Error> {
        let query = "SELECT id FROM stream";
        self.about(self.database.query_row(query, [], |row| row.get(0)))
    }

    /// How many bytes are held: of batches, and 64 for each.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Holds batches of channels, all or none of them, and gives up the oldest that find no room; one that
    /// is too large for all of it is given up alone.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, batches: &[(&str, Batch)]) -> Result<(), Error> {
        let (bound, mut bytes, known) = (self.bound, self.bytes, self.known.clone());
        let appended = self.change(|change| {
            for (channel, batch) in batches {
                tables::insert(change, channel, batch)?;
                let own = batch.body.len() as u64 + BESIDE;
                bytes += own;
                if own > bound {
                    bytes -= tables::give_up(change, true, &known)?;
                }
            }
            while bytes > bound {
                bytes = bytes.saturating_sub(tables::give_up(change, false, &known)?);
            }
            Ok(bytes)
        });
        self.bytes = self.about(appended)?;
        Ok(())
    }

    /// What is held of a channel behind a number, in order, up to so many bytes; one batch at the least, if
    /// there is one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&mut self, channel: &str, behind: u64, bytes: u64) -> Result<Vec<Held>, Error> {
        let held = tables::read(&self.database, channel, behind, bytes, &mut self.known);
        self.about(held)
    }

    /// Lets go of what is held of a channel up to a number: the collector has it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn acknowledge(&mut self, channel: &str, up_to: u64) -> Result<(), Error> {
        let acknowledged = self.change(|change| tables::acknowledge(change, channel, up_to));
        self.bytes = self.bytes.saturating_sub(self.about(acknowledged)?);
        Ok(())
    }

    fn change<T>(
        &mut self,
        act: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let change = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = act(&change)?;
        change.commit()?;
        Ok(done)
    }

    fn about<T>(&self, result: rusqlite::Result<T>) -> Result<T, Error> {
        result.map_err(|cause| about(&self.path, cause))
    }
}

fn about(path: &Path, cause: rusqlite::Error) -> Error {
    let path = path.to_owned();
    match cause.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::InUse(path),
        _ => Error::Database { path, cause },
    }
}

/// The database in a file, which is made if there is none.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // What cannot be made here, the database says in its own words.
    drop(OpenOptions::new().append(true).create(true).mode(0o600).open(path));
    let database = Connection::open(path)?;
    // One probe at a time: another is told so at once.
    database.busy_timeout(Duration::ZERO)?;
    database.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    // A number that the collector has seen is never given again, also when the power fails.
    database.pragma_update(None, "synchronous", "FULL")?;
    Ok(database)
}

/// Whose database it is, the version of its tables, and how many things are in it.
fn kind(database: &Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let number = |query| database.query_row(query, [], |row| row.get(0));
    Ok((
        number("PRAGMA application_id")?,
        number("PRAGMA user_version")?,
        number("SELECT count(*) FROM sqlite_master")?,
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;

    /// Takes 100 bytes.
    fn batch(number: u8) -> Batch {
        let begin = i64::from(number) * 10;
        let body = vec![number; 100 - usize::try_from(BESIDE).unwrap()];
        Batch { items: number.into(), times: begin..=begin + 9, body }
    }

    fn given_up(sequences: RangeInclusive<u64>, items: u64, times: RangeInclusive<i64>) -> Held {
        Held::GivenUp(GivenUp { sequences, items, times })
    }

    #[test]
    fn what_was_held_is_there_again_and_goes_when_it_is_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let mut spool = Spool::open(&path, 1000).unwrap();
        let stream = spool.stream().unwrap();
        spool.append(&[("a", batch(1)), ("b", batch(2)), ("a", batch(3))]).unwrap();
        drop(spool);
        let mut spool = Spool::open(&path, 1000).unwrap();
        assert_eq!((spool.stream().unwrap(), spool.bytes()), (stream, 300));
        let held = [Held::Batch(1, batch(1)), Held::Batch(2, batch(3))];
        assert_eq!(spool.read("a", 0, u64::MAX).unwrap(), held);
        assert_eq!(spool.read("a", 0, 1).unwrap(), held[..1]);
        assert_eq!(spool.read("a", 1, 0).unwrap(), held[1..]);
        assert_eq!(spool.read("nobody", 0, 1).unwrap(), []);
        spool.acknowledge("a", 1).unwrap();
        assert_eq!((spool.read("a", 0, 999).unwrap(), spool.bytes()), (held[1..].to_vec(), 200));
        // Numbers are not used again.
        spool.acknowledge("a", 2).unwrap();
        spool.append(&[("a", batch(4))]).unwrap();
        assert_eq!(spool.read("a", 0, 999).unwrap(), [Held::Batch(3, batch(4))]);
        let other = Spool::open(&folder.path().join("other"), 1).unwrap();
        assert_ne!(other.stream().unwrap(), stream);
    }

    #[test]
    fn what_finds_no_room_is_told_of_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let mut spool = Spool::open(&path, 250).unwrap();
        for number in 1..=4 {
            spool.append(&[("a", batch(number))]).unwrap();
        }
        let (third, fourth) = (Held::Batch(3, batch(3)), Held::Batch(4, batch(4)));
        let held = [given_up(1..=2, 3, 10..=29), third, fourth.clone()];
        assert_eq!(spool.read("a", 0, 999).unwrap(), held);
        // The third may be on its way: it is told of alone.
        spool.append(&[("a", batch(5))]).unwrap();
        let fifth = Held::Batch(5, batch(5));
        let held = [held[0].clone(), given_up(3..=3, 3, 30..=39), fourth, fifth];
        assert_eq!(spool.read("a", 0, 999).unwrap(), held);
        spool.acknowledge("a", 3).unwrap();
        assert_eq!(spool.read("a", 0, 999).unwrap(), held[2..]);
        // One that is too large drives out no other.
        spool.append(&[("b", Batch { body: vec![0; 250], ..batch(9) })]).unwrap();
        assert_eq!(spool.read("b", 0, 999).unwrap(), [given_up(1..=1, 9, 90..=99)]);
        assert_eq!(spool.bytes(), 200);
        drop(spool);
        // There is less room now.
        let mut spool = Spool::open(&path, 150).unwrap();
        assert_eq!(spool.read("a", 0, 999).unwrap()[0], given_up(4..=4, 4, 40..=49));
    }

    #[test]
    fn a_file_is_for_one_probe_and_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let mut spool = Spool::open(&path, 1000).unwrap();
        spool.append(&[("a", batch(1))]).unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let mode = file.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let error = Spool::open(&path, 1000).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("another probe holds"), "{error}");
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        std::fs::write(&path, "this is something else, and no database of SQLite").unwrap();
        let error = Spool::open(&path, 1).map(drop).unwrap_err().to_string();
        assert!(error.contains("not a database") && error.contains("spool"), "{error}");
        let path = folder.path().join("newer");
        drop(Spool::open(&path, 1).unwrap());
        Connection::open(&path).unwrap().pragma_update(None, "user_version", 7).unwrap();
        let error = Spool::open(&path, 1).map(drop).unwrap_err().to_string();
        assert!(error.contains("its form is 7"), "{error}");
        let path = folder.path().join("foreign");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE batch (age)").unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = Spool::open(&path, 1).map(drop).unwrap_err().to_string();
        assert!(error.contains("is the database of something else"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        let nowhere = Spool::open(Path::new("/nowhere/spool"), 1).map(drop).unwrap_err();
        assert!(nowhere.to_string().contains("/nowhere/spool: "), "{nowhere}");
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Append(u8),
        Read(u64),
        /// One of the numbers that were read.
        Acknowledge(usize),
        Open,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1..9u8).prop_map(Step::Append),
            2 => (0..500u64).prop_map(Step::Read),
            1 => any::<prop::sample::Index>().prop_map(|it| Step::Acknowledge(it.index(100))),
            1 => Just(Step::Open),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn each_batch_is_held_or_given_up_once_until_it_is_acknowledged(
            steps in prop::collection::vec(step(), 1..40),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let open = || Spool::open(&folder.path().join("spool"), 350).unwrap();
            let mut spool = Some(open());
            // The items of each batch; the ends of what was read; how much was acknowledged.
            let (mut items, mut read, mut acknowledged) = (vec![0], vec![0], 0);
            for step in steps {
                if matches!(step, Step::Open) {
                    spool = None;
                }
                let spool = spool.get_or_insert_with(open);
                match step {
                    Step::Append(number) => {
                        spool.append(&[("a", batch(number)), ("b", batch(number))]).unwrap();
                        items.push(u64::from(number));
                    }
                    Step::Read(bytes) => {
                        let held = spool.read("a", acknowledged, bytes).unwrap();
                        read.extend(held.iter().map(|it| *sequences(it).end()));
                    }
                    Step::Acknowledge(at) => {
                        acknowledged = acknowledged.max(read[at % read.len()]);
                        spool.acknowledge("a", acknowledged).unwrap();
                    }
                    Step::Open => {}
                }
                prop_assert!(spool.bytes() <= 350);
            }
            drop(spool);
            let held = open().read("a", acknowledged, u64::MAX).unwrap();
            let mut next = acknowledged + 1;
            for held in held {
                let sequences = sequences(&held);
                prop_assert_eq!(*sequences.start(), next);
                next = sequences.end() + 1;
                let expected: u64 = sequences.map(|it| items[usize::try_from(it).unwrap()]).sum();
                let told = match held {
                    Held::Batch(_, batch) => batch.items,
                    Held::GivenUp(given_up) => given_up.items,
                };
                prop_assert_eq!(told, expected);
            }
            prop_assert_eq!(next, items.len() as u64);
        }
    }

    fn sequences(held: &Held) -> RangeInclusive<u64> {
        match held {
            Held::Batch(sequence, _) => *sequence..=*sequence,
            Held::GivenUp(given_up) => given_up.sequences.clone(),
        }
    }
}
