//! The spool, shared between the captures that fill it and the deliveries that empty it.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::block_in_place;
use wirestamp_clock::{Time, Utc};

use super::ChannelName;
use crate::DatabaseError;
use crate::spool::{Batch, Held, Spool};

/// Batches for the collector, shared between measurement and delivery.
pub struct SharedSpool {
    spool: Mutex<Spool>,
    /// Serialises the deliveries of many tasks: each that waits for the lock of the spool would block a thread.
    turn: tokio::sync::Mutex<()>,
    /// Receipts that wait for the spool. What waits together is stored together.
    receipts: Mutex<Vec<Arc<WaitingReceipt>>>,
    /// Each notified of appends to its channel.
    grown: Mutex<HashMap<ChannelName, watch::Sender<()>>>,
    /// Why the last write failed, with a task that it concerns; none if it did not.
    failure: Mutex<Option<(u64, String)>>,
    /// The task whose receipt showed that the folder was restored or copied.
    restored: Mutex<Option<u64>>,
    /// Random number of this run; 0 if there is none.
    pub(super) instance: u64,
}

/// A receipt of the collector for a channel.
struct WaitingReceipt {
    channel: ChannelName,
    up_to: u64,
    settled_until: Option<i64>,
    /// Whether the acknowledged batches are of this spool, once the receipt is stored.
    is_own: OnceLock<bool>,
}

impl WaitingReceipt {
    fn new(channel: ChannelName, up_to: u64, settled_until: Option<i64>) -> Self {
        Self { channel, up_to, settled_until, is_own: OnceLock::new() }
    }

    fn is_own(&self) -> bool {
        self.is_own.get().is_none_or(|it| *it)
    }
}

impl SharedSpool {
    /// Shares a spool.
    #[must_use]
    pub fn new(spool: Spool) -> Self {
        Self {
            spool: Mutex::new(spool),
            turn: tokio::sync::Mutex::default(),
            receipts: Mutex::default(),
            grown: Mutex::default(),
            failure: Mutex::default(),
            restored: Mutex::default(),
            instance: getrandom::u64().unwrap_or(0),
        }
    }

