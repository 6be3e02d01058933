//! Carrier of batches through Kafka.

mod answers;
mod outbox;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use prost::Message;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{Mutex as AsyncMutex, mpsc, watch};
use tokio::task::{JoinSet, block_in_place};
use tokio::time;
use tracing::info;

pub(crate) use outbox::{Outbox, Reaction};

use self::answers::ReadingTrouble;
use super::carrier::Destinations;
use super::{Carrier, CarrierTroubles, ChannelName, Error, SharedSpool};
use crate::kafka::v1::{Answer, Record};
use crate::kafka::{self, Cluster, OBSERVATIONS, Partition, Settings, Signer, key};
use crate::pki::Credentials;

/// Time without an answer of the collector after which it is a trouble.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the brokers are not connected to again after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// How often records that are due by time are looked for, and how often the number of partitions is read.
const TICK: Duration = Duration::from_secs(1);
const METADATA_INTERVAL: Duration = Duration::from_secs(60);

/// Max bytes of records that are written together. Brokers accept 1 MB by default, with the signatures.
const WRITE_BYTES: usize = 640 << 10;

/// Sends batches through Kafka.
pub struct Kafka {
    settings: Settings,
    signer: Mutex<Signer>,
    connection: AsyncMutex<Shared>,
    /// Receivers of answers.
    channels: Arc<Mutex<HashMap<ChannelName, UnboundedSender<Answer>>>>,
    /// The newest session known of each channel.
    sessions: Mutex<HashMap<ChannelName, u64>>,
    troubles: Arc<CarrierTroubles>,
    reading_trouble: ReadingTrouble,
    /// Placements of the tasks, if the controller sends them.
    destinations: Option<watch::Receiver<Arc<Destinations>>>,
    /// Reads the answers. Ends when this is dropped.
    _reader: JoinSet<()>,
}

/// What the deliveries of all tasks share.
#[derive(Default)]
struct Shared {
    connection: Option<Connection>,
    /// The last failure to connect: other deliveries have it, too, without an attempt of their own.
    failure: Option<(Instant, String)>,
}

/// A connection to the brokers.
struct Connection {
    cluster: Cluster,
    partitions: u32,
    read_at: Instant,
    open: HashMap<u32, Arc<Partition>>,
}

