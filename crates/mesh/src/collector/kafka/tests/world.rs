//! The simulated probes, log, collectors and controller, their steps and their faults.

use super::*;

/// A partition: the offset of its first record, and the records.
#[derive(Default)]
pub(super) struct Log {
    pub(super) first: usize,
    pub(super) records: Vec<(usize, Record)>,
}

pub(super) struct Reading {
    pub(super) intake: Intake,
    pub(super) next: Option<usize>,
}

pub(super) struct Store {
    pub(super) folder: PathBuf,
    /// What the controller sent to it last.
    pub(super) tasks: watch::Sender<Arc<Tasks>>,
    pub(super) epochs: watch::Sender<Arc<TaskEpochs>>,
    pub(super) running: Option<Running>,
}

pub(super) struct Running {
    pub(super) collector: Arc<Collector>,
    pub(super) positions: Positions,
    pub(super) readings: Vec<Reading>,
}

pub(super) struct Sender {
    pub(super) folder: PathBuf,
    pub(super) spool: Option<SharedSpool>,
    /// The next answer that it reads.
    pub(super) answer: usize,
}

pub(super) struct World {
    _folder: tempfile::TempDir,
    pub(super) rng: Rng,
    pub(super) now: Instant,
    /// Shards of the task that measures delay.
    pub(super) shards: u16,
    pub(super) channels: Vec<(usize, ChannelName)>,
    pub(super) logs: Vec<Log>,
    pub(super) answers: Vec<Answer>,
    pub(super) stores: Vec<Store>,
    pub(super) controller: SimulatedPlacement,
    pub(super) senders: Vec<Sender>,
    /// Epochs that the probes use.
    pub(super) epochs: BTreeMap<ChannelName, u64>,
    pub(super) sessions: BTreeMap<ChannelName, (u64, Option<Outbox>)>,
    pub(super) held: BTreeMap<ChannelName, usize>,
}

impl World {
    /// All tasks are at the first collector.
    pub(super) fn new(seed: u64, collectors: usize, shards: u16) -> Self {
        let folder = folder();
        let store = |at: usize| {
            let all = if at == 0 { tasks(shards).borrow().clone() } else { Arc::default() };
            let folder = folder.path().join(format!("collector{at}"));
            std::fs::create_dir(&folder).unwrap();
            let (tasks, epochs) = (watch::Sender::new(all), watch::Sender::default());
            Store { folder, tasks, epochs, running: None }
        };
        let senders =
            NAMES.map(|name| Sender { folder: folder.path().join(name), spool: None, answer: 0 });
        let channels = channels(shards);
        let all = Arc::clone(&tasks(shards).borrow());
        let controller = SimulatedPlacement::new(folder.path(), all, collectors);
        let mut world = Self {
            shards,
            rng: Rng::with_seed(seed),
            now: Instant::now(),
            logs: (0..PARTITIONS).map(|_| Log::default()).collect(),
            answers: Vec::new(),
            stores: (0..collectors).map(store).collect(),
            controller,
            senders: senders.into(),
            epochs: channels.iter().map(|(_, name)| (*name, 0)).collect(),
            sessions: channels.iter().map(|(_, name)| (*name, (0, None))).collect(),
            held: channels.iter().map(|(_, name)| (*name, 0)).collect(),
            channels,
            _folder: folder,
        };
        (0..collectors).for_each(|at| world.restart_collector(at));
        (0..NAMES.len()).for_each(|probe| world.restart_probe(probe));
        world
    }

    pub(super) fn restart_collector(&mut self, at: usize) {
        let Store { folder: path, tasks, epochs, running } = &mut self.stores[at];
        *running = None;
        let results = Results::open(&path.join("results.sqlite")).unwrap();
        let collector = Collector::new(results, tasks.subscribe());
        let collector = Arc::new(collector.with_epochs(epochs.subscribe()));
        collector.kafka_stats().count(|it| it.is_reading = true);
        let positions = Positions::open(&path.join("kafka.sqlite")).unwrap();
        let reading = |_| {
            let room = 3000 * usize::from(self.shards);
            let intake = Intake::new(Arc::clone(&collector), room);
            Reading { intake, next: None }
        };
        let readings = (0..PARTITIONS).map(reading).collect();
        *running = Some(Running { collector, positions, readings });
    }

    /// Also with a clock that was set back: the numbers of sessions begin again.
    pub(super) fn restart_probe(&mut self, probe: usize) {
        let sender = &mut self.senders[probe];
        sender.spool = None;
        sender.spool = Some(SharedSpool::new(Spool::open(&sender.folder, 1 << 30).unwrap()));
        sender.answer = self.answers.len();
        for (_, name) in self.channels.iter().filter(|(of, _)| *of == probe) {
            self.sessions.insert(*name, (0, None));
        }
    }

    pub(super) fn hold(&mut self, (probe, name): (usize, ChannelName)) {
        let nth = self.held[&name];
        if nth < BATCHES {
            let spool = self.senders[probe].spool.as_ref().unwrap();
            let whole = batch(name, nth, self.shards);
            let stored = if (name.point, nth) == DROPPED { whole.dropped() } else { whole };
            spool.append(&[(name, stored)]).unwrap();
            self.held.insert(name, nth + 1);
        }
    }

