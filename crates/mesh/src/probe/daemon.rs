//! The probe process.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::{self, JoinHandle, JoinSet, block_in_place};
use tokio::time;
use tracing::{info, warn};
use wirestamp_capture::LiveLedger;
use wirestamp_clock::{ClockService, Counter, Span, SyncStatus, Time, utc_error};

use super::assignment_store::{AssignmentStore, CurrentWork};
use super::assignment_stream::exchange;
use super::carrier::Destinations;
use super::clock_sources::SharedClockSources;
use super::deliver::RESTORED;
use super::deliveries::Deliveries;
#[cfg(feature = "kafka")]
use super::kafka::Kafka;
use super::machine::{Machine, memory, processor_time};
use super::runner::Runner;
use super::test_stats::TestStats;
use super::{Carrier, CarrierTroubles, ChannelName, Direct, Error, SharedSpool, troubles};
use crate::Name;
use crate::member::{Member, Pause};
use crate::pki::{Role, Token};
use crate::spool::Spool;
use crate::v1::{self, Assignment, Capture, ClockOffset, Report, Trouble};

/// Settings of a probe.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The controller's address, `HOST:PORT`.
    pub controller: String,
    /// State folder.
    pub folder: PathBuf,
    /// Enrolment token, if the probe is not enrolled yet.
    pub token: Option<Token>,
    /// Max size of the spool, in bytes.
    pub spool_bytes: u64,
}

/// Delay before a capture is restarted, before failed work is retried, and between checks of the running work.
const RESTART_DELAY: Duration = Duration::from_secs(1);
const RETRY_DELAY: Duration = Duration::from_secs(5);
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// An enrolled probe.
pub struct Probe {
    member: Arc<Member>,
    spool: Arc<SharedSpool>,
    duties: AssignmentStore,
    runner: Runner,
    state: Arc<State>,
    /// The cluster through which it delivers, instead of connections to the collectors.
    #[cfg(feature = "kafka")]
    kafka: Option<crate::kafka::Settings>,
}

/// State shared with the reports to the controller.
struct State {
    spool: Arc<SharedSpool>,
    clock_sources: SharedClockSources,
    captures: Mutex<Vec<(String, Arc<LiveLedger>)>>,
    stats: Mutex<Vec<(ChannelName, Arc<TestStats>)>>,
    troubles: Mutex<Vec<Trouble>>,
    carrier_troubles: Arc<CarrierTroubles>,
    /// Whether batches may be delivered: not while another probe with the same certificate is connected.
    is_admitted: watch::Sender<bool>,
    /// Whether the controller has refused this probe since it started.
    was_excluded: AtomicBool,
}

