//! Tasks that move between collectors at random moments have the results of a task that stays at one collector.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use parquet::file::reader::{FileReader, SerializedFileReader};
use tokio::sync::watch;
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_mesh::collector::{
    Archive, Begun, Channel, Collector, EarlierDelivery, Handover, Keep, Measured, Opened,
    ResultRange, Results, SpoolOrigin, Step, TaskEpoch, TaskEpochs,
};
use wirestamp_mesh::protocol::{MachineClock, ObservationBatch};
use wirestamp_mesh::spool::{Batch, Held, Spool};
use wirestamp_mesh::task::{Task, TaskRecord, Tasks};
use wirestamp_metrics::{CaptureLoss, Observation};
use wirestamp_packet::{FlowKey, PacketId};

const SEEDS: u64 = 240;

const MILLISECOND: i64 = 1_000_000;
/// Begins at a whole second.
const BEGIN: i64 = 1_700_000_000_000 * MILLISECOND;
/// Distance of packets, and their number.
const EACH: i64 = 25 * MILLISECOND;
const PACKETS: i64 = 640;
/// Time of a batch. Empty batches follow until all windows are final.
const BATCH: i64 = 400 * MILLISECOND;
const BATCHES: i64 = 60;

const TASK: u64 = 1;
const BODY: &str = r#"{"name":"p","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0","archive":"observations"}"#;
const PROBES: [&str; 2] = ["roof", "cellar"];

fn observation(id: i64, nanos: i64) -> Observation {
    let end = std::net::SocketAddr::from(([192, 0, 2, 1], 5004));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(id.unsigned_abs()),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_nanos(10) },
    }
}

/// Batches of both points: packets are delayed, lost, duplicated, or missed by a capture.
fn batches(rng: &mut Rng) -> [Vec<Batch>; 2] {
    let mut seen = [Vec::new(), Vec::new()];
    let mut missed = [Vec::new(), Vec::new()];
    for id in 0..PACKETS {
        let sent = BEGIN + EACH * id;
        let received = sent + rng.i64(0..150) * MILLISECOND;
        match rng.u32(0..60) {
            0 => missed[0].push(sent),
            1 => missed[1].push(received),
            _ => {}
        }
        match rng.u32(0..20) {
            0 => seen[0].push(observation(id, sent)),
            1 => {
                seen[0].push(observation(id, sent));
                let again = received + rng.i64(0..20) * MILLISECOND;
                seen[1].extend([received, again].map(|it| observation(id, it)));
            }
            _ => {
                seen[0].push(observation(id, sent));
                seen[1].push(observation(id, received));
            }
        }
    }
    seen.iter_mut().for_each(|it| it.sort_by_key(|it| it.stamp.utc));
    [0_u8, 1].map(|side| {
        let batch = |nth: i64| {
            let (from, until) = (BEGIN + nth * BATCH, BEGIN + (nth + 1) * BATCH);
            let is_here = |it: i64| (from..until).contains(&it);
            let here = seen[usize::from(side)].iter().filter(|it| is_here(it.stamp.utc.as_nanos()));
            let lost = missed[usize::from(side)].iter().filter(|it| is_here(**it)).count() as u64;
            let [begin, end] = [from, until].map(Time::from_nanos);
            let loss = CaptureLoss { from: begin, until: end, packets: lost };
            let seen = ObservationBatch {
                observations: here.copied().collect(),
                missed: Some(loss).into_iter().filter(|it| it.packets > 0).collect(),
                complete_until: end,
                begin: (nth == 0).then_some(Time::from_nanos(BEGIN - 1000 * MILLISECOND)),
                clock: MachineClock { machine: [side; 16], error: Some(Span::from_nanos(50)) },
                answers: None,
            };
            Batch {
                items: seen.observations.len() as u64,
                times: from..=until,
                body: seen.encode(),
            }
        };
        (0..BATCHES).map(batch).collect()
    })
}

fn tasks() -> watch::Receiver<Arc<Tasks>> {
    let task: Task = serde_json::from_str(BODY).unwrap();
    let record = TaskRecord { task, made: "2023-11-14T00:00:00Z".parse().unwrap(), ended: None };
    watch::channel(Arc::new(Tasks::from([(TASK, record)]))).1
}

/// A collector, and the placements that it has.
struct Node {
    collector: Arc<Collector>,
    placed: watch::Sender<Arc<TaskEpochs>>,
}

impl Node {
    fn open(path: &Path) -> Self {
        let placed = watch::Sender::default();
        let collector = Collector::new(Results::open(path).unwrap(), tasks());
        Self { collector: Arc::new(collector.with_epochs(placed.subscribe())), placed }
    }

