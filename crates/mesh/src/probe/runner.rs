//! The running work: a capture for each interface, its observers, and the ends of active tests.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;
use tracing::{info, warn};
use wirestamp_capture::{
    Capture, Config, Cores, Direction, Filter, LiveLedger, Method, StampSource, Stop,
};
use wirestamp_clock::ClockService;
use wirestamp_packet::LinkType;

use super::active::{RequiredTests, TestEnds};
use super::backlog::Backlog;
use super::machine::Machine;
use super::shared::{Shared, StartError, within};
use super::tap::{Batches, Command, ObservationSpec};
use super::test_stats::TestStats;
use super::{ChannelName, Error, SharedSpool};

/// Max queued writes to the spool. Beyond that, captures wait.
const QUEUED_APPENDS: usize = 64;

/// Delay before a failed write to the spool is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The observers required at each interface.
pub(super) type RequiredCaptures = BTreeMap<String, BTreeMap<ChannelName, ObservationSpec>>;

/// The running captures and test ends.
pub(super) struct Runner {
    taps: HashMap<String, Running>,
    ends: TestEnds,
    shared: Shared,
    writer: JoinHandle<()>,
    is_ending: Arc<AtomicBool>,
}

struct Running {
    commands: mpsc::Sender<Command>,
    link: LinkType,
    looking: BTreeMap<ChannelName, ObservationSpec>,
    ledger: Arc<LiveLedger>,
    stop: Stop,
    thread: JoinHandle<()>,
}

impl Runner {
    /// Nothing runs yet. Batches go to `spool`.
    pub(super) fn new(
        clock: ClockService,
        machine: Machine,
        spool: Arc<SharedSpool>,
    ) -> Result<Self, Error> {
        let closed = Arc::new(Mutex::new(spool.reported_until()?));
        let (batches, made) = mpsc::sync_channel(QUEUED_APPENDS);
        let is_ending = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&is_ending);
        let write_spool = move || write_spool(&spool, &made, &ending);
        let writer = thread::Builder::new().name("spool".to_owned()).spawn(write_spool);
        let writer = writer.map_err(Error::Machine)?;
        let ended = watch::Sender::default();
        let shared = Shared { clock: Arc::new(clock), machine, batches, closed, ended };
        Ok(Self { taps: HashMap::new(), ends: TestEnds::default(), shared, writer, is_ending })
    }

    /// Notified when a capture or test end stops on its own.
    pub(super) fn ended(&self) -> watch::Receiver<()> {
        self.shared.ended.subscribe()
    }

    /// Flag that ends the probe: batches that cannot be written are then dropped.
    pub(super) fn ending(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_ending)
    }

    /// Statistics of the test ends.
    pub(super) fn stats(&self) -> Vec<(ChannelName, Arc<TestStats>)> {
        self.ends.stats()
    }

    /// The captures and their ledgers.
    pub(super) fn ledgers(&self) -> Vec<(String, Arc<LiveLedger>)> {
        self.taps.iter().map(|(name, tap)| (name.clone(), Arc::clone(&tap.ledger))).collect()
    }

    /// Starts the required work and stops all other. Returns the points that cannot be observed, and why.
    pub(super) fn reconcile(
        &mut self,
        wanted: &RequiredCaptures,
        tests: &RequiredTests,
    ) -> Vec<(ChannelName, String)> {
        let is_over = |interface: &String, tap: &mut Running| {
            !wanted.contains_key(interface) || tap.thread.is_finished()
        };
        let mut troubles = Vec::new();
        for (interface, mut tap) in self.taps.extract_if(is_over) {
            info!("stopped the capture at {interface}");
            if !wanted.contains_key(&interface) {
                // Each point reports the end of its observation.
                tap.look(&BTreeMap::new(), &mut troubles);
            }
            tap.end();
        }
        for (interface, specs) in wanted {
            let looked = self.capture(interface).map(|tap| tap.look(specs, &mut troubles));
            if let Err(failure) = looked {
                warn!("cannot capture at {interface}: {failure}");
                troubles.extend(specs.keys().map(|name| (*name, failure.to_string())));
            }
        }
        troubles.extend(self.ends.reconcile(tests, &self.shared));
        let is_awaited = |name: &ChannelName| {
            let mut specs = wanted.values().filter_map(|specs| specs.get(name));
            tests.contains_key(name) || specs.any(|spec| spec.purpose.is_awaited())
        };
        let absent = troubles.iter().map(|(name, _)| *name).filter(is_awaited);
        self.shared.report_absence(absent);
        troubles
    }

    /// The capture at an interface. Started if there is none.
    fn capture(&mut self, interface: &str) -> Result<&mut Running, StartError> {
        match self.taps.entry(interface.to_owned()) {
            Entry::Occupied(running) => Ok(running.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(begin(&self.shared, interface)?)),
        }
    }

    /// Stops all work and writes the last batches to the spool.
    pub(super) fn end(self) {
        let Self { taps, ends, shared, writer, is_ending: _ } = self;
        ends.end();
        taps.values().for_each(|tap| tap.stop.request());
        taps.into_values().for_each(Running::end);
        drop(shared);
        drop(writer.join());
    }
}