impl Probe {
    /// Opens the probe's files and enrols it if necessary.
    ///
    /// # Errors
    /// When a file cannot be used, or the controller rejects the probe.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let Settings { controller, folder, token, spool_bytes } = settings;
        let file = folder.join("probe.pem");
        let member = Member::open(controller, file, token.as_ref(), Role::Probe).await?;
        let spool = Spool::open(&folder.join("spool.sqlite"), spool_bytes)?;
        let spool = Arc::new(SharedSpool::new(spool));
        let duties = AssignmentStore::open(folder.join("duties"));
        let clock =
            ClockService::start(Counter::select()).map_err(|it| Error::Clock(it.to_string()))?;
        let machine = Machine::new().map_err(Error::Machine)?;
        let clock_sources = machine.clock_sources().clone();
        let runner = Runner::new(clock, machine, Arc::clone(&spool))?;
        let state = Arc::new(State {
            spool: Arc::clone(&spool),
            clock_sources,
            captures: Mutex::default(),
            stats: Mutex::default(),
            troubles: Mutex::default(),
            carrier_troubles: Arc::default(),
            is_admitted: watch::Sender::new(false),
            was_excluded: AtomicBool::new(false),
        });
        Ok(Self {
            member: Arc::new(member),
            spool,
            duties,
            runner,
            state,
            #[cfg(feature = "kafka")]
            kafka: None,
        })
    }

    /// Delivers through Kafka instead of connections to the collectors.
    #[cfg(feature = "kafka")]
    #[must_use]
    pub fn with_kafka(self, settings: crate::kafka::Settings) -> Self {
        Self { kafka: Some(settings), ..self }
    }

    /// Name of the probe.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.member.name()
    }

    /// Measures until `stop` completes. Undelivered batches stay in the spool.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send + 'static) {
        let ending = self.runner.ending();
        // Takes effect even while the disk is full.
        let stop = task::spawn(async move {
            stop.await;
            ending.store(true, Ordering::Relaxed);
        });
        let assignments = Arc::new(watch::Sender::new(None));
        let mut work = JoinSet::new();
        let sender = Arc::clone(&assignments);
        work.spawn(keep_attending(Arc::clone(&self.member), Arc::clone(&self.state), sender));
        work.spawn(self.state.clock_sources.clone().query_periodically());
        let member = Arc::clone(&self.member);
        work.spawn(async move { member.stay().await });
        let destinations = watch::Sender::new(Arc::new(self.duties.destinations()));
        #[cfg(feature = "kafka")]
        if let Some(settings) = self.kafka.take() {
            let troubles = Arc::clone(&self.state.carrier_troubles);
            match Kafka::new(settings, self.member.credentials(), troubles) {
                Ok(carrier) => {
                    let carrier = carrier.with_destinations(destinations.subscribe());
                    self.measure(assignments.subscribe(), stop, carrier, destinations).await;
                }
                Err(error) => warn!("cannot deliver through Kafka: {error}"),
            }
            work.shutdown().await;
            return block_in_place(|| self.runner.end());
        }
        let (controller, credentials) =
            (self.member.controller().to_owned(), self.member.credentials());
        let carrier = Direct::new(controller, credentials, destinations.subscribe());
        self.measure(assignments.subscribe(), stop, carrier, destinations).await;
        work.shutdown().await;
        block_in_place(|| self.runner.end());
    }

    /// Starts and stops measurements whenever the assignment or the schedule changes.
    async fn measure(
        &mut self,
        mut assignments: watch::Receiver<Option<Assignment>>,
        mut stop: JoinHandle<()>,
        carrier: impl Carrier,
        destinations: watch::Sender<Arc<Destinations>>,
    ) {
        let mut ended = self.runner.ended();
        let is_admitted = self.state.is_admitted.subscribe();
        let logged = self.state.carrier_troubles.logged().clone();
        let mut deliveries = Deliveries::new(carrier, Arc::clone(&self.spool), is_admitted, logged);
        loop {
            let assignment = assignments.borrow_and_update().clone();
            if let Some(assignment) = assignment {
                let count = assignment.duties.len();
                if self.duties.replace(assignment) {
                    info!("{} assigned", tasks(count));
                    destinations.send_replace(Arc::new(self.duties.destinations()));
                }
            }
            let now = Timestamp::now();
            let CurrentWork { wanted, tests, next, mut troubles } =
                self.duties.now(self.member.name(), now);
            troubles.extend(block_in_place(|| self.runner.reconcile(&wanted, &tests)));
            let looking = wanted.values().flat_map(|specs| specs.keys());
            let at = Instant::now();
            deliveries.need(looking.chain(tests.keys()).copied(), at);
            // If the spool cannot be read, it is not known which deliveries are needed.
            if let Ok(held) = block_in_place(|| self.spool.channels()) {
                deliveries.need(held, at);
                deliveries.end_unneeded(at);
            }
            let has_failed = !troubles.is_empty();
            self.state.update(&self.runner, troubles);
            let until_next = next.map(|next| until(next, now));
            let retry = has_failed.then_some(RETRY_DELAY);
            let pause = until_next.into_iter().chain(retry).chain([CHECK_INTERVAL]).min();
            tokio::select! {
                _ = &mut stop => break,
                // The sender of these channels lives as long as the probe.
                _ = assignments.changed() => {}
                _ = ended.changed() => time::sleep(RESTART_DELAY).await,
                () = time::sleep(pause.unwrap_or(CHECK_INTERVAL)) => {}
            }
        }
        deliveries.end().await;
    }
}

impl State {
    /// Updates the state that is reported.
    fn update(&self, runner: &Runner, troubles: Vec<(ChannelName, String)>) {
        let troubles = troubles.into_iter();
        let troubles = troubles.map(|(name, why)| Trouble { task: name.task, why });
        *self.captures.lock() = runner.ledgers();
        *self.stats.lock() = runner.stats();
        *self.troubles.lock() = troubles.collect();
    }

    /// Current counts of the captures.
    fn captures(&self) -> Vec<Capture> {
        let captures = self.captures.lock();
        captures.iter().map(account).collect()
    }

