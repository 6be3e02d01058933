//! Spool of a probe: batches on disk until the collector has them, with a size limit.
//!
//! A SQLite database, so committed data survives a kill or a crash. When the spool is full, the oldest batches are
//! dropped. Their number, times and packets are kept beyond the limit and reported to the collector.

mod batch;
mod tables;

use std::fmt::Display;
use std::path::Path;

use crate::database::{Database, Error};
pub use batch::{Batch, DroppedBatches, Held};
use tables::{ENTRY_OVERHEAD, NewestBatches, SCHEMA};

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
mod tests;
