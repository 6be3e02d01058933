//! Access to the results of all collectors: the controller's own, and others over the network.

mod merge;
mod parts;
mod remote;
mod shards;
#[cfg(all(test, feature = "kafka"))]
mod simulated;
mod windows;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::timeout;
use wirestamp_clock::{Time, Utc};

use super::placement::{Reported, TaskPlacement};
use super::shared_ca::ValidCertificates;
use crate::collector::{
    Collector, Counted, ExporterStats, Histograms, Measured, Recent, ResultRange, Sum,
};
use crate::pki::Credentials;
use crate::task::Tasks;
use crate::v1::question::What;
use crate::v1::{Newest, SettledUntil};
use crate::{DatabaseError, Name, v1};
pub(super) use parts::MissingPart;
pub use remote::QueryError;
use remote::{Connections, RemoteCollector};
#[cfg(all(test, feature = "kafka"))]
pub(super) use simulated::export;
use windows::WindowRow;

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

    /// Measured windows of a task: see [`Collector::measured`].
    ///
    /// # Errors
    /// When the results cannot be read, or their collector does not answer.
    pub async fn measured(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<Vec<Measured>, QueryError> {
        match self.shards(task) {
            Some(shards) => self.whole_windows(task, shards, range).await,
            None => Ok(self.windows(task, range).await?.0),
        }
    }

    /// As [`Self::measured`], and the collectors whose results are missing.
    pub(super) async fn measured_parts(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<(Vec<Measured>, Vec<MissingPart>), QueryError> {
        match self.shards(task) {
            Some(shards) => self.windows_of_shards(task, shards, range).await,
            None => self.windows(task, range).await,
        }
    }

    /// Windows of a shard, or of a task with one, and the former collectors whose results are missing.
    async fn windows<T: WindowRow>(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<(Vec<T>, Vec<MissingPart>), QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_windows(task, &places, range).await;
        }
        let windows = match self.remote(task)? {
            None => self.read(|own| T::read(own, task, range)).await,
            Some(connection) => connection.read(task, T::query(range.into())).await,
        };
        Ok((windows?, Vec::new()))
    }

    /// Counted intervals of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn counted(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<Vec<Counted>, QueryError> {
        Ok(self.counted_parts(task, range).await?.0)
    }

    /// As [`Self::counted`], and the former collectors whose results are missing.
    pub(super) async fn counted_parts(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<(Vec<Counted>, Vec<MissingPart>), QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_counts(task, &places, range).await;
        }
        let counted = match self.remote(task)? {
            None => self.read(|own| own.results().counted(task, range)).await,
            Some(connection) => connection.read(task, What::Counted(range.into())).await,
        };
        Ok((counted?, Vec::new()))
    }

    /// Flows of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn flows(&self, task: u64, range: &ResultRange) -> Result<Vec<String>, QueryError> {
        Ok(self.flows_parts(task, range).await?.0)
    }

    /// As [`Self::flows`], and the former collectors whose results are missing.
    pub(super) async fn flows_parts(
        &self,
        task: u64,
        range: &ResultRange,
    ) -> Result<(Vec<String>, Vec<MissingPart>), QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_flows(task, &places, range).await;
        }
        let flows = match self.remote(task)? {
            None => self.read(|own| own.results().flows(task, range)).await,
            Some(connection) => connection.ask(task, What::Flows(range.into())).await,
        };
        Ok((flows?, Vec::new()))
    }

    /// Delay histograms of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn histograms(&self, task: u64, range: Range<i64>) -> Result<Histograms, QueryError> {
        Ok(self.histograms_parts(task, range).await?.0)
    }

    /// As [`Self::histograms`], and the former collectors whose results are missing.
    pub(super) async fn histograms_parts(
        &self,
        task: u64,
        range: Range<i64>,
    ) -> Result<(Histograms, Vec<MissingPart>), QueryError> {
        match self.shards(task) {
            Some(shards) => self.histograms_of_shards(shards, range).await,
            None => self.histograms_of(task, range).await,
        }
    }

    /// Histograms of a shard, or of a task with one.
    async fn histograms_of(
        &self,
        task: u64,
        range: Range<i64>,
    ) -> Result<(Histograms, Vec<MissingPart>), QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_histograms(task, &places, range).await;
        }
        let histograms = match self.remote(task)? {
            None => self.read(|own| own.results().histograms(task, range)).await,
            Some(connection) => {
                let Range { start: from, end: until } = range;
                connection.one(task, What::Histograms(v1::Histograms { from, until })).await
            }
        };
        Ok((histograms?, Vec::new()))
    }

    /// The newest results of all tasks: see [`Collector::recent`]. Collectors that do not answer are returned as
    /// errors.
    ///
    /// # Errors
    /// When the controller's own results cannot be read.
    pub async fn recent(
        &self,
        from: Time<Utc>,
        most: u32,
    ) -> Result<(BTreeMap<u64, Recent>, Vec<QueryError>), QueryError> {
        let mut questions = JoinSet::new();
        let mut away = Vec::new();
        for (collector, address) in self.placement.addresses() {
            let what = What::Recent(v1::Recent { from: from.as_nanos(), most });
            match self.connection(collector.clone(), address) {
                Ok(connection) => drop(questions.spawn(async move {
                    (
                        collector,
                        connection.within(CONCURRENT_TIMEOUT).read::<(u64, Recent)>(0, what).await,
                    )
                })),
                Err(why) => away.push(why),
            }
        }
        let own = self.read(|own| own.recent(from, most)).await?;
        let mut answers = vec![(None, own.into_iter().collect())];
        for (collector, answer) in questions.join_all().await {
            match answer {
                Ok(recent) => answers.push((Some(collector), recent)),
                Err(why) => away.push(why),
            }
        }
        let mut recent = self.merged_recent(answers, most);
        self.join_shards(&mut recent, from, most, &mut away).await;
        Ok((recent, away))
    }

    /// Sum of a counting task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn sum(&self, task: u64) -> Result<Sum, QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_sum(task, &places).await;
        }
        match self.remote(task)? {
            None => self.read(|own| own.results().sum(task)).await,
            Some(connection) => connection.one(task, What::Sum(v1::Sum {})).await,
        }
    }

    /// Number of stored flows of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn flow_count(&self, task: u64) -> Result<u64, QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_flow_count(task, &places).await;
        }
        match self.remote(task)? {
            None => self.read(|own| own.results().flow_count(task)).await,
            Some(connection) => {
                connection.one(task, What::FlowCount(v1::FlowCount::default())).await
            }
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

    /// The newest window of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn newest(&self, task: u64) -> Result<Option<Measured>, QueryError> {
        match self.shards(task) {
            Some(shards) => self.newest_of_shards(task, shards).await,
            None => self.newest_of(task).await,
        }
    }

    /// The newest window of a shard, or of a task with one.
    async fn newest_of(&self, task: u64) -> Result<Option<Measured>, QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_newest(task, &places).await;
        }
        match self.remote(task)? {
            None => self.read(|own| own.newest(task)).await,
            Some(connection) => Ok(connection.read(task, What::Newest(Newest {})).await?.pop()),
        }
    }

    /// Time up to which the results of a task are final: see [`Collector::settled_until`].
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn settled_until(&self, task: u64) -> Result<Time<Utc>, QueryError> {
        match self.shards(task) {
            Some(shards) => self.settled_until_of_shards(shards).await,
            None => self.settled_until_of(task).await,
        }
    }

    /// Time up to which the results of a shard, or of a task with one, are final.
    async fn settled_until_of(&self, task: u64) -> Result<Time<Utc>, QueryError> {
        if let Some(places) = self.places(task) {
            return self.merged_settled_until(task, &places).await;
        }
        match self.remote(task)? {
            None => self.read(|own| own.settled_until(task)).await,
            Some(connection) => {
                let what = What::SettledUntil(SettledUntil {});
                let nanos = connection.read(task, what).await?.pop().unwrap_or(i64::MIN);
                Ok(Time::from_nanos(nanos))
            }
        }
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
