//! What runs: a capture for each interface, whoever looks at it, and the ends of active tests.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tracing::{info, warn};
use wirestamp_active::SocketError;
use wirestamp_capture::{Capture, Config, Cores, Filter, LiveLedger, Method, StampSource, Stop};
use wirestamp_clock::{ClockService, Time};
use wirestamp_sys::netns::{Netns, NetnsError};

use super::active::{Ends, Tests};
use super::heard::Heard;
use super::machine::Machine;
use super::tap::{Batches, Closed, Command, Sight, Tap};
use super::watch::absence;
use super::{ChannelName, Error, Stock};

/// Appends to the spool that may wait: more, and captures wait for it.
const APPENDS: usize = 64;

/// How long it waits where the spool cannot be written.
const RETRY: Duration = Duration::from_secs(1);

/// What is to be looked at: for each interface, by whom and how.
pub(super) type Wanted = BTreeMap<String, BTreeMap<ChannelName, Sight>>;

/// Why an interface is not captured, or a point does not look.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    Capture(#[from] wirestamp_capture::Error),
    #[error(transparent)]
    Namespace(#[from] NetnsError),
    #[error("cannot enter the namespace {0}: {1}; with --namespaces a probe may")]
    Enter(String, io::Error),
    #[error("cannot make a thread: {0}")]
    Thread(io::Error),
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// The captures that run, and the ends of active tests.
pub(super) struct Runner {
    taps: HashMap<String, Running>,
    ends: Ends,
    shared: Shared,
    holding: JoinHandle<()>,
    is_ending: Arc<AtomicBool>,
}

/// What all that run have in common.
pub(super) struct Shared {
    clock: Arc<ClockService>,
    machine: Machine,
    batches: SyncSender<Batches>,
    closed: Closed,
    /// Told when something ends by itself.
    ended: watch::Sender<()>,
}

struct Running {
    commands: mpsc::Sender<Command>,
    looking: BTreeMap<ChannelName, Sight>,
    ledger: Arc<LiveLedger>,
    stop: Stop,
    thread: JoinHandle<()>,
}

impl Runner {
    /// Nothing runs yet; what comes will be held here.
    pub(super) fn new(
        clock: ClockService,
        machine: Machine,
        stock: Arc<Stock>,
    ) -> Result<Self, Error> {
        let closed = Arc::new(Mutex::new(stock.told_until()?));
        let (batches, made) = mpsc::sync_channel(APPENDS);
        let is_ending = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&is_ending);
        let hold = move || hold(&stock, &made, &ending);
        let holding = thread::Builder::new().name("spool".to_owned()).spawn(hold);
        let holding = holding.map_err(Error::Machine)?;
        let ended = watch::Sender::default();
        let shared = Shared { clock: Arc::new(clock), machine, batches, closed, ended };
        Ok(Self { taps: HashMap::new(), ends: Ends::default(), shared, holding, is_ending })
    }

    /// Tells when something has ended by itself.
    pub(super) fn ended(&self) -> watch::Receiver<()> {
        self.shared.ended.subscribe()
    }

    /// Set when all shall end: then what cannot be held is let go of, and nobody waits for that.
    pub(super) fn ending(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_ending)
    }

    /// What the ends of tests hear.
    pub(super) fn heard(&self) -> Vec<(ChannelName, Arc<Heard>)> {
        self.ends.heard()
    }

    /// The captures, and their accounts.
    pub(super) fn ledgers(&self) -> Vec<(String, Arc<LiveLedger>)> {
        self.taps.iter().map(|(name, tap)| (name.clone(), Arc::clone(&tap.ledger))).collect()
    }

    /// Lets run what is wanted, and nothing else. Tells who cannot look, and why.
    pub(super) fn reconcile(
        &mut self,
        wanted: &Wanted,
        tests: &Tests,
    ) -> Vec<(ChannelName, String)> {
        let is_over = |interface: &String, tap: &mut Running| {
            !wanted.contains_key(interface) || tap.thread.is_finished()
        };
        let mut troubles = Vec::new();
        for (interface, mut tap) in self.taps.extract_if(is_over) {
            info!("does not capture at {interface} any more");
            if !wanted.contains_key(&interface) {
                // Each point says that nobody looks any more.
                tap.look(&BTreeMap::new(), &mut troubles);
            }
            tap.end();
        }
        for (interface, sights) in wanted {
            let looked = self.capture(interface).map(|tap| tap.look(sights, &mut troubles));
            if let Err(failure) = looked {
                warn!("cannot capture at {interface}: {failure}");
                troubles.extend(sights.keys().map(|name| (*name, failure.to_string())));
            }
        }
        troubles.extend(self.ends.reconcile(tests, &self.shared));
        let is_awaited = |name: &ChannelName| {
            let mut sights = wanted.values().filter_map(|sights| sights.get(name));
            tests.contains_key(name) || sights.any(|sight| sight.purpose.is_awaited())
        };
        let absent = troubles.iter().map(|(name, _)| *name).filter(is_awaited);
        self.shared.tell_of_absence(absent);
        troubles
    }

    /// The capture at an interface, which is begun if there is none.
    fn capture(&mut self, interface: &str) -> Result<&mut Running, Failure> {
        match self.taps.entry(interface.to_owned()) {
            Entry::Occupied(running) => Ok(running.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(self.shared.begin(interface)?)),
        }
    }

    /// Ends all that runs, and holds what they have seen.
    pub(super) fn end(self) {
        let Self { taps, ends, shared, holding, is_ending: _ } = self;
        ends.end();
        taps.values().for_each(|tap| tap.stop.request());
        taps.into_values().for_each(Running::end);
        drop(shared);
        drop(holding.join());
    }
}

