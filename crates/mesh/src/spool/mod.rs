//! Spool of a probe: batches on disk until the collector has them, with a size limit.
//!
//! A SQLite database, so committed data survives a kill or a crash. When the spool is full, the oldest batches are
//! dropped. Their number, times and packets are kept beyond the limit and reported to the collector.

mod tables;

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::database::{Database, Error};
use tables::{ENTRY_OVERHEAD, NewestBatches, SCHEMA};

/// Unit of delivery to the collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Number of observations or results.
    pub items: u64,
    /// Time range, in nanoseconds since 1970 (UTC).
    pub times: RangeInclusive<i64>,
    /// Encoded message; empty if the batch was dropped before it could be stored.
    pub body: Vec<u8>,
}

impl Batch {
    /// Whether the batch was dropped.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.body.is_empty()
    }

    /// What remains of the batch if it is dropped.
    #[must_use]
    pub fn dropped(&self) -> Self {
        Self { items: self.items, times: self.times.clone(), body: Vec::new() }
    }
}

/// An entry of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// A batch and its number, from 1.
    Batch(u64, Batch),
    /// Batches that were dropped.
    Dropped(DroppedBatches),
}

/// Consecutive batches that were dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedBatches {
    /// Their numbers.
    pub sequences: RangeInclusive<u64>,
    /// Number of observations or results in them.
    pub items: u64,
    /// Their time range, in nanoseconds since 1970 (UTC).
    pub times: RangeInclusive<i64>,
}

/// The spool. Each channel has its own order.
pub struct Spool {
    database: Database,
    /// Max and current size, in bytes.
    bound: u64,
    bytes: u64,
    known: NewestBatches,
    /// The newest batches when the spool was opened, or marked.
    marked: NewestBatches,
}

impl Spool {
    /// Opens or creates the file, readable by its owner only. `bound` is the max size in bytes: of batches, plus 64 for
    /// each.
    ///
    /// # Errors
    /// When the file cannot be read or written, or another process has it open.
    pub fn open(path: &Path, bound: u64) -> Result<Self, Error> {
        let database = Database::open(path, &SCHEMA)?;
        let bytes = database.read(tables::bytes)?;
        let known = database.read(tables::newest_batches)?;
        let marked = known.clone();
        let mut spool = Self { database, bound, bytes, known, marked };
        spool.append::<&str>(&[])?;
        Ok(spool)
    }

