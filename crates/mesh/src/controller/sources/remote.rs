//! Queries to other collectors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};

#[cfg(all(test, feature = "kafka"))]
use crate::collector::{Collector, rows};
use crate::controller::response::Answer;
use crate::pki::{Credentials, Role};
use crate::transport::{Trust, call, reason};
use crate::v1::Question;
use crate::v1::answers_client::AnswersClient;
use crate::v1::question::What;
use crate::{DatabaseError, Name};

/// How long a collector may take for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

/// How long an unreachable collector is not called again.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Why results are not available.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The controller's own results cannot be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The controller's own results cannot be read.
    #[error("cannot read results of the controller: {0}")]
    Own(String),
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

impl QueryError {
    /// The collector that does not answer.
    pub(in crate::controller) fn collector(&self) -> Option<&Name> {
        match self {
            Self::Away { collector, .. } | Self::TooMuch(collector) => Some(collector),
            Self::Database(_) | Self::Own(_) => None,
        }
    }
}

/// Connection to a collector.
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

/// Connections to other collectors, reused while address and credentials stay the same.
#[derive(Default)]
pub(super) struct Connections(Mutex<BTreeMap<Name, Connection>>);

impl Connections {
    /// A query to the collector at `address`.
    ///
    /// # Errors
    /// When the address or the credentials cannot be used, or the collector could not be reached just now.
    pub(super) fn query(
        &self,
        collector: Name,
        address: String,
        credentials: Credentials,
    ) -> Result<RemoteCollector, QueryError> {
        let mut connections = self.0.lock();
        let known = connections.remove(&collector);
        let is_same = |it: &Connection| it.address == address && it.credentials == credentials;
        let connection = match known.filter(is_same) {
            Some(connection) => connection,
            None => Connection::new(&collector, address, credentials)?,
        };
        let (client, failure) = (connection.client.clone(), Arc::clone(&connection.failure));
        connections.insert(collector.clone(), connection);
        let last = failure.lock().clone();
        match last.filter(|it| it.at.elapsed() < RETRY_DELAY) {
            Some(Failure { why, .. }) => Err(QueryError::Away { collector, why }),
            None => Ok(RemoteCollector::new(collector, client, failure)),
        }
    }
}

impl Connection {
    fn new(
        collector: &Name,
        address: String,
        credentials: Credentials,
    ) -> Result<Self, QueryError> {
        let channel = call(&address, Role::Collector, &Trust::Certificate(&credentials));
        let channel = channel.map_err(|why| QueryError::Away {
            collector: collector.clone(),
            why: why.to_string(),
        })?;
        let (client, failure) = (AnswersClient::new(channel), Arc::default());
        Ok(Self { address, credentials, client, failure })
    }
}

/// A query to a remote collector.
pub(super) struct RemoteCollector {
    collector: Name,
    client: AnswersClient<Channel>,
    failure: Arc<Mutex<Option<Failure>>>,
    timeout_after: Duration,
    /// A collector of a simulation, which answers without a network.
    #[cfg(all(test, feature = "kafka"))]
    simulated: Option<Arc<Collector>>,
}

impl RemoteCollector {
    fn new(
        collector: Name,
        client: AnswersClient<Channel>,
        failure: Arc<Mutex<Option<Failure>>>,
    ) -> Self {
        Self {
            collector,
            client,
            failure,
            timeout_after: RESPONSE_TIMEOUT,
            #[cfg(all(test, feature = "kafka"))]
            simulated: None,
        }
    }

    /// A query to a collector of a simulation. Requires a runtime.
    #[cfg(all(test, feature = "kafka"))]
    pub(super) fn simulated(collector: Name, simulated: Arc<Collector>) -> Self {
        let client = AnswersClient::new(Channel::from_static("http://[::1]").connect_lazy());
        let new = Self::new(collector, client, Arc::default());
        Self { simulated: Some(simulated), ..new }
    }

    /// The query with this timeout, unless it has a shorter one.
    pub(super) fn within(self, timeout_after: Duration) -> Self {
        Self { timeout_after: timeout_after.min(self.timeout_after), ..self }
    }

    pub(super) async fn read<T: DeserializeOwned>(
        mut self,
        task: u64,
        what: What,
    ) -> Result<Vec<T>, QueryError> {
        let rows = self.rows(task, what).await?;
        let read = rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>();
        read.map_err(|why| self.away(format!("its response is not valid: {why}")))
    }

    pub(super) async fn one<T: DeserializeOwned>(
        self,
        task: u64,
        what: What,
    ) -> Result<T, QueryError> {
        let collector = self.collector.clone();
        let row = self.read(task, what).await?.pop();
        row.ok_or_else(|| QueryError::Away { collector, why: "its response is empty".to_owned() })
    }

    pub(super) async fn ask(mut self, task: u64, what: What) -> Result<Vec<String>, QueryError> {
        self.rows(task, what).await
    }

    /// The rows of the response, as JSON.
    async fn rows(&mut self, task: u64, what: What) -> Result<Vec<String>, QueryError> {
        #[cfg(all(test, feature = "kafka"))]
        if let Some(simulated) = &self.simulated {
            return rows(simulated, task, what).map_err(|status| self.away(reason(&status)));
        }
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
