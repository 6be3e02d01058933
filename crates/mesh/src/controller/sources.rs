//! Access to the results of all collectors: the controller's own, and others over the network.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};
use wirestamp_clock::{Time, Utc};

use super::placement::TaskPlacement;
use super::response::Answer;
use super::shared_ca::ValidCertificates;
use crate::collector::{
    Collector, Counted, ExporterStats, Histograms, Measured, Recent, ResultRange, Sum,
};
use crate::pki::{Credentials, Role};
use crate::transport::{Trust, Unusable, call, reason};
use crate::v1::answers_client::AnswersClient;
use crate::v1::question::What;
use crate::v1::{Newest, Question, SettledUntil};
use crate::{DatabaseError, Name, v1};

/// How long a collector may take for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// Timeout of a query that runs together with others: Prometheus waits ten seconds for all of them.
const CONCURRENT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an unreachable collector is not called again.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Why results are not available.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The controller's own results cannot be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The collector does not answer.
    #[error("cannot read results from the collector {collector}: {why}")]
    Away {
        /// Name of the collector.
        collector: Name,
        /// Cause.
        why: String,
    },
    /// The response is too long.
    #[error(
        "cannot read results from the collector {0}: too many; request a shorter time or a coarser step"
    )]
    TooMuch(Name),
}

/// Results of all collectors of a mesh.
pub struct Sources {
    own: Arc<Collector>,
    /// Serialises reads from the own collector: others would each block a thread.
    turn: AsyncMutex<()>,
    placement: Arc<TaskPlacement>,
    members: watch::Receiver<Arc<ValidCertificates>>,
    credentials: watch::Receiver<Credentials>,
    connections: Mutex<BTreeMap<Name, Connection>>,
    /// Notified of new results of any collector.
    changed: watch::Sender<()>,
}

/// Connection to a collector, reused while its address and the credentials stay the same.
struct Connection {
    address: String,
    credentials: Credentials,
    client: AnswersClient<Channel>,
    failure: Arc<Mutex<Option<Failure>>>,
}

/// The last failure to reach a collector.
#[derive(Clone)]
struct Failure {
    at: Instant,
    why: String,
}

impl Sources {
    pub(super) fn new(
        own: Arc<Collector>,
        placement: Arc<TaskPlacement>,
        members: watch::Receiver<Arc<ValidCertificates>>,
        credentials: watch::Receiver<Credentials>,
    ) -> Self {
        let (connections, changed) = (Mutex::default(), watch::Sender::default());
        Self {
            own,
            turn: AsyncMutex::default(),
            placement,
            members,
            credentials,
            connections,
            changed,
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
        match self.remote(task)? {
            None => self.read(|own| own.measured(task, range)).await,
            Some(connection) => connection.read(task, What::Measured(range.into())).await,
        }
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
        match self.remote(task)? {
            None => self.read(|own| own.results().counted(task, range)).await,
            Some(connection) => connection.read(task, What::Counted(range.into())).await,
        }
    }

    /// Flows of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn flows(&self, task: u64, range: &ResultRange) -> Result<Vec<String>, QueryError> {
        match self.remote(task)? {
            None => self.read(|own| own.results().flows(task, range)).await,
            Some(connection) => connection.ask(task, What::Flows(range.into())).await,
        }
    }

