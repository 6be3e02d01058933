//! A spool that is filled on one side and emptied on the other.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use wirestamp_clock::{Time, Utc};

use super::ChannelName;
use crate::DatabaseError;
use crate::spool::{Batch, Held, Spool};

/// What is held for the collector, by those who measure and those who deliver.
pub struct Stock {
    spool: Mutex<Spool>,
    /// Told of everything that is added.
    grown: watch::Sender<()>,
}

impl Stock {
    /// Shares a spool.
    #[must_use]
    pub fn new(spool: Spool) -> Self {
        Self { spool: Mutex::new(spool), grown: watch::Sender::default() }
    }

    /// Holds batches, all or none of them: see [`Spool::append`].
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&self, batches: &[(ChannelName, Batch)]) -> Result<(), DatabaseError> {
        self.lock().append(batches)?;
        self.grown.send_replace(());
        Ok(())
    }

    /// What was held and is not delivered yet, by its channels.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn channels(&self) -> Result<Vec<ChannelName>, DatabaseError> {
        let names = self.lock().channels()?;
        // There are no others.
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// How many bytes are held.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock().bytes()
    }

    /// Until when each channel has ever told of anything.
    pub(super) fn told_until(&self) -> Result<BTreeMap<ChannelName, Time<Utc>>, DatabaseError> {
        let told = self.lock().told_until()?.into_iter();
        let named = told.filter_map(|(name, nanos)| Some((name.parse().ok()?, nanos)));
        Ok(named.map(|(name, nanos)| (name, Time::from_nanos(nanos))).collect())
    }

    /// Which spool it is, and the number of the first batch of a channel that is held or comes next.
    pub(super) fn opening(&self, channel: ChannelName) -> Result<(i64, u64), DatabaseError> {
        let spool = self.lock();
        Ok((spool.stream()?, spool.first(&channel.to_string())?))
    }

    pub(super) fn read(
        &self,
        channel: ChannelName,
        behind: u64,
        bytes: u64,
    ) -> Result<Vec<Held>, DatabaseError> {
        self.lock().read(&channel.to_string(), behind, bytes)
    }

    pub(super) fn acknowledge(
        &self,
        channel: ChannelName,
        up_to: u64,
    ) -> Result<(), DatabaseError> {
        self.lock().acknowledge(&channel.to_string(), up_to)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.grown.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Spool> {
        // Each change of it is made as a whole or not at all, also where a thread panics.
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
