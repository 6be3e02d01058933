//! A probe at work.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::{self, JoinHandle, JoinSet, block_in_place};
use tokio::time;
use tracing::info;
use wirestamp_capture::LiveLedger;
use wirestamp_clock::{ClockService, Counter, Span, SyncStatus, Time, utc_error};

use super::attend::attend;
use super::clock_sources::SharedClockSources;
use super::duties::{Duties, Now};
use super::heard::Heard;
use super::machine::{Machine, memory, processor_time};
use super::runner::Runner;
use super::{Carrier, ChannelName, Direct, Error, Stock};
use crate::Name;
use crate::member::{Member, Pause};
use crate::pki::{Role, Token};
use crate::spool::Spool;
use crate::v1::{self, Assignment, Capture, ClockOffset, Report, Trouble};

/// What a probe needs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The controller's address, `HOST:PORT`.
    pub controller: String,
    /// The folder that it keeps everything in.
    pub folder: PathBuf,
    /// What lets it in, if it was not let in before.
    pub token: Option<Token>,
    /// How many bytes it holds for the collector at the most.
    pub spool_bytes: u64,
}

/// How long it waits before it captures again where that has ended, before it tries again what did not work, and
/// before it looks again whether everything is as it should be.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A probe that was let in.
pub struct Probe {
    member: Arc<Member>,
    stock: Arc<Stock>,
    duties: Duties,
    runner: Runner,
    state: Arc<State>,
}

/// What others look at.
struct State {
    stock: Arc<Stock>,
    clock_sources: SharedClockSources,
    captures: Mutex<Vec<(String, Arc<LiveLedger>)>>,
    heard: Mutex<Vec<(ChannelName, Arc<Heard>)>>,
    troubles: Mutex<Vec<Trouble>>,
}

impl Probe {
    /// Opens its files, and has itself let in if it was not before.
    ///
    /// # Errors
    /// When a file cannot be used, or the controller does not let it in.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let Settings { controller, folder, token, spool_bytes } = settings;
        let file = folder.join("probe.pem");
        let member = Member::open(controller, file, token.as_ref(), Role::Probe).await?;
        let spool = Spool::open(&folder.join("spool.sqlite"), spool_bytes)?;
        let stock = Arc::new(Stock::new(spool));
        let duties = Duties::open(folder.join("duties"));
        let clock =
            ClockService::start(Counter::select()).map_err(|it| Error::Clock(it.to_string()))?;
        let machine = Machine::new().map_err(Error::Machine)?;
        let clock_sources = machine.clock_sources().clone();
        let runner = Runner::new(clock, machine, Arc::clone(&stock))?;
        let state = Arc::new(State {
            stock: Arc::clone(&stock),
            clock_sources,
            captures: Mutex::default(),
            heard: Mutex::default(),
            troubles: Mutex::default(),
        });
        Ok(Self { member: Arc::new(member), stock, duties, runner, state })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.member.name()
    }

    /// Measures until it is told to stop; then what it holds stays for the next time.
    pub async fn run(mut self, stop: impl Future<Output = ()> + Send + 'static) {
        let ending = self.runner.ending();
        // Heard also while everything waits for a disk that is full.
        let stop = task::spawn(async move {
            stop.await;
            ending.store(true, Ordering::Relaxed);
        });
        let assignments = Arc::new(watch::Sender::new(None));
        let mut work = JoinSet::new();
        let told = Arc::clone(&assignments);
        work.spawn(attend_for_ever(Arc::clone(&self.member), Arc::clone(&self.state), told));
        work.spawn(self.state.clock_sources.clone().query_periodically());
        let member = Arc::clone(&self.member);
        work.spawn(async move { member.stay().await });
        self.measure(assignments.subscribe(), &mut work, stop).await;
        work.shutdown().await;
        block_in_place(|| self.runner.end());
    }

    /// Lets run what is to be measured now, whenever that changes.
    async fn measure(
        &mut self,
        mut assignments: watch::Receiver<Option<Assignment>>,
        work: &mut JoinSet<()>,
        mut stop: JoinHandle<()>,
    ) {
        let mut ended = self.runner.ended();
        let mut delivered = BTreeSet::new();
        let destinations = watch::Sender::new(Arc::new(self.duties.destinations()));
        let (controller, credentials) =
            (self.member.controller().to_owned(), self.member.credentials());
        let carrier = Arc::new(Direct::new(controller, credentials, destinations.subscribe()));
        loop {
            let assignment = assignments.borrow_and_update().clone();
            if let Some(assignment) = assignment {
                let count = assignment.duties.len();
                if self.duties.replace(assignment) {
                    info!("has {} to measure", tasks(count));
                    destinations.send_replace(Arc::new(self.duties.destinations()));
                }
            }
            let now = Timestamp::now();
            let Now { wanted, tests, next, mut troubles } =
                self.duties.now(self.member.name(), now);
            troubles.extend(block_in_place(|| self.runner.reconcile(&wanted, &tests)));
            let held = block_in_place(|| self.stock.channels()).unwrap_or_default();
            let looking = wanted.values().flat_map(|sights| sights.keys());
            for name in looking.chain(tests.keys()).copied().chain(held) {
                if delivered.insert(name) {
                    let (carrier, stock) = (Arc::clone(&carrier), Arc::clone(&self.stock));
                    work.spawn(deliver_for_ever(carrier, stock, name));
                }
            }
            let has_failed = !troubles.is_empty();
            self.state.tell(&self.runner, troubles);
            let until_next = next.map(|next| until(next, now));
            let retry = has_failed.then_some(RETRY);
            let pause = until_next.into_iter().chain(retry).chain([LONGEST_PAUSE]).min();
            tokio::select! {
                _ = &mut stop => return,
                // What tells of these is there as long as the probe.
                _ = assignments.changed() => {}
                _ = ended.changed() => time::sleep(FIRST_PAUSE).await,
                () = time::sleep(pause.unwrap_or(LONGEST_PAUSE)) => {}
            }
        }
    }
}

