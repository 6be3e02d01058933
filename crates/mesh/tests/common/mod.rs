//! A controller that can be killed, and probes that deliver to it.

use std::future;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_mesh::collector::{Collector, Keep, Measured, ResultRange, Step};
use wirestamp_mesh::controller::{Change, Controller, ProbeRegistry, Settings, Sources, TaskStore};
use wirestamp_mesh::member;
use wirestamp_mesh::pki::{Authority, Credentials, Request, Role, Subject, Token};
use wirestamp_mesh::probe::{self, ChannelName, SharedSpool};
use wirestamp_mesh::protocol::{MachineClock, ObservationBatch};
use wirestamp_mesh::spool::{Batch, Spool};
use wirestamp_mesh::task::{Task, Tasks};
use wirestamp_mesh::transport::{Trust, call};
use wirestamp_metrics::Observation;
use wirestamp_packet::{FlowKey, PacketId};

pub(crate) const MILLISECOND: i64 = 1_000_000;
pub(crate) const EVERYTHING: ResultRange =
    ResultRange { step: Step::AsMeasured, from: i64::MIN, until: i64::MAX, most: 1000 };
/// Begins at a whole second.
pub(crate) const BEGIN: i64 = 1_700_000_000_000 * MILLISECOND;

/// A controller in its own runtime, which can be killed.
pub(crate) struct Running {
    pub(crate) runtime: Runtime,
    pub(crate) address: SocketAddr,
    /// Address of its page and metrics.
    pub(crate) page: SocketAddr,
    pub(crate) collector: Arc<Collector>,
    pub(crate) sources: Arc<Sources>,
    pub(crate) plan: Arc<TaskStore>,
    pub(crate) tasks: watch::Receiver<Arc<Tasks>>,
    pub(crate) probes: Arc<ProbeRegistry>,
}

impl Running {
    /// Starts a controller with a task.
    pub(crate) fn start(folder: &Path, address: SocketAddr) -> Self {
        let task =
            r#"{"name":"p","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#;
        Self::start_with(folder, address, Some(task))
    }

    /// Starts a controller with this task, or with the tasks in the folder only.
    pub(crate) fn start_with(folder: &Path, address: SocketAddr, task: Option<&str>) -> Self {
        Self::start_changed(folder, address, task, |it| it)
    }

    /// Starts a controller that is changed before it runs.
    pub(crate) fn start_changed(
        folder: &Path,
        address: SocketAddr,
        task: Option<&str>,
        change: impl FnOnce(Controller) -> Controller,
    ) -> Self {
        let runtime = Runtime::new().unwrap();
        let socket = TcpListener::bind(address).unwrap();
        let keep = Keep { age: Duration::from_secs(3600), bytes: None };
        let authority = authority(folder);
        let (folder_of_all, names) = (folder.to_owned(), Vec::new());
        let page = Some("127.0.0.1:0".parse().unwrap());
        let move_after = None;
        let folder = folder_of_all;
        let settings = Settings { socket, folder, authority, names, keep, page, move_after };
        let controller = runtime.block_on(async { Controller::open(settings) }).unwrap();
        let controller = change(controller);
        if let Some(task) = task {
            let task: Task = serde_json::from_str(task).unwrap();
            let entered = controller.plan().enter(&task, now()).unwrap();
            assert!(matches!(entered, Change::Created(1) | Change::Unchanged(1)));
        }
        let (address, collector) = (controller.address(), controller.collector());
        let (sources, plan) = (controller.sources(), controller.plan());
        let (tasks, probes) = (plan.subscribe(), controller.probes());
        let page = controller.page().unwrap();
        runtime.spawn(controller.run(future::pending()));
        Self { runtime, address, page, collector, sources, plan, tasks, probes }
    }

    /// Kills it without a shutdown.
    pub(crate) fn kill(self) -> SocketAddr {
        let Self { runtime, address, collector, sources, .. } = self;
        drop((runtime, sources));
        assert_eq!(Arc::strong_count(&collector), 1, "something of it still runs");
        address
    }

    pub(crate) fn measured(&self) -> Vec<Measured> {
        self.collector.measured(1, &EVERYTHING).unwrap()
    }

    /// Waits for results of this number of sent packets.
    pub(crate) fn wait_for(&self, packets: u64) -> Vec<Measured> {
        let mut stored = self.collector.subscribe();
        self.runtime.block_on(async {
            loop {
                let measured = self.measured();
                if sum(&measured, |it| it.counts.sent) >= packets {
                    return measured;
                }
                let changed = tokio::time::timeout(Duration::from_secs(120), stored.changed());
                changed.await.expect("results within two minutes").unwrap();
            }
        })
    }
}

pub(crate) fn sum(measured: &[Measured], of: impl Fn(&Measured) -> u64) -> u64 {
    measured.iter().map(of).sum()
}

pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap()
}

pub(crate) fn authority(folder: &Path) -> PathBuf {
    folder.join("authority.sqlite")
}