impl Kafka {
    /// Begins to read the answers of collectors.
    ///
    /// # Errors
    /// When the credentials cannot sign.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn new(
        settings: Settings,
        credentials: watch::Receiver<Credentials>,
        troubles: Arc<CarrierTroubles>,
    ) -> Result<Self, kafka::Error> {
        let channels = Arc::<Mutex<HashMap<_, UnboundedSender<_>>>>::default();
        let reading_trouble = ReadingTrouble::default();
        let mut reader = JoinSet::new();
        let signer = Mutex::new(Signer::new(credentials.clone())?);
        let registered = Arc::clone(&channels);
        let receive = move |answer: Answer| {
            let name = ChannelName { task: answer.task, point: answer.point };
            if let Some(channel) = registered.lock().get(&name) {
                // Without a receiver the delivery has just ended.
                let _ = channel.send(answer);
            }
        };
        let (trouble, logged) = (Arc::clone(&reading_trouble), troubles.logged().clone());
        reader.spawn(answers::follow(settings.clone(), credentials, trouble, logged, receive));
        Ok(Self {
            settings,
            signer,
            connection: AsyncMutex::default(),
            channels,
            sessions: Mutex::default(),
            troubles,
            reading_trouble,
            destinations: None,
            _reader: reader,
        })
    }

    /// Begins a new session when a task moves to another collector.
    pub(super) fn with_destinations(
        self,
        destinations: watch::Receiver<Arc<Destinations>>,
    ) -> Self {
        Self { destinations: Some(destinations), ..self }
    }

    /// Epoch of a task's placement; none if placements are not known.
    fn epoch(&self, task: u64) -> Option<u64> {
        let destinations = self.destinations.as_ref()?.borrow();
        Some(destinations.get(&task).map_or(0, |it| it.epoch))
    }

    /// The partition of a task, and the number of partitions.
    async fn partition(&self, task: u64) -> Result<(Arc<Partition>, u32), kafka::Error> {
        let mut shared = self.connection.lock().await;
        let now = Instant::now();
        let is_old = |it: &Connection| now.duration_since(it.read_at) >= METADATA_INTERVAL;
        let mut current = match shared.connection.take() {
            Some(current) => current,
            None => self.connect(&mut shared.failure).await?,
        };
        if is_old(&current) {
            let partitions = count(&current.cluster).await?;
            current = Connection { partitions, read_at: now, ..current };
        }
        let number = kafka::partition(task, current.partitions);
        let partition = match current.open.get(&number) {
            Some(open) => Arc::clone(open),
            None => {
                let opened = current.cluster.partition(OBSERVATIONS, number).await?;
                let opened = Arc::new(opened);
                current.open.insert(number, Arc::clone(&opened));
                opened
            }
        };
        let partitions = current.partitions;
        shared.connection = Some(current);
        Ok((partition, partitions))
    }

    /// Connects, unless this failed just before.
    async fn connect(
        &self,
        failure: &mut Option<(Instant, String)>,
    ) -> Result<Connection, kafka::Error> {
        if let Some((at, why)) = failure
            && at.elapsed() < RETRY_DELAY
        {
            return Err(kafka::Error::JustFailed(why.clone()));
        }
        let connected = async {
            let cluster = Cluster::connect(&self.settings).await?;
            let partitions = count(&cluster).await?;
            Ok((cluster, partitions))
        };
        let connected: Result<_, kafka::Error> = connected.await;
        *failure = connected.as_ref().err().map(|error| (Instant::now(), error.to_string()));
        let (cluster, partitions) = connected?;
        info!("connected to {}: {partitions} partitions", self.settings.name());
        Ok(Connection { cluster, partitions, read_at: Instant::now(), open: HashMap::new() })
    }

    /// Signs records and appends them.
    async fn append(
        &self,
        partition: &Partition,
        records: Vec<Record>,
    ) -> Result<(), kafka::Error> {
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            let (mut group, mut bytes) = (Vec::new(), 0);
            while let Some(record) = records.next_if(|it| {
                let own = it.encoded_len();
                bytes += own;
                group.is_empty() || bytes <= WRITE_BYTES
            }) {
                let value = self.signer.lock().sign(OBSERVATIONS, &record)?;
                group.push((key(record.task, record.point), value));
            }
            partition.append(group).await?;
        }
        Ok(())
    }

    /// Number of the next session of a channel. Clocks may be set back: an answer has the number to exceed.
    fn next_session(&self, name: ChannelName) -> u64 {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let micros = u64::try_from(since_1970.unwrap_or_default().as_micros()).unwrap_or(0);
        let mut sessions = self.sessions.lock();
        let newest = sessions.entry(name).or_default();
        *newest = micros.max(newest.saturating_add(1));
        *newest
    }

    /// Notes a session of another run of this probe, or of another probe with the same certificate.
    fn note_session(&self, name: ChannelName, session: u64) {
        let mut sessions = self.sessions.lock();
        let newest = sessions.entry(name).or_default();
        *newest = session.max(*newest);
    }

    async fn session(
        &self,
        spool: &SharedSpool,
        name: ChannelName,
        answers: &mut UnboundedReceiver<Answer>,
    ) -> Result<(), Error> {
        let (mut partition, partitions) = self.partition(name.task).await?;
        let mut grown = spool.subscribe(name);
        let begun = Instant::now();
        let session = self.next_session(name);
        let epoch = self.epoch(name.task);
        let mut outbox = block_in_place(|| Outbox::open(spool, name, epoch, session, begun))?;
        let mut checked_at = begun;
        loop {
            if self.epoch(name.task) != epoch {
                return Ok(());
            }
            while let Ok(answer) = answers.try_recv() {
                let reaction = block_in_place(|| outbox.receive(spool, &answer, Instant::now()))?;
                if let Reaction::Restart(session) = reaction {
                    self.note_session(name, session);
                    return Ok(());
                }
            }
            let now = Instant::now();
            if let Some(trouble) = self.trouble(&outbox, now) {
                self.troubles.set(name, trouble);
            } else if outbox.is_answered() {
                self.troubles.clear(name);
            }
            if now.duration_since(checked_at) >= METADATA_INTERVAL {
                let (current, count) = self.partition(name.task).await?;
                if count != partitions {
                    return Ok(());
                }
                (partition, checked_at) = (current, now);
            }
            let records = block_in_place(|| outbox.pending(spool, now))?;
            if !records.is_empty() {
                self.append(&partition, records).await?;
                continue;
            }
            tokio::select! {
                answer = answers.recv() => {
                    // The sender is registered until this call ends.
                    let Some(answer) = answer else { return Ok(()) };
                    let react = || outbox.receive(spool, &answer, Instant::now());
                    if let Reaction::Restart(session) = block_in_place(react)? {
                        self.note_session(name, session);
                        return Ok(());
                    }
                }
                // The sender is part of the spool.
                _ = grown.changed() => {}
                () = time::sleep(TICK) => {}
            }
        }
    }

    /// Why batches are not acknowledged: at once if acknowledgements cannot be read, otherwise after a minute.
    fn trouble(&self, outbox: &Outbox, now: Instant) -> Option<String> {
        if let Some(why) = &*self.reading_trouble.lock() {
            return Some(format!("nothing is delivered: {why}"));
        }
        let silence = outbox.unanswered_since().map(|at| now.duration_since(at));
        silence.filter(|it| *it >= ANSWER_TIMEOUT).map(|_| {
            format!(
                "nothing is delivered: no collector answers through {}; start the collector of the task with --kafka \
                 and the same brokers",
                self.settings.name()
            )
        })
    }
}

impl Carrier for Kafka {
    async fn carry(&self, spool: &SharedSpool, name: ChannelName) -> Result<(), Error> {
        let (sender, mut answers) = mpsc::unbounded_channel();
        self.channels.lock().insert(name, sender);
        let ended = self.session(spool, name, &mut answers).await;
        if let Err(Error::Kafka(error)) = &ended {
            if !matches!(error, kafka::Error::JustFailed(_)) {
                // The next call connects again.
                self.connection.lock().await.connection = None;
            }
            self.troubles.set(name, error.to_string());
        }
        ended
    }
}

async fn count(cluster: &Cluster) -> Result<u32, kafka::Error> {
    cluster.partitions(OBSERVATIONS).await?.ok_or(kafka::Error::NoTopic(OBSERVATIONS))
}