impl State {
    /// What is said of the probe from now on.
    fn tell(&self, runner: &Runner, troubles: Vec<(ChannelName, String)>) {
        let troubles = troubles.into_iter();
        let troubles = troubles.map(|(name, why)| Trouble { task: name.task, why });
        *self.captures.lock().unwrap_or_else(PoisonError::into_inner) = runner.ledgers();
        *self.heard() = runner.heard();
        *self.troubles.lock().unwrap_or_else(PoisonError::into_inner) = troubles.collect();
    }

    /// What the captures have counted by now.
    fn captures(&self) -> Vec<Capture> {
        let captures = self.captures.lock().unwrap_or_else(PoisonError::into_inner);
        captures.iter().map(account).collect()
    }

    fn heard(&self) -> MutexGuard<'_, Vec<(ChannelName, Arc<Heard>)>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the senders of tests have heard of other clocks by now.
    fn clock_offsets(&self) -> Vec<ClockOffset> {
        let Ok(now) = Time::try_from(SystemTime::now()) else { return Vec::new() };
        let heard = self.heard();
        let best = heard.iter().filter_map(|(name, heard)| {
            let best = heard.exchanges().best(now)?;
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
            held: block_in_place(|| self.stock.bytes()),
            captures: self.captures(),
            troubles: self.troubles.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            clock_sources: statuses.iter().map(sync_status).collect(),
            clock_offsets: self.clock_offsets(),
            tests: self.heard().iter().map(|(name, it)| it.account(*name)).collect(),
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

/// Of a bound, which is not negative.
fn unsigned(span: Span) -> u64 {
    span.as_nanos().unsigned_abs()
}

fn account((interface, ledger): &(String, Arc<LiveLedger>)) -> Capture {
    let ledger = ledger.glance();
    Capture { interface: interface.clone(), packets: ledger.seen, lost: ledger.lost() }
}

/// Attends to the controller, again and again.
async fn attend_for_ever(
    member: Arc<Member>,
    state: Arc<State>,
    told: Arc<watch::Sender<Option<Assignment>>>,
) {
    let mut pause = Pause::new();
    let node = format!("the controller at {}", member.controller());
    loop {
        let attended = match member.call() {
            Ok(channel) => attend(channel, &node, || state.report(), &told).await,
            Err(error) => Err(error.into()),
        };
        pause.after(attended).await;
    }
}

/// Delivers a channel, again and again.
async fn deliver_for_ever(carrier: Arc<impl Carrier>, stock: Arc<Stock>, name: ChannelName) {
    let mut pause = Pause::new();
    loop {
        pause.after(carrier.carry(&stock, name).await).await;
    }
}

fn until(next: Timestamp, now: Timestamp) -> Duration {
    // One that is over is looked at at once.
    Duration::try_from(next.duration_since(now)).unwrap_or_default()
}

fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}