    /// Current clock offsets measured by the senders of tests.
    fn clock_offsets(&self) -> Vec<ClockOffset> {
        let Ok(now) = Time::try_from(SystemTime::now()) else { return Vec::new() };
        let stats = self.stats.lock();
        let best = stats.iter().filter_map(|(name, stats)| {
            let best = stats.exchanges().best(now)?;
            Some(ClockOffset {
                task: name.task,
                at: best.at.as_nanos(),
                ahead: best.ahead.as_nanos(),
                bound: unsigned(best.bound),
                own_error: best.own.map(unsigned),
                their_error: best.theirs.map(unsigned),
            })
        });
        best.collect()
    }

    /// The controller has accepted this probe.
    fn admit(&self) {
        let is_new = !*self.is_admitted.borrow();
        if is_new && self.was_excluded.load(Ordering::Relaxed) {
            // What was observed until now, the other probe with the same certificate has observed, too.
            let marked = block_in_place(|| self.spool.mark());
            drop(marked.inspect_err(|error| warn!("cannot read the spool: {error}")));
        }
        self.is_admitted.send_replace(true);
    }

    fn troubles(&self) -> Vec<Trouble> {
        let restored = self.spool.restored();
        let restored = restored.map(|task| Trouble { task, why: RESTORED.to_owned() });
        let failure = self.spool.failure().map(|(task, error)| {
            let why = format!("observations are kept in memory, they cannot be written: {error}");
            Trouble { task, why }
        });
        let undelivered = self.carrier_troubles.current().into_iter();
        let undelivered = undelivered.map(|(task, why)| Trouble { task, why });
        let all = restored.into_iter().chain(failure).chain(undelivered);
        let all = all.chain(self.troubles.lock().clone());
        troubles::shortened(all.collect())
    }

    fn report(&self) -> Report {
        let statuses = self.clock_sources.statuses();
        let known = utc_error(&statuses).ok();
        Report {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            clock: "CLOCK_REALTIME".to_owned(),
            synchronised: known.is_some(),
            clock_error: known.map_or(0, unsigned),
            processor_time: processor_time(),
            memory: memory(),
            held: block_in_place(|| self.spool.bytes()),
            captures: self.captures(),
            troubles: self.troubles(),
            clock_sources: statuses.iter().map(sync_status).collect(),
            clock_offsets: self.clock_offsets(),
            tests: self.stats.lock().iter().map(|(name, it)| it.account(*name)).collect(),
            instance: self.spool.instance,
        }
    }
}

fn sync_status(status: &SyncStatus) -> v1::SyncStatus {
    v1::SyncStatus {
        clock_source: status.clock_source.name().to_owned(),
        reference: status.reference.clone(),
        stratum: status.stratum.map(u32::from),
        offset: status.offset.as_nanos(),
        error: status.error.map(unsigned),
    }
}

/// For bounds, which are never negative.
fn unsigned(span: Span) -> u64 {
    span.as_nanos().unsigned_abs()
}

fn account((interface, ledger): &(String, Arc<LiveLedger>)) -> Capture {
    let ledger = ledger.snapshot();
    Capture { interface: interface.clone(), packets: ledger.seen, lost: ledger.lost() }
}

/// Keeps the stream to the controller open.
async fn keep_attending(
    member: Arc<Member>,
    state: Arc<State>,
    sender: Arc<watch::Sender<Option<Assignment>>>,
) {
    let mut pause = Pause::new();
    let node = format!("the controller at {}", member.controller());
    loop {
        let attended = match member.call() {
            Ok(channel) => {
                exchange(channel, &node, || state.report(), &sender, || state.admit()).await
            }
            Err(error) => Err(error.into()),
        };
        // Without the controller, collectors still receive batches, but not those of a probe that it has refused.
        let is_excluded = attended.as_ref().is_err_and(Error::is_excluded);
        let was_excluded = state.was_excluded.fetch_or(is_excluded, Ordering::Relaxed);
        if is_excluded || !was_excluded {
            state.is_admitted.send_replace(!is_excluded);
        }
        let is_revoked = attended.as_ref().is_err_and(Error::is_revoked);
        pause.after(attended).await;
        if is_revoked {
            // It measures nothing until it has joined again.
            sender.send_if_modified(|it| it.replace(Assignment::default()) != *it);
            match member.rejoin().await {
                Ok(true) => pause = Pause::new(),
                Ok(false) => {}
                Err(error) => pause.after(Err(error)).await,
            }
        }
    }
}

fn until(next: Timestamp, now: Timestamp) -> Duration {
    // A time in the past gives zero.
    Duration::try_from(next.duration_since(now)).unwrap_or_default()
}

fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}