    /// Writes the archive, and returns its observations: point, spool, batch and position, and identity.
    fn archived(&self, folder: &Path) -> Vec<([String; 4], String)> {
        let mut tasks = Tasks::clone(&tasks().borrow());
        let over = "2023-11-14T22:13:25Z".parse().unwrap();
        tasks.values_mut().for_each(|it| it.ended = Some(over));
        let keep = Keep { age: Duration::from_secs(100 * 365 * 86_400), bytes: None };
        Archive::new(folder.to_owned(), Arc::clone(&self.collector), keep).maintain(&tasks);
        let mut found = Vec::new();
        for point in ["a", "b"] {
            let hour = "observations/task=p/date=2023-11-14/hour=22";
            let files = fs::read_dir(folder.join(hour).join(format!("point={point}")));
            for file in files.into_iter().flatten() {
                let file = File::open(file.unwrap().path()).unwrap();
                for row in SerializedFileReader::new(file).unwrap().get_row_iter(None).unwrap() {
                    let row = row.unwrap();
                    let columns: BTreeMap<_, _> = row.get_column_iter().collect();
                    let of = |name: &str| columns[&name.to_owned()].to_string();
                    let key = [point.to_owned(), of("spool"), of("batch"), of("position")];
                    found.push((key, of("identity")));
                }
            }
        }
        found
    }

    fn begun(&self) -> Vec<Begun> {
        self.collector.begun().borrow().values().copied().collect()
    }

    fn measured(&self) -> Vec<Measured> {
        let range =
            ResultRange { step: Step::AsMeasured, from: i64::MIN, until: i64::MAX, most: u32::MAX };
        self.collector.measured(TASK, &range).unwrap()
    }
}

/// A probe of one point.
struct Probe {
    spool: Spool,
    point: u32,
    channel: Option<Channel>,
    /// Last batch sent in this call.
    sent: u64,
    /// Receipt that was sent, and not yet read.
    receipt: Option<(u64, Option<i64>)>,
}

impl Probe {
    fn hold(path: &Path, point: u32, batches: &[Batch]) -> Self {
        let mut spool = Spool::open(path, 1 << 30).unwrap();
        let batches: Vec<_> = batches.iter().map(|it| ("p", it.clone())).collect();
        spool.append(&batches).unwrap();
        Self { spool, point, channel: None, sent: 0, receipt: None }
    }

    fn disconnect(&mut self) {
        (self.channel, self.receipt) = (None, None);
    }

    fn open(&mut self, node: &Node, epoch: u64) {
        let name = PROBES[self.point as usize].parse().unwrap();
        let (settled_until, begin) = self.spool.known_times("p").unwrap();
        let (spool, first) = (self.spool.stream("p").unwrap(), self.spool.first("p").unwrap());
        let origin = SpoolOrigin { spool, first, instance: 5 };
        let earlier = EarlierDelivery { epoch: Some(epoch), settled_until, begin };
        let opened = node.collector.open_moved(&name, (TASK, self.point), origin, earlier);
        if let Opened::Channel(channel) = opened.unwrap() {
            self.receipt = Some(channel.settled().unwrap());
            self.sent = self.receipt.unwrap().0;
            self.channel = Some(channel);
            self.read_receipt();
        }
    }

    fn read_receipt(&mut self) {
        if let Some((up_to, settled)) = self.receipt.take() {
            self.spool.acknowledge_until("p", up_to, settled).unwrap();
        }
    }

    /// Delivers the next batch; false if there is none.
    fn deliver(&mut self) -> bool {
        let Some(channel) = &self.channel else { return true };
        let held = self.spool.read("p", self.sent, 1).unwrap();
        let Some(Held::Batch(number, batch)) = held.first() else { return false };
        channel.take(*number, &batch.body).unwrap();
        self.sent = *number;
        self.receipt = Some(channel.settled().unwrap());
        true
    }
}

/// Collectors by epoch.
type History = Vec<usize>;

/// Sends each collector the placement, as the controller does.
fn place(nodes: &[Node], history: &History) {
    let begun: BTreeMap<u64, Begun> =
        nodes.iter().flat_map(Node::begun).map(|it| (it.epoch, it)).collect();
    let current = history.len() - 1;
    for (index, node) in nodes.iter().enumerate() {
        let epochs = (0_u64..).zip(history).filter(|(_, at)| **at == index).map(|(epoch, _)| epoch);
        let epochs: Vec<_> = epochs.collect();
        let Some(last) = epochs.last() else { continue };
        let handover = |epoch: &u64| {
            let (_, next) = begun.range(epoch + 1..).find(|(_, it)| it.start.is_some())?;
            let Begun { start, spool, behind, .. } = *next;
            Some((TASK, Handover { epoch: *epoch, start: start?, spool, behind }))
        };
        let is_former = history[current] != index;
        let placed = [(TASK, TaskEpoch { epoch: *last, is_former })].into();
        let handovers = epochs.iter().filter_map(handover).collect();
        node.placed.send_replace(Arc::new(TaskEpochs { placed, handovers }));
        node.collector.hand_over();
    }
}

