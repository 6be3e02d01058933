//! Connections to the brokers: a thin layer over the client library.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rskafka::BackoffConfig;
use rskafka::chrono::{DateTime, Utc};
use rskafka::client::error::{Error as ClientError, ProtocolError, RequestError};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::{Record, RecordAndOffset};
use tokio::time;

use super::error::cause;
use super::{Error, Settings};

/// The library retries for this long; its delays.
const RETRIES: Duration = Duration::from_secs(5);
const MIN_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(1);

/// Timeout of each request with its retries: the library has none for brokers that do not answer. A write waits until a
/// broker that failed is no longer among the in-sync replicas: 9 s by default (`broker.session.timeout.ms`).
const TIMEOUT: Duration = Duration::from_secs(15);

/// How long a broker waits for new records, in milliseconds.
const MAX_WAIT_MS: i32 = 500;

/// Max bytes of records in a response: normally, and after a response that could not be decoded. The first batch of records
/// comes whole.
const FETCH_BYTES: [i32; 3] = [4 << 20, 64 << 10, 1];

/// Replicas of new topics: as many of these as the cluster has brokers for.
const REPLICAS: [i16; 3] = [3, 2, 1];

/// Time for the creation of a topic, in milliseconds.
const CREATION_MS: i32 = 10_000;

/// A connection to a cluster.
pub(crate) struct Cluster {
    client: Client,
    name: Arc<str>,
}

/// The connection to the broker that leads a partition.
pub(crate) struct Partition {
    client: PartitionClient,
    name: Arc<str>,
}

/// A record.
pub(crate) struct Row {
    pub(crate) offset: i64,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// What a read returned.
pub(crate) enum Fetched {
    /// Records, and the offset after them. Without records if there are none yet.
    Rows(Vec<Row>, i64),
    /// There are no records at this offset: they were deleted, or the partition was lost and began again.
    Discontinued,
    /// The record at this offset cannot be decoded, with the reason.
    Unreadable(String),
}

/// Where to begin to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the first record that exists.
    Earliest,
    /// With the next record.
    Latest,
}

impl Cluster {
    pub(crate) async fn connect(settings: &Settings) -> Result<Self, Error> {
        let backoff = BackoffConfig {
            init_backoff: MIN_DELAY,
            max_backoff: MAX_DELAY,
            deadline: Some(RETRIES),
            ..BackoffConfig::default()
        };
        let name: Arc<str> = settings.name().into();
        let mut builder = ClientBuilder::new(settings.brokers.clone())
            .client_id("wirestamp")
            .backoff_config(backoff);
        if let Some(tls) = settings.tls()? {
            builder = builder.tls_config(tls);
        }
        if let Some(sasl) = settings.sasl() {
            builder = builder.sasl_config(sasl);
        }
        let client = within(builder.build()).await;
        let client = client.map_err(|cause| request("connect to", &name, cause))?;
        Ok(Self { client, name })
    }

    /// Number of partitions of a topic; none if it does not exist.
    pub(crate) async fn partitions(&self, topic: &str) -> Result<Option<u32>, Error> {
        let topics = within(self.client.list_topics()).await;
        let topics = topics.map_err(|cause| request("list the topics of", &self.name, cause))?;
        let found = topics.iter().find(|it| it.name == topic);
        Ok(found.and_then(|it| u32::try_from(it.partitions.len()).ok()).filter(|it| *it > 0))
    }