impl Shared {
    /// Says that nobody looks at these points up to now, so that the others of their tasks need not wait for
    /// them.
    fn tell_of_absence(&self, names: impl Iterator<Item = ChannelName>) {
        let now = Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(0));
        let (mut machine, mut made) = (self.machine.clone(), Batches::new());
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            let told_until = closed.entry(name).or_insert(now);
            if *told_until < now {
                made.push((name, absence(*told_until, now, machine.clock())));
                *told_until = now;
            }
        }
        drop(closed);
        if !made.is_empty() {
            // They are taken as long as the probe runs.
            drop(self.batches.send(made));
        }
    }

    /// The machine.
    pub(super) fn machine(&self) -> Machine {
        self.machine.clone()
    }

    /// Somebody who does what is told.
    pub(super) fn tap(&self, told: mpsc::Receiver<Command>) -> Tap {
        Tap::new(told, self.batches.clone(), self.machine.clone(), Arc::clone(&self.closed))
    }

    /// Is told when something has ended by itself.
    pub(super) fn ended(&self) -> watch::Sender<()> {
        self.ended.clone()
    }

    fn begin(&self, interface: &str) -> Result<Running, Failure> {
        let (name, namespace) = match interface.split_once('@') {
            Some((name, namespace)) => (name, Some(namespace)),
            None => (interface, None),
        };
        let config = Config {
            outgoing: false,
            lanes: vec![Cores::default()],
            ..Config::new(name, Method::Ring, StampSource::Kernel)
        };
        let open = || Capture::open(config, &self.clock);
        let capture = within(namespace, open)??;
        let (ledger, stop) = (capture.live_ledger(), Stop::new().map_err(Failure::Thread)?);
        let (commands, told) = mpsc::channel();
        let mut tap = self.tap(told);
        let (clock, stopped, ended) = (Arc::clone(&self.clock), stop.clone(), self.ended());
        let of = interface.to_owned();
        let run = move || {
            if let (_, Err(error)) = capture.run(&clock, &stopped, &mut tap) {
                warn!("the capture at {of} has ended: {error}");
            }
            ended.send_replace(());
        };
        let thread = thread::Builder::new().name(format!("tap {name}")).spawn(run);
        let thread = thread.map_err(Failure::Thread)?;
        info!("captures at {interface}");
        Ok(Running { commands, looking: BTreeMap::new(), ledger, stop, thread })
    }
}

impl Running {
    /// Waits until what it has seen is on its way.
    fn end(self) {
        self.stop.request();
        // A thread that panicked has told so.
        drop(self.thread.join());
    }

    /// Lets those look who shall, and nobody else.
    fn look(
        &mut self,
        sights: &BTreeMap<ChannelName, Sight>,
        troubles: &mut Vec<(ChannelName, String)>,
    ) {
        let is_wanted = |name: &ChannelName, sight: &Sight| sights.get(name) == Some(sight);
        for (name, _) in self.looking.extract_if(.., |name, sight| !is_wanted(name, sight)) {
            // Where the capture has ended, nobody looks anyway.
            drop(self.commands.send(Command::LookAway(name)));
        }
        for (name, sight) in sights {
            if self.looking.contains_key(name) {
                continue;
            }
            let filter = sight.filter.as_deref().map(Filter::compile).transpose();
            match filter {
                Ok(filter) => {
                    let look = Command::Look(*name, filter, sight.purpose.clone());
                    drop(self.commands.send(look));
                    self.looking.insert(*name, sight.clone());
                }
                Err(error) => troubles.push((*name, error.to_string())),
            }
        }
    }
}

/// Does something in a network namespace, or in the probe's own.
pub(super) fn within<T: Send>(
    namespace: Option<&str>,
    act: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let Some(name) = namespace else { return Ok(act()) };
    let entered = Netns::open(name)?.run(act);
    entered.map_err(|cause| Failure::Enter(name.to_owned(), cause))
}

/// Puts batches into the spool until there will be no more.
fn hold(stock: &Stock, batches: &mpsc::Receiver<Batches>, is_ending: &AtomicBool) {
    while let Ok(first) = batches.recv() {
        // What has come meanwhile goes with it, for the price of one write.
        let all: Batches = first.into_iter().chain(batches.try_iter().flatten()).collect();
        let mut is_told = false;
        // What is left out nobody would know of. So captures wait, and the kernel counts what it has no
        // room for.
        while let Err(error) = stock.append(&all) {
            if is_ending.load(Ordering::Relaxed) {
                warn!("what was seen last is lost: {error}");
                break;
            }
            if !std::mem::replace(&mut is_told, true) {
                warn!("cannot hold what was seen, and tries again: {error}");
            }
            thread::sleep(RETRY);
        }
    }
}