fn json(measured: &[Measured]) -> Vec<String> {
    measured.iter().map(|it| serde_json::to_string(it).unwrap()).collect()
}

/// Results of one collector, and of collectors between which the task moves; number of moves.
fn run(seed: u64) -> (Vec<String>, Vec<String>, usize) {
    let mut rng = Rng::with_seed(seed);
    let batches = batches(&mut rng);
    // In memory, where that is possible: no crash has to be survived.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = |name: &str| folder.path().join(name);
    let stays = Node::open(&path("stays"));
    let mut nodes: Vec<_> =
        (0..rng.usize(2..=3)).map(|it| Node::open(&path(&format!("node{it}")))).collect();
    let hold = |of: &str| {
        [0, 1].map(|point: u32| {
            let name = format!("{of}{point}");
            Probe::hold(&path(&name), point, &batches[point as usize])
        })
    };
    let mut probes = hold("still");
    probes.iter_mut().for_each(|it| it.open(&stays, 0));
    for probe in &mut probes {
        while probe.deliver() {}
    }
    let mut probes = hold("moving");
    let mut history: History = vec![0];
    // Handovers reach the former collectors late, or all at the end.
    let is_prompt = rng.bool();
    let mut left = rng.usize(1..=6);
    loop {
        let here = history[history.len() - 1];
        let epoch = (history.len() - 1) as u64;
        match rng.u32(0..100) {
            0..3 if left > 0 => {
                left -= 1;
                let others: Vec<_> = (0..nodes.len()).filter(|it| *it != here).collect();
                history.push(others[rng.usize(0..others.len())]);
                probes.iter_mut().for_each(Probe::disconnect);
                if is_prompt {
                    place(&nodes, &history);
                } else {
                    let (to, epoch) = (history[history.len() - 1], (history.len() - 1) as u64);
                    for (node, it) in nodes.iter().enumerate() {
                        it.placed.send_modify(|placed| {
                            let place = TaskEpoch { epoch, is_former: node != to };
                            let known = Arc::make_mut(placed).placed.entry(TASK).or_default();
                            let is_new = node == to || !known.is_former;
                            *known = if is_new { place } else { *known };
                        });
                    }
                }
            }
            // The collector is killed: what is not stored is delivered again.
            3 => {
                probes.iter_mut().for_each(Probe::disconnect);
                let placed = nodes[here].placed.borrow().clone();
                let name = path(&format!("node{here}"));
                let node = nodes.remove(here);
                drop(node);
                let node = Node::open(&name);
                node.placed.send_replace(placed);
                nodes.insert(here, node);
            }
            4..20 => probes[rng.usize(0..2)].read_receipt(),
            _ => {
                let probe = &mut probes[rng.usize(0..2)];
                if probe.channel.is_none() {
                    probe.open(&nodes[here], epoch);
                } else if rng.u32(0..20) == 0 {
                    probe.disconnect();
                } else {
                    probe.deliver();
                }
            }
        }
        let is_done = |it: &Probe| it.channel.is_some() && it.sent == BATCHES.unsigned_abs();
        if probes.iter().all(is_done) {
            break;
        }
    }
    place(&nodes, &history);
    let mut moved: Vec<_> = nodes.iter().flat_map(Node::measured).collect();
    moved.sort_by_key(|it| it.begin_ns);
    if seed.is_multiple_of(10) {
        check_archives(seed, folder.path(), &nodes, &batches);
    }
    (json(&stays.measured()), json(&moved), history.len() - 1)
}

/// Asserts that the archives of all collectors together have each observation once, without what several have of the same
/// batch.
fn check_archives(seed: u64, folder: &Path, nodes: &[Node], batches: &[Vec<Batch>; 2]) {
    let mut all = BTreeMap::new();
    for (number, node) in nodes.iter().enumerate() {
        for (key, identity) in node.archived(&folder.join(format!("archive{number}"))) {
            let before = all.insert(key.clone(), identity.clone());
            assert!(before.is_none_or(|it| it == identity), "seed {seed}: {key:?} differs");
        }
    }
    let delivered: u64 = batches.iter().flatten().map(|it| it.items).sum();
    assert_eq!(all.len() as u64, delivered, "seed {seed}");
}

fn check(seeds: Range<u64>) -> usize {
    let mut moves = 0;
    for seed in seeds {
        let (stays, moved, of_it) = run(seed);
        assert!(stays.len() > 15, "seed {seed}: {} windows", stays.len());
        assert_eq!(moved, stays, "seed {seed}, {of_it} moves");
        moves += of_it;
    }
    moves
}

#[test]
fn moved_task_has_the_results_of_one_that_stays() {
    let halves = [0..SEEDS / 2, SEEDS / 2..SEEDS];
    let moves: usize = std::thread::scope(|scope| {
        let threads = halves.map(|seeds| scope.spawn(|| check(seeds)));
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert!(moves > 200, "{moves} moves");
}