    /// Delay histograms of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn histograms(&self, task: u64, range: Range<i64>) -> Result<Histograms, QueryError> {
        match self.remote(task)? {
            None => self.read(|own| own.results().histograms(task, range)).await,
            Some(connection) => {
                let Range { start: from, end: until } = range;
                connection.one(task, What::Histograms(v1::Histograms { from, until })).await
            }
        }
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
                    (collector, connection.in_time().read::<(u64, Recent)>(0, what).await)
                })),
                Err(why) => away.push(why),
            }
        }
        let mut all = self.read(|own| own.recent(from, most)).await?;
        for (collector, answer) in questions.join_all().await {
            // Only tasks that are placed at it.
            let home = |task: u64| self.placement.of(task).map(|(name, _)| name);
            let is_its_own = |(task, _): &(u64, Recent)| home(*task).as_ref() == Some(&collector);
            match answer {
                Ok(recent) => all.extend(recent.into_iter().filter(is_its_own)),
                Err(why) => away.push(why),
            }
        }
        Ok((all, away))
    }

    /// Sum of a counting task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn sum(&self, task: u64) -> Result<Sum, QueryError> {
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
        match self.remote(task)? {
            None => self.read(|own| own.results().flow_count(task)).await,
            Some(connection) => connection.one(task, What::FlowCount(v1::FlowCount {})).await,
        }
    }

    /// Statistics of foreign exporters, which report to the controller's own collector only.
    #[must_use]
    pub fn exporter_stats(&self) -> &ExporterStats {
        self.own.exporter_stats()
    }

    /// The newest window of a task.
    ///
    /// # Errors
    /// As for [`Self::measured`].
    pub async fn newest(&self, task: u64) -> Result<Option<Measured>, QueryError> {
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

    /// The connection to a collector.
    fn connection(&self, collector: Name, address: String) -> Result<RemoteCollector, QueryError> {
        if !self.members.borrow().has_collector(&collector) {
            let why = "its certificate is not valid any more".to_owned();
            return Err(QueryError::Away { collector, why });
        }
        let called = self.call(collector.clone(), address);
        let remote = called.map_err(|why| QueryError::Away {
            collector: collector.clone(),
            why: why.to_string(),
        })?;
        let failure = remote.failure.lock().clone();
        match failure.filter(|it| it.at.elapsed() < RETRY_DELAY) {
            Some(Failure { why, .. }) => Err(QueryError::Away { collector, why }),
            None => Ok(remote),
        }
    }

    fn call(&self, collector: Name, address: String) -> Result<RemoteCollector, Unusable> {
        let credentials = self.credentials.borrow().clone();
        let mut connections = self.connections.lock();
        let known = connections.get(&collector);
        let (client, failure) =
            match known.filter(|it| it.address == address && it.credentials == credentials) {
                Some(known) => (known.client.clone(), Arc::clone(&known.failure)),
                None => {
                    let trust = Trust::Certificate(&credentials);
                    let channel = call(&address, Role::Collector, &trust)?;
                    let (client, failure) = (AnswersClient::new(channel), Arc::default());
                    let (own, shared) = (client.clone(), Arc::clone(&failure));
                    let connection = Connection { address, credentials, client, failure };
                    connections.insert(collector.clone(), connection);
                    (own, shared)
                }
            };
        Ok(RemoteCollector { collector, client, failure, timeout_after: RESPONSE_TIMEOUT })
    }
}

/// A query to a remote collector.
struct RemoteCollector {
    collector: Name,
    client: AnswersClient<Channel>,
    failure: Arc<Mutex<Option<Failure>>>,
    timeout_after: Duration,
}

impl RemoteCollector {
    /// With the shorter timeout of concurrent queries.
    fn in_time(self) -> Self {
        Self { timeout_after: CONCURRENT_TIMEOUT, ..self }
    }

    async fn read<T: DeserializeOwned>(
        mut self,
        task: u64,
        what: What,
    ) -> Result<Vec<T>, QueryError> {
        let rows = self.rows(task, what).await?;
        let read = rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>();
        read.map_err(|why| self.away(format!("its response is not valid: {why}")))
    }

    async fn one<T: DeserializeOwned>(self, task: u64, what: What) -> Result<T, QueryError> {
        let collector = self.collector.clone();
        let row = self.read(task, what).await?.pop();
        row.ok_or_else(|| QueryError::Away { collector, why: "its response is empty".to_owned() })
    }

    async fn ask(mut self, task: u64, what: What) -> Result<Vec<String>, QueryError> {
        self.rows(task, what).await
    }

    /// The rows of the response, as JSON.
    async fn rows(&mut self, task: u64, what: What) -> Result<Vec<String>, QueryError> {
        let client = &mut self.client;
        let asked = async {
            let mut answer = Answer::to(&what);
            let question = Question { task, what: Some(what) };
            let mut stream = client.ask(question).await?.into_inner();
            while let Some(more) = stream.message().await? {
                answer.add(more.rows)?;
            }
            Ok::<_, Status>(answer.rows())
        };
        match timeout(self.timeout_after, asked).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(status)) if status.code() == Code::Unavailable => {
                Err(self.failed(reason(&status)))
            }
            Ok(Err(status)) if status.code() == Code::ResourceExhausted => {
                Err(QueryError::TooMuch(self.collector.clone()))
            }
            Ok(Err(status)) => Err(self.away(reason(&status))),
            Err(_) => {
                Err(self.failed(format!("no response within {} s", self.timeout_after.as_secs())))
            }
        }
    }

    /// Records that the collector cannot be reached; it is not called again for a while.
    fn failed(&self, why: String) -> QueryError {
        *self.failure.lock() = Some(Failure { at: Instant::now(), why: why.clone() });
        self.away(why)
    }

    fn away(&self, why: String) -> QueryError {
        QueryError::Away { collector: self.collector.clone(), why }
    }
}
