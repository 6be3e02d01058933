//! A probe at work.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::{self, JoinHandle, JoinSet, block_in_place};
use tokio::time;
use tracing::{info, warn};
use wirestamp_capture::LiveLedger;
use wirestamp_clock::{ClockService, Counter, Span, Statement, Time, stated_error};

use super::active::Heard;
use super::attend::attend;
use super::duties::{Duties, Now};
use super::keepers::Said;
use super::machine::{Machine, memory, processor_time};
use super::runner::Runner;
use super::{ChannelName, Error, Stock, deliver, enrol, renew};
use crate::Name;
use crate::pki::{Credentials, Request, Role, Subject, Token};
use crate::spool::Spool;
use crate::transport::{Trust, call};
use crate::v1::{Assignment, Capture, ClockOffset, Keeper, Report, Trouble};

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

/// How long it waits before it calls again, at first and at the most; and before it tries again what did not
/// work.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const RETRY: Duration = Duration::from_secs(5);

/// How often it looks whether its certificate ends soon.
const LOOK_AFTER: Duration = Duration::from_secs(3600);

/// A probe that was let in.
pub struct Probe {
    settings: Settings,
    name: Name,
    credentials: watch::Sender<Credentials>,
    stock: Arc<Stock>,
    duties: Duties,
    runner: Runner,
    state: Arc<State>,
}

/// What others look at.
struct State {
    stock: Arc<Stock>,
    keepers: Said,
    captures: Mutex<Vec<(String, Arc<LiveLedger>)>>,
    exchanges: Mutex<Vec<(u64, Heard)>>,
    troubles: Mutex<Vec<Trouble>>,
}