    /// Creates a topic unless it exists. Returns its number of partitions.
    pub(crate) async fn create(&self, topic: &'static str, partitions: u32) -> Result<u32, Error> {
        if let Some(found) = self.partitions(topic).await? {
            return Ok(found);
        }
        let failed = |error: &ClientError| {
            request(&format!("create the topic {topic} in"), &self.name, cause(error))
        };
        let controller = self.client.controller_client().map_err(|error| failed(&error))?;
        let count = i32::try_from(partitions.max(1)).unwrap_or(i32::MAX);
        for replicas in REPLICAS {
            let creation = controller.create_topic(topic, count, replicas, CREATION_MS);
            let created = time::timeout(TIMEOUT, creation).await;
            match created.unwrap_or(Err(ClientError::Timeout)) {
                Ok(()) => break,
                Err(error) if is(&error, ProtocolError::TopicAlreadyExists) => break,
                Err(error)
                    if is(&error, ProtocolError::InvalidReplicationFactor) && replicas > 1 => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(self.partitions(topic).await?.unwrap_or(partitions))
    }

    pub(crate) async fn partition(&self, topic: &str, number: u32) -> Result<Partition, Error> {
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        let client = self.client.partition_client(topic, number, UnknownTopicHandling::Error);
        let client = within(client).await.map_err(|cause| {
            request(&format!("reach partition {number} of {topic} in"), &self.name, cause)
        })?;
        Ok(Partition { client, name: Arc::clone(&self.name) })
    }
}

impl Partition {
    /// Appends records, and waits until all in-sync replicas have them.
    pub(crate) async fn append(&self, records: Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), Error> {
        let now = timestamp();
        let record = |(key, value)| Record {
            key: Some(key),
            value: Some(value),
            headers: BTreeMap::new(),
            timestamp: now,
        };
        let records = records.into_iter().map(record).collect();
        let produced = within(self.client.produce(records, Compression::NoCompression)).await;
        produced.map_err(|cause| self.failed("write to", cause))?;
        Ok(())
    }

    /// Records from an offset on. Waits a moment if there is none yet.
    pub(crate) async fn read(&self, offset: i64) -> Result<Fetched, Error> {
        let mut why = String::new();
        // One batch that cannot be decoded makes all others of a response unreadable: fewer are read then.
        for bytes in FETCH_BYTES {
            match self.fetch(offset, bytes).await {
                Err(error) if is_undecodable(&error) => why = cause(&error),
                fetched => return self.fetched(offset, fetched).await,
            }
        }
        Ok(Fetched::Unreadable(why))
    }

    /// Requests records of about this many bytes; the first batch of records comes whole. Also returns the offset after
    /// the last record of the partition.
    async fn fetch(
        &self,
        offset: i64,
        bytes: i32,
    ) -> Result<(Vec<RecordAndOffset>, i64), ClientError> {
        let request = self.client.fetch_records(offset, 1..bytes + 1, MAX_WAIT_MS);
        time::timeout(TIMEOUT, request).await.unwrap_or(Err(ClientError::Timeout))
    }

    async fn fetched(
        &self,
        offset: i64,
        fetched: Result<(Vec<RecordAndOffset>, i64), ClientError>,
    ) -> Result<Fetched, Error> {
        let (records, end) = match fetched {
            Ok(fetched) => fetched,
            Err(error) if is(&error, ProtocolError::OffsetOutOfRange) => {
                return Ok(Fetched::Discontinued);
            }
            Err(error) => return Err(self.failed("read from", cause(&error))),
        };
        let next = match records.last() {
            Some(last) => last.offset.saturating_add(1),
            // At this offset there is no record but the end of a transaction, or a batch of records without content.
            None if end > offset && self.offset(Start::Latest).await? > offset => {
                offset.saturating_add(1)
            }
            None => offset,
        };
        let row = |it: RecordAndOffset| Row {
            offset: it.offset,
            key: it.record.key.unwrap_or_default(),
            value: it.record.value.unwrap_or_default(),
        };
        Ok(Fetched::Rows(records.into_iter().map(row).collect(), next))
    }

    /// Offset of the first or the next record.
    pub(crate) async fn offset(&self, start: Start) -> Result<i64, Error> {
        let at = match start {
            Start::Earliest => OffsetAt::Earliest,
            Start::Latest => OffsetAt::Latest,
        };
        let offset = within(self.client.get_offset(at)).await;
        offset.map_err(|cause| self.failed("read the offsets of", cause))
    }

    fn failed(&self, action: &str, cause: String) -> Error {
        let (topic, number) = (self.client.topic(), self.client.partition());
        request(&format!("{action} partition {number} of {topic} in"), &self.name, cause)
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}

fn is(error: &ClientError, expected: ProtocolError) -> bool {
    matches!(error, ClientError::ServerError { protocol_error, .. } if *protocol_error == expected)
}

/// Whether records of a response cannot be decoded.
fn is_undecodable(error: &ClientError) -> bool {
    use RequestError::{ReadError, ReadVersionedError, TooMuchData};
    match error {
        // Others of this kind are about the metadata of a topic.
        ClientError::InvalidResponse(why) => why.to_lowercase().contains("timestamp"),
        ClientError::Request(error) => {
            matches!(error, ReadError(_) | ReadVersionedError(_) | TooMuchData { .. })
        }
        _ => false,
    }
}

fn request(action: &str, cluster: &str, cause: String) -> Error {
    Error::Request { action: action.to_owned(), cluster: cluster.to_owned(), cause }
}

/// The result of a request, with a timeout.
async fn within<T>(request: impl Future<Output = Result<T, ClientError>>) -> Result<T, String> {
    match time::timeout(TIMEOUT, request).await {
        Ok(result) => result.map_err(|error| cause(&error)),
        Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
    }
}

/// The current time. Kafka deletes records by it.
fn timestamp() -> DateTime<Utc> {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(millis).unwrap_or_default()
}
