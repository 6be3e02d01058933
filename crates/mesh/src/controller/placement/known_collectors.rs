//! The collectors that are or were connected.

use std::mem;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rusqlite::params;

use super::TaskPlacement;
use crate::collector::{ArchiveCounts, Collector, KafkaStats};
use crate::v1::{Archived, Presence};
use crate::{DatabaseError, Name};

/// Max length of the reason of a collector, in characters.
const MAX_TROUBLE: usize = 500;

/// Time in which collectors connect again after a restart of the controller: their longest pause between two attempts, and
/// the connection.
const RECONNECTION: Duration = Duration::from_secs(35);

/// A collector that is or was connected.
pub(super) struct KnownCollector {
    /// Its address.
    pub(super) address: String,
    /// When it connected; none if it is not connected.
    pub(super) since: Option<Timestamp>,
    /// When it disconnected. For those of before the controller started: [`RECONNECTION`] after the start.
    pub(super) away_since: Instant,
    /// Its last report; none before the first one.
    reported: Option<Reported>,
}

/// What a connected collector has reported.
#[derive(Clone, Debug, Default)]
pub(in crate::controller) struct Reported {
    /// Why it cannot store results; empty if it can.
    trouble: String,
    pub(in crate::controller) archived: ArchiveCounts,
    /// Records from Kafka by outcome; empty if it does not read from Kafka.
    pub(in crate::controller) kafka_records: Vec<(&'static str, u64)>,
    /// Times that reading from Kafka ended with an error; none if it does not read from Kafka.
    pub(in crate::controller) kafka_failures: Option<u64>,
}

impl Reported {
    /// The report of the controller's own collector.
    pub(in crate::controller) fn own(collector: &Collector) -> Self {
        Self {
            trouble: collector.trouble().borrow().clone().unwrap_or_default(),
            archived: *collector.archived().borrow(),
            kafka_records: collector.kafka_stats().counts(),
            kafka_failures: collector.kafka_stats().failures(),
        }
    }

    /// The report in a message.
    pub(in crate::controller) fn of(presence: &Presence) -> Self {
        let Archived { results, observations, failures } = presence.archived.unwrap_or_default();
        Self {
            trouble: presence.trouble.chars().take(MAX_TROUBLE).collect(),
            archived: ArchiveCounts { results, observations, failures },
            kafka_records: KafkaStats::known(&presence.kafka_records),
            kafka_failures: presence.kafka_failures,
        }
    }
}

impl KnownCollector {
    /// A collector that is not connected.
    pub(super) fn away(address: String) -> Self {
        Self { address, since: None, away_since: Instant::now(), reported: None }
    }

    /// A collector of an earlier run of the controller.
    pub(super) fn expected(address: String) -> Self {
        Self { away_since: Instant::now() + RECONNECTION, ..Self::away(address) }
    }
}

impl TaskPlacement {
    /// Registers a collector that connected.
    pub(in crate::controller) fn connected(
        &self,
        name: &Name,
        address: String,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let mut state = self.state.lock();
        if state.collectors.get(name).is_none_or(|known| known.address != address) {
            let query = "INSERT INTO collector VALUES (?1, ?2)
                         ON CONFLICT (name) DO UPDATE SET address = ?2";
            let values = params![name.as_ref(), address];
            state.database.change(|change| change.execute(query, values))?;
        }
        let known = KnownCollector { since: Some(now), ..KnownCollector::away(address) };
        state.collectors.insert(name.clone(), known);
        drop(state);
        self.changed.send_replace(());
        Ok(())
    }

    /// Marks a collector that connected at `came` as disconnected, unless it has connected again.
    pub(in crate::controller) fn disconnected(&self, name: &Name, came: Timestamp) {
        if let Some(known) = self.state.lock().collectors.get_mut(name)
            && known.since == Some(came)
        {
            *known = KnownCollector::away(mem::take(&mut known.address));
        }
    }

    /// Stores what a collector that connected at `came` has reported.
    pub(in crate::controller) fn reported(&self, name: &Name, came: Timestamp, reported: Reported) {
        if let Some(known) = self.state.lock().collectors.get_mut(name)
            && known.since == Some(came)
        {
            known.reported = Some(reported);
        }
    }

    /// The collectors, whether each is connected, and why it cannot store results if so.
    pub(in crate::controller) fn collectors(&self) -> Vec<(Name, bool, Option<String>)> {
        let state = self.state.lock();
        let shown = |(name, it): (&Name, &KnownCollector)| {
            let trouble = it.reported.as_ref().map(|it| &it.trouble).filter(|it| !it.is_empty());
            (name.clone(), it.since.is_some(), trouble.cloned())
        };
        state.collectors.iter().map(shown).collect()
    }

    /// What the connected collectors have reported.
    pub(in crate::controller) fn reports(&self) -> Vec<(Name, Reported)> {
        let state = self.state.lock();
        let reports = state.collectors.iter();
        reports.filter_map(|(name, it)| Some((name.clone(), it.reported.clone()?))).collect()
    }
}