pub(crate) fn subject(name: &str, role: Role) -> Subject {
    Subject { name: name.parse().unwrap(), role }
}

/// A folder with a CA, and a new controller.
pub(crate) fn mesh() -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    Authority::create(&authority(folder.path()), now()).unwrap();
    let running = Running::start(folder.path(), (Ipv4Addr::LOCALHOST, 0).into());
    (folder, running)
}

pub(crate) fn token(folder: &Path, name: &str) -> Token {
    let mut authority = Authority::open(&authority(folder)).unwrap();
    authority.token(&subject(name, Role::Probe), SignedDuration::from_mins(5), now()).unwrap()
}

/// A probe: its credentials and its spool.
pub(crate) struct Probe {
    pub(crate) credentials: Credentials,
    pub(crate) stock: Arc<SharedSpool>,
    pub(crate) channel: ChannelName,
}

impl Probe {
    pub(crate) fn let_in(
        runtime: &Runtime,
        folder: &Path,
        address: SocketAddr,
        name: &str,
        point: u32,
    ) -> Self {
        let (token, request) = (token(folder, name), Request::new().unwrap());
        let controller = address.to_string();
        let enrolled = member::enrol(&controller, &token, &request);
        let credentials = runtime.block_on(enrolled).unwrap();
        let spool = Spool::open(&folder.join(format!("{name}.sqlite")), 1 << 30).unwrap();
        let channel = ChannelName { task: 1, point };
        Self { credentials, stock: Arc::new(SharedSpool::new(spool)), channel }
    }

    /// Delivers until the stream ends; returns the reason.
    pub(crate) async fn deliver(self: Arc<Self>, address: SocketAddr) -> String {
        let trust = Trust::Certificate(&self.credentials);
        let collector = call(&address.to_string(), Role::Controller, &trust).unwrap();
        let delivered = probe::deliver(collector, &self.stock, self.channel, 0).await;
        delivered.map_or_else(|error| error.to_string(), |()| "it ended".to_owned())
    }

    pub(crate) fn hold(&self, batches: impl IntoIterator<Item = Batch>) {
        let batches = batches.into_iter().map(|batch| (self.channel, batch));
        self.stock.append(&batches.collect::<Vec<_>>()).unwrap();
    }
}

/// A batch of packets in a time range, in nanoseconds. The first one contains the start of the observation.
pub(crate) fn batch((from, until): (i64, i64), is_first: bool, seen: Vec<Observation>) -> Batch {
    let items = seen.len() as u64;
    let seen = ObservationBatch {
        observations: seen,
        missed: Vec::new(),
        complete_until: Time::from_nanos(until),
        begin: is_first.then_some(Time::from_nanos(from - 1000 * MILLISECOND)),
        clock: MachineClock { machine: [7; 16], error: None },
        answers: None,
    };
    Batch { items, times: from..=until, body: seen.encode() }
}

pub(crate) fn observation(id: i64, nanos: i64) -> Observation {
    let end = SocketAddr::from(([192, 0, 2, 1], 5004));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(id.unsigned_abs()),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_nanos(10) },
    }
}

/// A packet every 10 ms for twenty seconds. A batch covers 100 ms. Empty batches follow the packets until all results
/// are settled.
pub(crate) const PACKETS: i64 = 2000;
pub(crate) const BATCHES: i64 = 250;

/// Batches of a point: packets take 5 ms from the first to the second, and every tenth is lost.
pub(crate) fn batches(point: u32, numbers: Range<i64>) -> impl Iterator<Item = Batch> {
    let delay = i64::from(point) * 5 * MILLISECOND;
    numbers.map(move |nth| {
        let times = (BEGIN + nth * 100 * MILLISECOND, BEGIN + (nth + 1) * 100 * MILLISECOND);
        let time = |id: &i64| BEGIN + 10 * MILLISECOND * id + delay;
        let is_here =
            |id: &i64| (times.0..times.1).contains(&time(id)) && (point == 0 || id % 10 != 0);
        let seen = (0..PACKETS).filter(is_here).map(|id| observation(id, time(&id)));
        batch(times, nth == 0, seen.collect())
    })
}

/// Asserts that each packet counts once, with its outcome.
pub(crate) fn check(measured: &[Measured]) {
    let packets = PACKETS.unsigned_abs();
    assert_eq!(sum(measured, |it| it.counts.sent), packets);
    assert_eq!(sum(measured, |it| it.counts.lost), packets / 10);
    assert_eq!(sum(measured, |it| it.counts.matched), packets - packets / 10);
    assert_eq!(sum(measured, |it| it.counts.unexpected + it.counts.undetermined_sent), 0);
    for (second, window) in (0..).zip(measured) {
        assert_eq!(window.begin_ns, BEGIN + second * 1000 * MILLISECOND);
        let delay = window.delay_ns.as_ref().unwrap();
        assert_eq!((delay.min, delay.max), (5 * MILLISECOND, 5 * MILLISECOND));
        assert_eq!(window.error_ns, Some(20));
    }
}