    /// Appends what a channel sends. Faults: the answer of the broker is lost, with or without the records, or the
    /// records are appended twice.
    pub(super) fn send(&mut self, (probe, name): (usize, ChannelName), has_faults: bool) {
        let spool = self.senders[probe].spool.as_ref().unwrap();
        let (newest, outbox) = self.sessions.get_mut(&name).unwrap();
        let outbox = outbox.get_or_insert_with(|| {
            *newest += 1;
            let epoch = (self.stores.len() > 1).then_some(self.epochs[&name]);
            Outbox::open(spool, name, epoch, *newest, self.now).unwrap()
        });
        let records = outbox.pending(spool, self.now).unwrap();
        let log = &mut self.logs[partition(name.task, PARTITIONS) as usize];
        let fault = if has_faults { self.rng.u8(0..20) } else { 9 };
        let copies = match fault {
            0 | 1 => 0,
            2 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            log.records.extend(records.iter().map(|it| (probe, it.clone())));
        }
        if fault <= 1 || fault == 3 {
            self.sessions.get_mut(&name).unwrap().1 = None;
        }
    }

    /// A collector reads some records of a partition, and answers.
    pub(super) fn read(&mut self, at: usize, number: u32, most: usize, has_faults: bool) {
        let log = &self.logs[number as usize];
        let end = log.first + log.records.len();
        let Running { positions, readings, .. } = self.stores[at].running.as_mut().unwrap();
        let Reading { intake, next } = &mut readings[number as usize];
        let stored = || positions.needed(number, PARTITIONS).unwrap();
        let from = next.or_else(|| stored().map(|it| usize::try_from(it).unwrap())).unwrap_or(end);
        // An offset that does not exist any more.
        let from = if from < log.first || from > end { log.first } else { from };
        let until = end.min(from + most);
        for offset in from..until {
            let (probe, record) = log.records[offset - log.first].clone();
            if !intake.is_own(record.task) {
                continue;
            }
            let probe = NAMES[probe].parse().unwrap();
            intake.take(positions, i64::try_from(offset).unwrap(), &probe, record).unwrap();
        }
        *next = Some(until);
        intake.advance_all(positions).unwrap();
        let answers = intake.answers(0);
        match if has_faults { self.rng.u8(0..12) } else { 9 } {
            // Appended, but the collector receives an error; not appended; or appended and lost.
            0 => {
                intake.answer_again();
                self.answers.extend(answers);
            }
            1 => intake.answer_again(),
            2 => {}
            _ => self.answers.extend(answers),
        }
        if !has_faults || self.rng.bool() {
            let needed = intake.needed(i64::try_from(until).unwrap());
            positions.set_needed(number, PARTITIONS, needed).unwrap();
        }
    }

    pub(super) fn receive(&mut self, probe: usize, most: usize) {
        for _ in 0..most {
            let Some(answer) = self.answers.get(self.senders[probe].answer).cloned() else {
                return;
            };
            self.senders[probe].answer += 1;
            let name = ChannelName { task: answer.task, point: answer.point };
            if !self.channels.contains(&(probe, name)) {
                continue;
            }
            let spool = self.senders[probe].spool.as_ref().unwrap();
            let (newest, outbox) = self.sessions.get_mut(&name).unwrap();
            let Some(session) = outbox else { continue };
            if let Reaction::Restart(above) = session.receive(spool, &answer, self.now).unwrap() {
                (*newest, *outbox) = (above.max(*newest), None);
            }
        }
    }

    /// A random step, or fault.
    pub(super) fn step(&mut self) {
        let channel = self.channels[self.rng.usize(0..self.channels.len())];
        let number = self.rng.u32(0..PARTITIONS);
        let probe = self.rng.usize(0..NAMES.len());
        let at = self.rng.usize(0..self.stores.len());
        match self.rng.u8(0..100) {
            0..30 => self.hold(channel),
            30..55 => self.send(channel, true),
            55..75 => {
                let most = self.rng.usize(0..20);
                self.read(at, number, most, true);
            }
            75..90 => {
                let most = self.rng.usize(0..20);
                self.receive(probe, most);
            }
            90..93 => self.now += Duration::from_secs(self.rng.u64(1..40)),
            93..95 => self.restart_collector(at),
            95..97 => self.restart_probe(probe),
            // The partition is lost, and begins again.
            97 => self.logs[number as usize] = Log::default(),
            // Its newest records are lost.
            98 => {
                let log = &mut self.logs[number as usize];
                log.records.truncate(self.rng.usize(0..=log.records.len()));
            }
            // Its oldest records are deleted.
            _ => {
                let log = &mut self.logs[number as usize];
                let count = self.rng.usize(0..=log.records.len());
                log.records.drain(..count);
                log.first += count;
            }
        }
    }

    /// A round without faults.
    pub(super) fn round(&mut self) {
        self.now += Duration::from_secs(1);
        for channel in self.channels.clone() {
            self.hold(channel);
            self.send(channel, false);
        }
        for at in 0..self.stores.len() {
            (0..PARTITIONS).for_each(|it| self.read(at, it, usize::MAX / 2, false));
        }
        (0..NAMES.len()).for_each(|it| self.receive(it, usize::MAX));
    }

    pub(super) fn rows(&mut self) -> Vec<String> {
        self.stores[0].running = None;
        let rows = rows(&self.stores[0].folder.join("results.sqlite"));
        self.restart_collector(0);
        rows
    }

    pub(super) fn collector(&self, at: usize) -> &Collector {
        &self.stores[at].running.as_ref().unwrap().collector
    }

    /// Whether the current collectors of the tasks have all results.
    pub(super) fn is_settled(&self, until: [Time<wirestamp_clock::Utc>; 2]) -> bool {
        let [delay, volume] = until;
        self.histories().into_iter().all(|(task, history)| {
            let current = self.collector(*history.last().unwrap());
            let until = if task == VOLUME { volume } else { delay };
            current.settled_until(task).unwrap() == until
        })
    }

    /// Collectors of each task by epoch.
    pub(super) fn histories(&self) -> BTreeMap<u64, Vec<usize>> {
        let tasks = self.channels.iter().map(|(_, name)| name.task);
        tasks.map(|task| (task, self.controller.history(task))).collect()
    }
}