    /// Random number that identifies this spool to the collector of a channel.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn stream(&self, channel: &str) -> Result<i64, Error> {
        self.database.read(|database| tables::stream(database, channel))
    }

    /// Number of the channel's first batch that is stored, or else of the next one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn first(&self, channel: &str) -> Result<u64, Error> {
        self.database.read(|database| tables::first(database, channel))
    }

    /// Channels with entries.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn channels(&self) -> Result<Vec<String>, Error> {
        self.database.read(tables::channels)
    }

    /// For each channel, the end of the last batch ever appended, in nanoseconds since 1970 (UTC).
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn reported_until(&self) -> Result<Vec<(String, i64)>, Error> {
        self.database.read(tables::reported_until)
    }

    /// Current size in bytes: of batches, plus 64 for each.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends batches, all or none. Those that were dropped before do not count toward the limit. If the spool is full, the
    /// oldest batches are dropped; a batch that is larger than the whole spool is dropped itself.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append<N: Display>(&mut self, batches: &[(N, Batch)]) -> Result<(), Error> {
        let (bound, mut bytes, known) = (self.bound, self.bytes, self.known.clone());
        self.bytes = self.database.change(|change| {
            for (channel, batch) in batches {
                if batch.is_dropped() {
                    tables::insert_dropped(change, &channel.to_string(), batch, &known)?;
                    continue;
                }
                tables::insert(change, &channel.to_string(), batch)?;
                let own = batch.body.len() as u64 + ENTRY_OVERHEAD;
                bytes += own;
                if own > bound {
                    bytes -= tables::give_up(change, true, &known)?;
                }
            }
            while bytes > bound {
                bytes = bytes.saturating_sub(tables::give_up(change, false, &known)?);
            }
            Ok(bytes)
        })?;
        Ok(())
    }

    /// Entries of a channel after a number, in order, up to `bytes`; at least one, if there is any.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&mut self, channel: &str, behind: u64, bytes: u64) -> Result<Vec<Held>, Error> {
        let Self { database, known, .. } = self;
        database.read(|database| tables::read(database, channel, behind, bytes, known))
    }

    /// Deletes the entries of a channel up to a number: the collector has them. A power failure may undo this; then they
    /// are delivered again, and the collector skips them.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn acknowledge(&mut self, channel: &str, up_to: u64) -> Result<(), Error> {
        self.acknowledge_until(channel, up_to, None)
    }

    /// Deletes the entries of a channel up to a number, and stores the time before which the collector has stored all
    /// results, in nanoseconds since 1970 (UTC), if it stated one. Both together, or nothing.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn acknowledge_until(
        &mut self,
        channel: &str,
        up_to: u64,
        settled_until: Option<i64>,
    ) -> Result<(), Error> {
        self.acknowledge_all(&[(channel, up_to, settled_until)])
    }

    /// [`Self::acknowledge_until`] for several channels: all, or none.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn acknowledge_all<N: AsRef<str>>(
        &mut self,
        receipts: &[(N, u64, Option<i64>)],
    ) -> Result<(), Error> {
        let freed: u64 = self.database.change_soon(|change| {
            let freed = receipts.iter().map(|(channel, up_to, settled_until)| {
                if let Some(until) = settled_until {
                    tables::settle(change, channel.as_ref(), *until)?;
                }
                tables::acknowledge(change, channel.as_ref(), *up_to)
            });
            freed.sum()
        })?;
        self.bytes = self.bytes.saturating_sub(freed);
        Ok(())
    }

    /// Time before which all results of a channel are stored, and begin of its first batch, in nanoseconds since 1970
    /// (UTC). None if no receipt stated the first, or the channel has no batches.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn known_times(&self, channel: &str) -> Result<(Option<i64>, Option<i64>), Error> {
        self.database.read(|database| tables::known_times(database, channel))
    }

    /// Whether the batch of a channel with this number may have been delivered from this spool. If the collector has one
    /// that was not, the spool is an earlier state of another one: of a folder that was restored or copied.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn may_have_delivered(&self, channel: &str, number: u64) -> Result<bool, Error> {
        let channel = self.database.read(|database| tables::number(database, channel))?;
        let newest = channel.and_then(|channel| self.known.get(&channel)).copied();
        Ok(number <= newest.unwrap_or(0))
    }

    /// What was appended until now is that of another probe with the same certificate: [`Self::begin_anew`] deletes it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn mark(&mut self) -> Result<(), Error> {
        self.marked = self.database.read(tables::newest_batches)?;
        Ok(())
    }

    /// Gives a channel another number of its spool, and deletes its batches from before the spool was opened or marked: the
    /// collector has them already, from the spool of which this one is an earlier state.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin_anew(&mut self, channel: &str) -> Result<(), Error> {
        let Self { database, marked, .. } = self;
        let freed = database.change(|change| {
            let number = tables::begin_anew(change, channel)?;
            tables::acknowledge(change, channel, marked.get(&number).copied().unwrap_or(0))
        })?;
        self.bytes = self.bytes.saturating_sub(freed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A batch of 100 bytes.
    fn batch(number: u8) -> Batch {
        let begin = i64::from(number) * 10;
        let body = vec![number; 100 - usize::try_from(ENTRY_OVERHEAD).unwrap()];
        Batch { items: number.into(), times: begin..=begin + 9, body }
    }

    fn dropped(sequences: RangeInclusive<u64>, items: u64, times: RangeInclusive<i64>) -> Held {
        Held::Dropped(DroppedBatches { sequences, items, times })
    }

    #[test]
    fn entries_survive_restart_until_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let mut spool = Spool::open(&path, 1000).unwrap();
        let stream = spool.stream("a").unwrap();
        spool.append(&[("a", batch(1)), ("b", batch(2)), ("a", batch(3))]).unwrap();
        drop(spool);
        let mut spool = Spool::open(&path, 1000).unwrap();
        assert_eq!((spool.stream("a").unwrap(), spool.bytes()), (stream, 300));
        let held = [Held::Batch(1, batch(1)), Held::Batch(2, batch(3))];
        assert_eq!(spool.read("a", 0, u64::MAX).unwrap(), held);
        assert_eq!(spool.read("a", 0, 1).unwrap(), held[..1]);
        assert_eq!(spool.read("a", 1, 0).unwrap(), held[1..]);
        assert_eq!(spool.read("other", 0, 1).unwrap(), []);
        assert_eq!(spool.channels().unwrap(), ["a", "b"]);
        assert_eq!(["a", "other"].map(|it| spool.first(it).unwrap()), [1, 1]);
        spool.acknowledge("a", 1).unwrap();
        assert_eq!((spool.read("a", 0, 999).unwrap(), spool.bytes()), (held[1..].to_vec(), 200));
        // Numbers are not reused.
        spool.acknowledge("a", 2).unwrap();
        assert_eq!(spool.first("a").unwrap(), 3);
        assert_eq!(spool.reported_until().unwrap(), [("a".to_owned(), 39), ("b".to_owned(), 29)]);
        spool.append(&[("a", batch(4))]).unwrap();
        assert_eq!(spool.read("a", 0, 999).unwrap(), [Held::Batch(3, batch(4))]);
        let other = Spool::open(&folder.path().join("other"), 1).unwrap();
        assert_ne!(other.stream("a").unwrap(), stream);
    }

    #[test]
    fn settled_time_is_stored_with_the_acknowledgement() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let tables = tables::SCHEMA.tables.replace(", settled INTEGER", "");
        let tables = tables.replace(",\n        checksum INTEGER", "");
        let tables = tables.replace("user_version = 4", "user_version = 2");
        // A spool of an earlier version.
        rusqlite::Connection::open(&path).unwrap().execute_batch(&tables).unwrap();
        let mut spool = Spool::open(&path, 1000).unwrap();
        assert_eq!(spool.known_times("a").unwrap(), (None, None));
        spool.append(&[("a", batch(1)), ("a", batch(2))]).unwrap();
        assert_eq!(spool.known_times("a").unwrap(), (None, Some(10)));
        spool.acknowledge_until("a", 1, Some(15)).unwrap();
        spool.acknowledge_until("a", 1, Some(12)).unwrap();
        spool.acknowledge("a", 1).unwrap();
        drop(spool);
        let mut spool = Spool::open(&path, 1000).unwrap();
        assert_eq!(spool.known_times("a").unwrap(), (Some(15), Some(20)));
        spool.acknowledge("a", 2).unwrap();
        assert_eq!(spool.known_times("a").unwrap(), (Some(15), None));
    }

    #[test]
    fn dropped_batches_are_reported_in_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let mut spool = Spool::open(&path, 250).unwrap();
        for number in 1..=4 {
            spool.append(&[("a", batch(number))]).unwrap();
        }
        let (third, fourth) = (Held::Batch(3, batch(3)), Held::Batch(4, batch(4)));
        let held = [dropped(1..=2, 3, 10..=29), third, fourth.clone()];
        assert_eq!(spool.read("a", 0, 999).unwrap(), held);
        // The third may have been delivered: it is reported separately.
        spool.append(&[("a", batch(5))]).unwrap();
        let fifth = Held::Batch(5, batch(5));
        let held = [held[0].clone(), dropped(3..=3, 3, 30..=39), fourth, fifth];
        assert_eq!(spool.read("a", 0, 999).unwrap(), held);
        spool.acknowledge("a", 3).unwrap();
        assert_eq!(spool.read("a", 0, 999).unwrap(), held[2..]);
        // A batch that is too large evicts no others.
        spool.append(&[("b", Batch { body: vec![0; 250], ..batch(9) })]).unwrap();
        assert_eq!(spool.read("b", 0, 999).unwrap(), [dropped(1..=1, 9, 90..=99)]);
        assert_eq!(spool.bytes(), 200);
        drop(spool);
        // The limit is smaller now.
        let mut spool = Spool::open(&path, 150).unwrap();
        assert_eq!(spool.read("a", 0, 999).unwrap()[0], dropped(4..=4, 4, 40..=49));
    }

    #[test]
    fn batches_that_were_dropped_before_are_stored_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(&folder.path().join("spool"), 1000).unwrap();
        spool
            .append(&[("a", batch(1)), ("a", batch(2).dropped()), ("a", batch(3).dropped())])
            .unwrap();
        spool.append(&[("a", batch(4))]).unwrap();
        let held = [Held::Batch(1, batch(1)), dropped(2..=3, 5, 20..=39), Held::Batch(4, batch(4))];
        assert_eq!((spool.read("a", 0, 999).unwrap(), spool.bytes()), (held.to_vec(), 200));
    }

    #[test]
    fn restored_spool_keeps_what_came_after_it_was_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [path, backup] = ["spool", "backup"].map(|name| folder.path().join(name));
        let mut spool = Spool::open(&path, 1000).unwrap();
        spool.append(&[("a", batch(1)), ("a", batch(2))]).unwrap();
        drop(spool);
        std::fs::copy(&path, &backup).unwrap();
        let mut spool = Spool::open(&path, 1000).unwrap();
        spool.append(&[("a", batch(3)), ("a", batch(4))]).unwrap();
        assert!(spool.may_have_delivered("a", 2).unwrap());
        assert!(!spool.may_have_delivered("a", 4).unwrap());
        spool.read("a", 0, u64::MAX).unwrap();
        assert!(spool.may_have_delivered("a", 4).unwrap());
        // The collector has all four. The restored spool has gone on in another way.
        let mut restored = Spool::open(&backup, 1000).unwrap();
        restored.append(&[("a", batch(5)), ("b", batch(6))]).unwrap();
        assert!(!restored.may_have_delivered("a", 4).unwrap());
        assert!(!restored.may_have_delivered("unknown", 1).unwrap());
        let before = ["a", "b"].map(|channel| restored.stream(channel).unwrap());
        restored.begin_anew("a").unwrap();
        let after = ["a", "b"].map(|channel| restored.stream(channel).unwrap());
        assert!(after[0] != before[0] && after[1] == before[1]);
        assert_eq!((restored.first("a").unwrap(), restored.bytes()), (3, 200));
        assert_eq!(restored.read("a", 0, 999).unwrap(), [Held::Batch(3, batch(5))]);
        assert_eq!(restored.read("b", 0, 999).unwrap(), [Held::Batch(1, batch(6))]);
        // What was observed until here is that of another probe.
        restored.mark().unwrap();
        restored.append(&[("a", batch(7))]).unwrap();
        restored.begin_anew("a").unwrap();
        assert_eq!(restored.read("a", 0, 999).unwrap(), [Held::Batch(4, batch(7))]);
        restored.begin_anew("new").unwrap();
        restored.append(&[("new", batch(8))]).unwrap();
        assert_eq!(restored.read("new", 0, 999).unwrap(), [Held::Batch(1, batch(8))]);
    }

    /// Its bytes, or its times, changed on the disk.
    #[test]
    fn damaged_batch_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let mut spool = Spool::open(&path, 1000).unwrap();
        spool.append(&[1, 2, 3, 4, 5].map(|number| ("a", batch(number)))).unwrap();
        drop(spool);
        let changes = "UPDATE batch SET body = zeroblob(length(body)) WHERE sequence = 1;
                       UPDATE batch SET until = until + (1 << 62) WHERE sequence = 3;
                       UPDATE batch SET checksum = -1 WHERE sequence = 4;
                       UPDATE batch SET sequence = 6 WHERE sequence = 5;";
        rusqlite::Connection::open(&path).unwrap().execute_batch(changes).unwrap();
        let mut spool = Spool::open(&path, 1000).unwrap();
        let held = spool.read("a", 0, 999).unwrap();
        let bodies = held.into_iter().map(|it| match it {
            Held::Batch(number, it) => (number, it.body),
            Held::Dropped(it) => panic!("{it:?}"),
        });
        let unreadable = |number| (number, tables::UNREADABLE.to_vec());
        let intact = (2, batch(2).body);
        let expected = [unreadable(1), intact, unreadable(3), unreadable(4), unreadable(6)];
        assert_eq!(bodies.collect::<Vec<_>>(), expected);
        spool.acknowledge("a", 6).unwrap();
        assert_eq!((spool.read("a", 0, 999).unwrap(), spool.bytes()), (vec![], 0));
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Append(u8),
        Read(u64),
        /// Index of a number that was read.
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
        fn each_batch_is_stored_or_dropped_once(
            steps in prop::collection::vec(step(), 1..40),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let open = || Spool::open(&folder.path().join("spool"), 350).unwrap();
            let mut spool = Some(open());
            // Items of each batch; last numbers of the reads; last acknowledged number.
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
                let reported = match held {
                    Held::Batch(_, batch) => batch.items,
                    Held::Dropped(dropped) => dropped.items,
                };
                prop_assert_eq!(reported, expected);
            }
            prop_assert_eq!(next, items.len() as u64);
        }
    }

    fn sequences(held: &Held) -> RangeInclusive<u64> {
        match held {
            Held::Batch(sequence, _) => *sequence..=*sequence,
            Held::Dropped(dropped) => dropped.sequences.clone(),
        }
    }
}