impl Probe {
    /// Opens its files, and has itself let in if it was not before.
    ///
    /// # Errors
    /// When a file cannot be used, or the controller does not let it in.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let file = settings.folder.join("probe.pem");
        let credentials = match (Credentials::read(&file), &settings.token) {
            (Ok(credentials), _) => credentials,
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Credentials(error));
            }
            (Err(_), None) => return Err(Error::NotLetIn(file)),
            (Err(_), Some(token)) => {
                Credentials::can_be_written(&file).map_err(Error::Credentials)?;
                let credentials = let_in(&settings.controller, token).await?;
                credentials.write(&file).map_err(Error::Credentials)?;
                credentials
            }
        };
        let subject = credentials.subject_and_serial().map(|(subject, _)| subject);
        let subject = subject.filter(|it| it.role == Role::Probe);
        let Subject { name, .. } = subject.ok_or(Error::NobodysCertificate)?;
        let spool = Spool::open(&settings.folder.join("spool.sqlite"), settings.spool_bytes)?;
        let stock = Arc::new(Stock::new(spool));
        let duties = Duties::open(settings.folder.join("duties"));
        let clock =
            ClockService::start(Counter::select()).map_err(|it| Error::Clock(it.to_string()))?;
        let machine = Machine::new().map_err(Error::Machine)?;
        let keepers = machine.keepers().clone();
        let runner = Runner::new(clock, machine, Arc::clone(&stock))?;
        let state = Arc::new(State {
            stock: Arc::clone(&stock),
            keepers,
            captures: Mutex::default(),
            exchanges: Mutex::default(),
            troubles: Mutex::default(),
        });
        let credentials = watch::Sender::new(credentials);
        Ok(Self { settings, name, credentials, stock, duties, runner, state })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
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
        work.spawn(attend_for_ever(
            self.settings.clone(),
            self.credentials.subscribe(),
            Arc::clone(&self.state),
            told,
        ));
        work.spawn(self.state.keepers.clone().keep_asking());
        work.spawn(stay_a_member(self.settings.clone(), self.credentials.clone()));
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
        loop {
            let assignment = assignments.borrow_and_update().clone();
            if let Some(assignment) = assignment {
                let count = assignment.duties.len();
                if self.duties.replace(assignment) {
                    info!("has {} to measure", tasks(count));
                }
            }
            let now = Timestamp::now();
            let Now { wanted, tests, next, mut troubles } = self.duties.now(&self.name, now);
            troubles.extend(block_in_place(|| self.runner.reconcile(&wanted, &tests)));
            let held = block_in_place(|| self.stock.channels()).unwrap_or_default();
            let looking = wanted.values().flat_map(|sights| sights.keys());
            for name in looking.chain(tests.keys()).copied().chain(held) {
                if delivered.insert(name) {
                    work.spawn(deliver_for_ever(
                        self.settings.controller.clone(),
                        self.credentials.subscribe(),
                        Arc::clone(&self.stock),
                        name,
                    ));
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
        *self.exchanges.lock().unwrap_or_else(PoisonError::into_inner) = runner.exchanges();
        *self.troubles.lock().unwrap_or_else(PoisonError::into_inner) = troubles.collect();
    }

    /// What the captures have counted by now.
    fn captures(&self) -> Vec<Capture> {
        let captures = self.captures.lock().unwrap_or_else(PoisonError::into_inner);
        captures.iter().map(account).collect()
    }

    /// What the senders of tests have heard of other clocks by now.
    fn clock_offsets(&self) -> Vec<ClockOffset> {
        let Ok(now) = Time::try_from(SystemTime::now()) else { return Vec::new() };
        let exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        let best = exchanges.iter().filter_map(|(task, heard)| {
            let best = heard.lock().unwrap_or_else(PoisonError::into_inner).best(now)?;
            Some(ClockOffset {
                task: *task,
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
        let statements = self.keepers.statements();
        let known = stated_error(&statements).ok();
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
            keepers: statements.iter().map(keeper).collect(),
            clock_offsets: self.clock_offsets(),
        }
    }
}

fn keeper(said: &Statement) -> Keeper {
    Keeper {
        by: said.by.name().to_owned(),
        source: said.source.clone(),
        stratum: said.stratum.map(u32::from),
        ahead: said.ahead.as_nanos(),
        error: said.error.map(unsigned),
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

async fn let_in(controller: &str, token: &Token) -> Result<Credentials, Error> {
    let request = Request::new()?;
    let mut pause = Pause::new();
    loop {
        match enrol(controller, token, &request).await {
            Err(error) if error.may_pass() => pause.after(Err(error)).await,
            enrolled => return enrolled,
        }
    }
}

/// Attends to the controller, again and again.
async fn attend_for_ever(
    settings: Settings,
    credentials: watch::Receiver<Credentials>,
    state: Arc<State>,
    told: Arc<watch::Sender<Option<Assignment>>>,
) {
    let mut pause = Pause::new();
    let node = format!("the controller at {}", settings.controller);
    loop {
        let trust = credentials.borrow().clone();
        let attended =
            match call(&settings.controller, Role::Controller, &Trust::Certificate(&trust)) {
                Ok(channel) => attend(channel, &node, || state.report(), &told).await,
                Err(error) => Err(error.into()),
            };
        pause.after(attended).await;
    }
}

/// Delivers a channel, again and again.
async fn deliver_for_ever(
    collector: String,
    credentials: watch::Receiver<Credentials>,
    stock: Arc<Stock>,
    name: ChannelName,
) {
    let mut pause = Pause::new();
    loop {
        let trust = credentials.borrow().clone();
        let delivered = match call(&collector, Role::Controller, &Trust::Certificate(&trust)) {
            Ok(channel) => deliver(channel, &stock, name).await,
            Err(error) => Err(error.into()),
        };
        pause.after(delivered).await;
    }
}

/// Renews the certificate before it ends.
async fn stay_a_member(settings: Settings, credentials: watch::Sender<Credentials>) {
    let mut pause = Pause::new();
    loop {
        let now = credentials.borrow().clone();
        if now.ends_soon(Timestamp::now()) {
            match renewed(&settings, &now).await {
                Ok(renewed) => {
                    info!("renewed the probe's certificate");
                    credentials.send_replace(renewed);
                    pause = Pause::new();
                }
                Err(error) => {
                    pause.after(Err(error)).await;
                    continue;
                }
            }
        }
        time::sleep(LOOK_AFTER).await;
    }
}

async fn renewed(settings: &Settings, now: &Credentials) -> Result<Credentials, Error> {
    let renewed = renew(&settings.controller, now).await?;
    // What cannot be used does not take the place of what can.
    call(&settings.controller, Role::Controller, &Trust::Certificate(&renewed))?;
    renewed.write(&settings.folder.join("probe.pem")).map_err(Error::Credentials)?;
    Ok(renewed)
}

/// Waits that grow, and one word about each reason for them.
struct Pause {
    next: Duration,
    begun: Instant,
    told: Option<String>,
}

impl Pause {
    fn new() -> Self {
        Self { next: FIRST_PAUSE, begun: Instant::now(), told: None }
    }

    /// Waits after something has ended that should not have.
    async fn after(&mut self, ended: Result<(), Error>) {
        if self.begun.elapsed() > LONGEST_PAUSE {
            // It went well for a while.
            *self = Self::new();
        }
        let why = ended.err().map(|error| error.to_string());
        if let Some(why) = why.filter(|why| self.told.as_ref() != Some(why)) {
            warn!("{why}; tries again");
            self.told = Some(why);
        }
        time::sleep(self.next).await;
        self.next = (2 * self.next).min(LONGEST_PAUSE);
        self.begun = Instant::now();
    }
}

fn until(next: Timestamp, now: Timestamp) -> Duration {
    // One that is over is looked at at once.
    Duration::try_from(next.duration_since(now)).unwrap_or_default()
}

fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}
