//! Batches from Kafka: reads the partitions of this collector's tasks, and answers.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod incoming;
mod intake;
mod positions;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use prost::Message;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet, block_in_place};
use tokio::time;
use tracing::{info, warn};

use self::intake::Intake;
use self::positions::Positions;
use super::Collector;
use crate::DatabaseError;
use crate::authorizer::Authorizer;
use crate::kafka::v1::{Answers, Record};
use crate::kafka::{
    self, ANSWERS, Cluster, Error, Fetched, OBSERVATIONS, Partition, Row, Settings, Signer, Start,
    Verifier, task_and_point,
};
use crate::member::{Logged, Pause};
use crate::pki::{Credentials, Role};

/// Max bytes of batches of a partition that wait for the other points of their tasks.
const MAX_WAITING: usize = 64 << 20;

/// How often the number of partitions is read.
const METADATA_INTERVAL: Duration = Duration::from_secs(10);

/// Reads batches from Kafka.
pub(crate) struct Source {
    settings: Settings,
    collector: Arc<Collector>,
    authorizer: Arc<Authorizer>,
    credentials: watch::Receiver<Credentials>,
    positions: Mutex<Positions>,
    logged: Logged,
}

/// The reader of a partition.
struct Reader {
    source: Arc<Source>,
    /// The partition, and the number of partitions.
    number: u32,
    partitions: u32,
    intake: Intake,
    /// Offset of the next record; none if it is not known.
    next: Option<i64>,
    /// The stored position.
    stored: Option<i64>,
}

/// Reads batches from Kafka, if there is a source, forever.
pub(crate) async fn run(source: Option<Source>) {
    match source {
        Some(source) => source.run().await,
        None => std::future::pending().await,
    }
}

impl Source {
    /// Opens the database of the positions, in the folder of the collector.
    pub(crate) fn open(
        settings: Settings,
        folder: &Path,
        (collector, authorizer): (Arc<Collector>, Arc<Authorizer>),
        credentials: watch::Receiver<Credentials>,
    ) -> Result<Self, DatabaseError> {
        let positions = Mutex::new(Positions::open(&folder.join("kafka.sqlite"))?);
        collector.kafka_stats().count(|it| it.is_reading = true);
        let logged = Logged::default();
        Ok(Self { settings, collector, authorizer, credentials, positions, logged })
    }

    /// Reads, forever.
    pub(crate) async fn run(self) {
        let source = Arc::new(self);
        let mut pause = Pause::sharing(&source.logged);
        loop {
            let ended = Arc::clone(&source).read_all().await;
            source.count_failure(&ended);
            pause.after(ended).await;
        }
    }

    fn count_failure(&self, ended: &Result<(), Error>) {
        if ended.is_err() {
            self.collector.kafka_stats().count(|it| it.failures += 1);
        }
    }

    /// Creates the topics if they are missing, and reads the partitions of the tasks until the number of partitions
    /// changes.
    async fn read_all(self: Arc<Self>) -> Result<(), Error> {
        let cluster = Cluster::connect(&self.settings).await?;
        let partitions = cluster.create(OBSERVATIONS, self.settings.partitions).await?;
        cluster.create(ANSWERS, 1).await?;
        info!("reading from {}: {partitions} partitions", self.settings.name());
        if partitions != self.settings.partitions {
            info!(
                "{OBSERVATIONS} exists with {partitions} partitions; --kafka-partitions has no effect"
            );
        }
        let (mut tasks, mut removed) = (self.collector.tasks().clone(), self.collector.removed());
        let mut readers = JoinSet::new();
        let mut running: BTreeMap<u32, AbortHandle> = BTreeMap::new();
        let mut metadata = time::interval(METADATA_INTERVAL);
        loop {
            let numbers: Vec<u64> = tasks.borrow_and_update().keys().copied().collect();
            let ended: Vec<u64> = removed.borrow_and_update().iter().copied().collect();
            let tasks_of_all = numbers.into_iter().chain(ended);
            let wanted: BTreeSet<u32> =
                tasks_of_all.map(|task| kafka::partition(task, partitions)).collect();
            for (_, reader) in running.extract_if(.., |number, _| !wanted.contains(number)) {
                reader.abort();
            }
            for number in wanted {
                let start = || {
                    let reader = Reader::new(Arc::clone(&self), number, partitions);
                    readers.spawn(reader.run())
                };
                running.entry(number).or_insert_with(start);
            }
            tokio::select! {
                // The senders live as long as the node.
                changed = tasks.changed() => if changed.is_err() { return Ok(()) },
                changed = removed.changed() => if changed.is_err() { return Ok(()) },
                // A reader ends only by a panic, or when its partition is not needed any more.
                Some(ended) = readers.join_next() => {
                    if ended.is_err_and(|it| it.is_panic()) {
                        return Ok(());
                    }
                }
                _ = metadata.tick() => {
                    let now = cluster.partitions(OBSERVATIONS).await;
                    match now {
                        Ok(Some(now)) if now == partitions => {
                            if let Ok(None) = cluster.partitions(ANSWERS).await {
                                return Err(Error::NoTopic(ANSWERS));
                            }
                        }
                        Ok(Some(now)) => {
                            warn!("{OBSERVATIONS} has {now} partitions now, {partitions} before");
                            return Ok(());
                        }
                        // It is created again.
                        Ok(None) => return Err(Error::NoTopic(OBSERVATIONS)),
                        // The readers report what is wrong.
                        Err(_) => {}
                    }
                }
            }
        }
    }
}