fn begin(shared: &Shared, interface: &str) -> Result<Running, StartError> {
    let (name, namespace) = match interface.split_once('@') {
        Some((name, namespace)) => (name, Some(namespace)),
        None => (interface, None),
    };
    let config = Config {
        direction: Direction::In,
        lanes: vec![Cores::default()],
        ..Config::new(name, Method::Ring, StampSource::Kernel)
    };
    let open = || Capture::open(config, &shared.clock);
    let capture = within(namespace, open)??;
    let (ledger, stop) = (capture.live_ledger(), Stop::new().map_err(StartError::Thread)?);
    let (commands, receiver) = mpsc::channel();
    let link = capture.facts().link;
    let mut tap = shared.tap(link, receiver);
    let (clock, stopped, ended) = (Arc::clone(&shared.clock), stop.clone(), shared.ended());
    let of = interface.to_owned();
    let run = move || {
        if let (_, Err(error)) = capture.run(&clock, &stopped, &mut tap) {
            warn!("the capture at {of} ended: {error}");
        }
        ended.send_replace(());
    };
    let thread = thread::Builder::new().name(format!("tap {name}")).spawn(run);
    let thread = thread.map_err(StartError::Thread)?;
    info!("capturing at {interface}");
    Ok(Running { commands, link, looking: BTreeMap::new(), ledger, stop, thread })
}

impl Running {
    /// Waits until the capture has sent its last observations.
    fn end(self) {
        self.stop.request();
        // A panic was reported by the thread itself.
        drop(self.thread.join());
    }

    /// Attaches the required observers and detaches all others.
    fn look(
        &mut self,
        specs: &BTreeMap<ChannelName, ObservationSpec>,
        troubles: &mut Vec<(ChannelName, String)>,
    ) {
        let is_wanted = |name: &ChannelName, spec: &ObservationSpec| specs.get(name) == Some(spec);
        for (name, _) in self.looking.extract_if(.., |name, spec| !is_wanted(name, spec)) {
            // If the capture has stopped already, nothing receives the command.
            drop(self.commands.send(Command::Detach(name)));
        }
        for (name, spec) in specs {
            if self.looking.contains_key(name) {
                continue;
            }
            let compile = |filter| Filter::compile_for(filter, self.link);
            let filter = spec.filter.as_deref().map(compile).transpose();
            match filter {
                Ok(filter) => {
                    let look = Command::Attach(*name, filter, spec.shard, spec.purpose.clone());
                    drop(self.commands.send(look));
                    self.looking.insert(*name, spec.clone());
                }
                Err(error) => troubles.push((*name, error.to_string())),
            }
        }
    }
}

/// Writes batches to the spool until the senders are gone.
fn write_spool(spool: &SharedSpool, batches: &mpsc::Receiver<Batches>, is_ending: &AtomicBool) {
    let (mut backlog, mut failed_at) = (Backlog::default(), None::<Instant>);
    loop {
        let next = match failed_at {
            None => batches.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => batches.recv_timeout(RETRY_DELAY),
        };
        let is_over = next == Err(RecvTimeoutError::Disconnected);
        // All queued batches go into one write.
        backlog.push(next.into_iter().chain(batches.try_iter()).flatten().collect());
        let is_ending = is_over || is_ending.load(Ordering::Relaxed);
        if failed_at.is_some_and(|failed_at| failed_at.elapsed() < RETRY_DELAY) && !is_ending {
            backlog.limit();
            continue;
        }
        if let Err(error) = backlog.store(|part| spool.append(part)) {
            if is_ending {
                warn!("lost the last observations: {error}");
                // Their times come before those of later batches.
                backlog.drop_all();
                drop(backlog.store(|part| spool.append(part)));
            } else if failed_at.is_none() {
                warn!("cannot write to the spool: {error}; keeping observations in memory");
            }
            backlog.limit();
            failed_at = Some(Instant::now());
        } else {
            failed_at = None;
        }
        if is_over {
            return;
        }
    }
}
