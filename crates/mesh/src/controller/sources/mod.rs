//! Access to the results of all collectors: the controller's own, and others over the network.

mod merge;
mod parts;
mod queries;
mod remote;
mod shards;
#[cfg(all(test, feature = "kafka"))]
mod simulated;
mod windows;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::timeout;

use super::placement::{Reported, TaskPlacement};
use super::shared_ca::ValidCertificates;
use crate::collector::{Collector, ExporterStats, Sum};
use crate::pki::Credentials;
use crate::task::Tasks;
use crate::{DatabaseError, Name};
pub(super) use parts::MissingPart;
pub use remote::QueryError;
use remote::{Connections, RemoteCollector};
#[cfg(all(test, feature = "kafka"))]
pub(super) use simulated::export;

/// Timeout of a query that runs together with others: Prometheus waits ten seconds for all of them.
const CONCURRENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of a query to a collector that is not connected to the controller. Shorter, so that its failure is known before
/// those that run together end, and it is not called again for a while.
const DISCONNECTED_TIMEOUT: Duration = Duration::from_secs(4);

/// Results of all collectors of a mesh.
pub struct Sources {
    own: Arc<Collector>,
    /// Serialises reads from the own collector: concurrent reads would each block a thread.
    turn: Mutex<()>,
    placement: Arc<TaskPlacement>,
    members: watch::Receiver<Arc<ValidCertificates>>,
    credentials: watch::Receiver<Credentials>,
    connections: Connections,
    /// For the codec of tasks.
    tasks: watch::Receiver<Arc<Tasks>>,
    /// Last known sums of tasks that moved, by collector.
    sums: parking_lot::Mutex<BTreeMap<(u64, Option<Name>), Sum>>,
    /// Notified of new results of any collector.
    changed: watch::Sender<()>,
    /// Collectors of a simulation.
    #[cfg(all(test, feature = "kafka"))]
    simulated: BTreeMap<Name, Arc<Collector>>,
}

impl Sources {
    pub(super) fn new(
        own: Arc<Collector>,
        placement: Arc<TaskPlacement>,
        members: watch::Receiver<Arc<ValidCertificates>>,
        credentials: watch::Receiver<Credentials>,
        tasks: watch::Receiver<Arc<Tasks>>,
    ) -> Self {
        Self {
            own,
            turn: Mutex::default(),
            placement,
            members,
            credentials,
            connections: Connections::default(),
            tasks,
            sums: parking_lot::Mutex::default(),
            changed: watch::Sender::default(),
            #[cfg(all(test, feature = "kafka"))]
            simulated: BTreeMap::new(),
        }
    }

    /// Notified of new results.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Notifies of new results.
    pub(super) fn notify(&self) {
        self.changed.send_replace(());
    }

    /// Forwards notifications of the controller's own collector.
    pub(super) async fn pass_on(&self) {
        let mut stored = self.own.subscribe();
        // The sender is part of `own`.
        while stored.changed().await.is_ok() {
            self.notify();
        }
    }

    /// Statistics of foreign exporters, which report to the controller's own collector only.
    #[must_use]
    pub fn exporter_stats(&self) -> &ExporterStats {
        self.own.exporter_stats()
    }

    /// Counts of the controller's own collector.
    pub(super) fn own_report(&self) -> Reported {
        Reported::own(&self.own)
    }

    /// Collectors that cannot store results, and why; `None` is the controller's own.
    pub(super) fn troubles(&self) -> Vec<(Option<Name>, String)> {
        let own = self.own.trouble().borrow().clone().map(|why| (None, why));
        let others = self.placement.collectors().into_iter();
        let others = others.filter_map(|(name, _, trouble)| Some((Some(name), trouble?)));
        own.into_iter().chain(others).collect()
    }

    /// Queries tasks concurrently. Tasks whose collector does not answer in time are left out.
    pub(super) async fn together<T, F>(
        self: &Arc<Self>,
        tasks: impl IntoIterator<Item = u64>,
        ask: impl Fn(Arc<Self>, u64) -> F,
    ) -> BTreeMap<u64, T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let mut questions = JoinSet::new();
        for task in tasks {
            let question = timeout(CONCURRENT_TIMEOUT, ask(Arc::clone(self), task));
            questions.spawn(async move { (task, question.await) });
        }
        let answers = questions.join_all().await.into_iter();
        answers.filter_map(|(task, answer)| Some((task, answer.ok()?))).collect()
    }

    /// Reads from the controller's own collector.
    async fn read<T>(
        &self,
        read: impl FnOnce(&Collector) -> Result<T, DatabaseError>,
    ) -> Result<T, QueryError> {
        let _turn = self.turn.lock().await;
        Ok(block_in_place(|| read(&self.own))?)
    }

    /// The remote collector of a task; none if it is the controller's own.
    fn remote(&self, task: u64) -> Result<Option<RemoteCollector>, QueryError> {
        let home = self.placement.of(task);
        home.map(|(collector, address)| self.connection(collector, address)).transpose()
    }

    /// A query to a collector with a valid certificate.
    fn connection(&self, collector: Name, address: String) -> Result<RemoteCollector, QueryError> {
        if !self.members.borrow().has_collector(&collector) {
            let why = "its certificate is not valid any more".to_owned();
            return Err(QueryError::Away { collector, why });
        }
        #[cfg(all(test, feature = "kafka"))]
        if let Some(here) = self.simulated.get(&collector) {
            return Ok(RemoteCollector::simulated(collector, Arc::clone(here)));
        }
        let credentials = self.credentials.borrow().clone();
        let is_connected = self.placement.is_connected(&collector);
        let query = self.connections.query(collector, address, credentials)?;
        Ok(if is_connected { query } else { query.within(DISCONNECTED_TIMEOUT) })
    }
}

#[cfg(test)]
mod tests;