    /// Appends batches, all or none: see [`Spool::append`].
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&self, batches: &[(ChannelName, Batch)]) -> Result<(), DatabaseError> {
        let appended = self.spool.lock().append(batches);
        let task = batches.first().map_or(0, |(name, _)| name.task);
        *self.failure.lock() = appended.as_ref().err().map(|error| (task, error.to_string()));
        if appended.is_ok() {
            let grown = self.grown.lock();
            let senders = batches.iter().filter_map(|(name, _)| grown.get(name));
            senders.for_each(|sender| sender.send_replace(()));
        }
        appended
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

    /// Reads or changes the spool for a delivery, one at a time.
    pub(super) async fn in_turn<T>(&self, act: impl FnOnce(&Self) -> T) -> T {
        let _turn = self.turn.lock().await;
        block_in_place(|| act(self))
    }

    /// Number of the spool, and number of the channel's first batch that is stored or comes next.
    pub(super) fn opening(&self, channel: ChannelName) -> Result<(i64, u64), DatabaseError> {
        let spool = self.spool.lock();
        let name = channel.to_string();
        Ok((spool.stream(&name)?, spool.first(&name)?))
    }

    /// Time before which all results of a channel are stored, and begin of its first batch: see
    /// [`Spool::known_times`].
    pub(super) fn known_times(
        &self,
        channel: ChannelName,
    ) -> Result<(Option<i64>, Option<i64>), DatabaseError> {
        self.spool.lock().known_times(&channel.to_string())
    }

    pub(super) fn read(
        &self,
        channel: ChannelName,
        behind: u64,
        bytes: u64,
    ) -> Result<Vec<Held>, DatabaseError> {
        self.spool.lock().read(&channel.to_string(), behind, bytes)
    }

    /// [`Self::acknowledge_in_turn`] at once.
    #[cfg(feature = "kafka")]
    pub(super) fn acknowledge(
        &self,
        channel: ChannelName,
        up_to: u64,
        settled_until: Option<i64>,
    ) -> Result<bool, DatabaseError> {
        let own = Arc::new(WaitingReceipt::new(channel, up_to, settled_until));
        self.store(std::slice::from_ref(&own))?;
        Ok(own.is_own())
    }

    /// Deletes the batches of a channel that the collector has. Returns false if it has batches that were never delivered
    /// from this spool: then the folder was restored or copied, and the channel gets another number of its spool.
    /// `settled_until` is the time before which the collector has stored all results, in nanoseconds since 1970 (UTC).
    /// Receipts of other deliveries that wait are stored in the same transaction.
    pub(super) async fn acknowledge_in_turn(
        &self,
        channel: ChannelName,
        up_to: u64,
        settled_until: Option<i64>,
    ) -> Result<bool, DatabaseError> {
        let own = Arc::new(WaitingReceipt::new(channel, up_to, settled_until));
        self.receipts.lock().push(Arc::clone(&own));
        let _turn = self.turn.lock().await;
        if own.is_own.get().is_some() {
            return Ok(own.is_own());
        }
        let mut group = mem::take(&mut *self.receipts.lock());
        if !group.iter().any(|it| Arc::ptr_eq(it, &own)) {
            // The transaction of an earlier group failed.
            group.push(Arc::clone(&own));
        }
        block_in_place(|| self.store(&group))?;
        Ok(own.is_own())
    }

    fn store(&self, receipts: &[Arc<WaitingReceipt>]) -> Result<(), DatabaseError> {
        let mut spool = self.spool.lock();
        let mut acknowledged = Vec::with_capacity(receipts.len());
        for receipt in receipts {
            let WaitingReceipt { channel, up_to, settled_until, is_own } = &**receipt;
            let name = channel.to_string();
            if spool.may_have_delivered(&name, *up_to)? {
                acknowledged.push((name, *up_to, *settled_until));
            } else {
                spool.begin_anew(&name)?;
                *self.restored.lock() = Some(channel.task);
                is_own.get_or_init(|| false);
            }
        }
        spool.acknowledge_all(&acknowledged)?;
        for receipt in receipts {
            receipt.is_own.get_or_init(|| true);
        }
        Ok(())
    }

    /// Why observations cannot be written now, with a task that it concerns.
    pub(super) fn failure(&self) -> Option<(u64, String)> {
        self.failure.lock().clone()
    }

    /// The task whose receipt showed that the folder was restored or copied, since the probe has started.
    pub(super) fn restored(&self) -> Option<u64> {
        *self.restored.lock()
    }

    /// What was observed until now is that of another probe with the same certificate: see [`Spool::mark`].
    pub(super) fn mark(&self) -> Result<(), DatabaseError> {
        self.spool.lock().mark()
    }

    /// Notified of appends to a channel.
    pub(super) fn subscribe(&self, channel: ChannelName) -> watch::Receiver<()> {
        let mut grown = self.grown.lock();
        grown.retain(|_, sender| !sender.is_closed());
        grown.entry(channel).or_default().subscribe()
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Runtime;

    use super::*;

    fn name(task: u64) -> ChannelName {
        ChannelName { task, point: 0 }
    }

    /// A spool with a batch in each of three channels.
    fn spool(folder: &tempfile::TempDir) -> SharedSpool {
        let spool = SharedSpool::new(Spool::open(&folder.path().join("spool"), 1 << 20).unwrap());
        let batch = Batch { items: 1, times: 1..=2, body: vec![7; 10] };
        spool.append(&[1, 2, 3].map(|task| (name(task), batch.clone()))).unwrap();
        spool
    }

    #[test]
    fn receipts_that_wait_are_stored_together() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(&folder);
        for task in [1, 2] {
            assert_eq!(spool.read(name(task), 0, 1000).unwrap().len(), 1);
        }
        let acknowledge = |task| spool.acknowledge_in_turn(name(task), 1, Some(2));
        let is_own = Runtime::new().unwrap().block_on(async {
            let turn = spool.turn.lock().await;
            let others_wait = async move { drop(turn) };
            let (one, two, three, ()) =
                tokio::join!(acknowledge(1), acknowledge(2), acknowledge(3), others_wait);
            [one, two, three].map(Result::unwrap)
        });
        // The collector has a batch of the third channel that was never read for delivery.
        assert_eq!((is_own, spool.restored()), ([true, true, false], Some(3)));
        assert_eq!(spool.channels().unwrap(), [name(3)]);
        assert_eq!(spool.known_times(name(1)).unwrap().0, Some(2));
    }

    #[test]
    fn append_wakes_the_deliveries_of_its_channels_only() {
        let folder = tempfile::tempdir().unwrap();
        let spool = spool(&folder);
        let waiting = [1, 2].map(|task| spool.subscribe(name(task)));
        let batch = Batch { items: 1, times: 3..=4, body: vec![7; 10] };
        spool.append(&[(name(1), batch)]).unwrap();
        assert_eq!(waiting.map(|it| it.has_changed().unwrap()), [true, false]);
    }
}