impl Reader {
    fn new(source: Arc<Source>, number: u32, partitions: u32) -> Self {
        let intake = Intake::new(Arc::clone(&source.collector), MAX_WAITING);
        Self { source, number, partitions, intake, next: None, stored: None }
    }

    /// Reads the partition, forever.
    async fn run(mut self) {
        let mut pause = Pause::sharing(&self.source.logged);
        loop {
            let ended = self.read().await;
            self.source.count_failure(&ended);
            pause.after(ended).await;
        }
    }

    /// Reads until an error.
    async fn read(&mut self) -> Result<(), Error> {
        let source = Arc::clone(&self.source);
        let cluster = Cluster::connect(&source.settings).await?;
        let number = self.number;
        let partition = cluster.partition(OBSERVATIONS, number).await?;
        let answers = cluster.partition(ANSWERS, 0).await?;
        let mut signer = Signer::new(source.credentials.clone())?;
        let mut verifier = Verifier::new(source.credentials.clone())?;
        loop {
            let from = self.begin(&partition).await?;
            let (rows, next) = match partition.read(from).await? {
                Fetched::Rows(rows, next) => (rows, next),
                Fetched::Unreadable(why) => {
                    self.unreadable(from, &why);
                    (Vec::new(), from.saturating_add(1))
                }
                Fetched::Discontinued => {
                    let earliest = partition.offset(Start::Earliest).await?;
                    warn!(
                        "partition {number} of {OBSERVATIONS} does not continue at offset {from}: records were \
                         deleted or lost; reading from {earliest}, and probes send again what is missing"
                    );
                    self.next = Some(earliest);
                    continue;
                }
            };
            block_in_place(|| {
                let mut positions = source.positions.lock();
                let take = |row| self.take(&mut positions, &mut verifier, row);
                rows.into_iter().try_for_each(take)?;
                self.intake.advance_all(&mut positions)
            })?;
            self.next = Some(next);
            let due = self.intake.answers(Timestamp::now().as_nanosecond().try_into().unwrap_or(0));
            if !due.is_empty() {
                let record = signer.sign(ANSWERS, &Answers { answers: due })?;
                let key = number.to_be_bytes().to_vec();
                if let Err(error) = answers.append(vec![(key, record)]).await {
                    self.intake.answer_again();
                    return Err(error);
                }
            }
            self.store(next)?;
        }
    }

    /// Offset of the next record to read.
    async fn begin(&mut self, partition: &Partition) -> Result<i64, Error> {
        if let Some(next) = self.next {
            return Ok(next);
        }
        let needed = || self.source.positions.lock().needed(self.number, self.partitions);
        self.stored = block_in_place(needed)?;
        let next = match self.stored {
            Some(stored) => stored,
            // Probes send batches only after they have received an answer.
            None => partition.offset(Start::Latest).await?,
        };
        self.next = Some(next);
        Ok(next)
    }

    /// Takes a record, if it is of a task of this collector and authentic.
    fn take(
        &mut self,
        positions: &mut Positions,
        verifier: &mut Verifier,
        row: Row,
    ) -> Result<(), DatabaseError> {
        let Row { offset, key, value } = row;
        let stats = self.source.collector.kafka_stats();
        let Some(point) = task_and_point(&key) else {
            self.unreadable(offset, "its key is not a task and a point");
            return Ok(());
        };
        if !self.intake.is_own(point.0) {
            return Ok(());
        }
        let verified = verifier.verify(OBSERVATIONS, &value, &[Role::Probe], Instant::now());
        let (probe, serial, body) = match verified {
            Ok(verified) => verified,
            Err(why) => {
                stats.count(|it| it.forged += 1);
                self.log_ignored(offset, &format!("for task {}, {why}", point.0));
                return Ok(());
            }
        };
        if let Err(why) = self.source.authorizer.check(&probe, serial) {
            stats.count(|it| it.forged += 1);
            self.log_ignored(offset, &format!("for task {}, {why}", point.0));
            return Ok(());
        }
        match Record::decode(body.as_slice()) {
            Ok(record) if (record.task, record.point) == point => {
                self.intake.take(positions, offset, &probe.name, record)
            }
            _ => {
                self.unreadable(offset, "it cannot be decoded");
                Ok(())
            }
        }
    }

    fn unreadable(&self, offset: i64, why: &str) {
        self.source.collector.kafka_stats().count(|it| it.unreadable += 1);
        self.log_ignored(offset, why);
    }

    /// Logs the first of the records that are ignored for the same reason: a topic can be full of them.
    fn log_ignored(&self, offset: i64, why: &str) {
        let number = self.number;
        if self.source.logged.is_new(&format!("{number}: {why}"), Instant::now()) {
            warn!(
                "ignored record {offset} of partition {number} of {OBSERVATIONS}: {why}; the next ones are only counted"
            );
        }
    }

    /// Stores the first offset that is still needed.
    fn store(&mut self, next: i64) -> Result<(), Error> {
        let needed = self.intake.needed(next);
        if self.stored != Some(needed) {
            let store = || {
                let mut positions = self.source.positions.lock();
                positions.set_needed(self.number, self.partitions, needed)
            };
            block_in_place(store)?;
            self.stored = Some(needed);
        }
        Ok(())
    }
}
