//! The spool, shared between the captures that fill it and the deliveries that empty it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;
use wirestamp_clock::{Time, Utc};

use super::ChannelName;
use crate::DatabaseError;
use crate::spool::{Batch, Held, Spool};

/// Batches for the collector, shared between measurement and delivery.
pub struct SharedSpool {
    spool: Mutex<Spool>,
    /// Notified of each append.
    grown: watch::Sender<()>,
}

impl SharedSpool {
    /// Shares a spool.
    #[must_use]
    pub fn new(spool: Spool) -> Self {
        Self { spool: Mutex::new(spool), grown: watch::Sender::default() }
    }

    /// Appends batches, all or none: see [`Spool::append`].
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&self, batches: &[(ChannelName, Batch)]) -> Result<(), DatabaseError> {
        self.spool.lock().append(batches)?;
        self.grown.send_replace(());
        Ok(())
    }

    /// Channels with batches that are not delivered yet.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn channels(&self) -> Result<Vec<ChannelName>, DatabaseError> {
        let names = self.spool.lock().channels()?;
        // The spool has no other names.
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// Size of the undelivered batches, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.spool.lock().bytes()
    }

    /// For each channel, the end of the last batch ever appended.
    pub(super) fn reported_until(&self) -> Result<BTreeMap<ChannelName, Time<Utc>>, DatabaseError> {
        let reported = self.spool.lock().reported_until()?.into_iter();
        let named = reported.filter_map(|(name, nanos)| Some((name.parse().ok()?, nanos)));
        Ok(named.map(|(name, nanos)| (name, Time::from_nanos(nanos))).collect())
    }

    /// Number of the spool, and number of the channel's first batch that is stored or comes next.
    pub(super) fn opening(&self, channel: ChannelName) -> Result<(i64, u64), DatabaseError> {
        let spool = self.spool.lock();
        Ok((spool.stream()?, spool.first(&channel.to_string())?))
    }

    pub(super) fn read(
        &self,
        channel: ChannelName,
        behind: u64,
        bytes: u64,
    ) -> Result<Vec<Held>, DatabaseError> {
        self.spool.lock().read(&channel.to_string(), behind, bytes)
    }

    pub(super) fn acknowledge(
        &self,
        channel: ChannelName,
        up_to: u64,
    ) -> Result<(), DatabaseError> {
        self.spool.lock().acknowledge(&channel.to_string(), up_to)
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<()> {
        self.grown.subscribe()
    }
}
