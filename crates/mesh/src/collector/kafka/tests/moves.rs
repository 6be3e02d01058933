//! Tasks that move between collectors, on request or because one is away, and a controller that restarts.

use super::*;

/// Windows and histograms, and sums of counts: an interval may be divided between collectors.
fn merged(files: &[PathBuf]) -> Vec<String> {
    let (mut whole, mut counts) = (Vec::new(), BTreeMap::<Vec<i64>, [i64; 4]>::new());
    for file in files {
        let windows = rows(file).into_iter();
        let is_whole = |it: &String| {
            ["window", "histogram"].iter().any(|of| it.starts_with(of))
                && it.split(", ").nth(1) == Some("Integer(0)")
        };
        whole.extend(windows.filter(is_whole));
        let database = Connection::open(file).unwrap();
        let query = "SELECT task, begin, packets, bytes, missed, watched FROM count WHERE step = 0";
        let mut statement = database.prepare(query).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let of: Vec<i64> = (0..2).map(|it| row.get(it).unwrap()).collect();
            let sum = counts.entry(of).or_default();
            (2..).zip(sum).for_each(|(it, sum)| *sum += row.get::<_, i64>(it).unwrap());
        }
    }
    whole.sort();
    whole.extend(counts.into_iter().map(|(of, sum)| format!("count {of:?} {sum:?}")));
    whole
}

impl World {
    /// A collector reports to the controller, and receives its tasks and placements.
    fn place(&mut self, at: usize) {
        let begun = Arc::clone(&self.collector(at).begun().borrow());
        let (placed, here) = self.controller.exchange(at, begun.values().copied());
        let Store { tasks, epochs, .. } = &self.stores[at];
        epochs.send_replace(Arc::new(here));
        tasks.send_replace(Arc::new(placed));
        self.collector(at).hand_over();
    }

    /// The controller sends the placement of a task to a probe, which begins a new session if it has changed.
    fn place_at_probe(&mut self, name: ChannelName) {
        let newest = self.controller.epoch(name.task);
        if self.epochs.insert(name, newest) != Some(newest) {
            self.sessions.get_mut(&name).unwrap().1 = None;
        }
    }

    /// A move, or a fault of the controller.
    fn disturb(&mut self) {
        let at = self.rng.usize(0..self.stores.len());
        match self.rng.u8(0..8) {
            // Collectors and probes receive the placement later.
            0..4 => {
                let (_, name) = self.channels[self.rng.usize(0..self.channels.len())];
                self.controller.move_to(name.task, at);
            }
            4..6 => self.controller.restart(),
            _ => self.controller.disconnect(at),
        }
    }

    /// Random steps, faults and moves, until all results are final. Returns the files of the collectors, and the number
    /// of moves.
    pub(super) fn run(&mut self, until: [Time<wirestamp_clock::Utc>; 2]) -> (Vec<PathBuf>, usize) {
        let collectors = self.stores.len();
        for _ in 0..700 {
            match self.rng.u8(0..100) {
                0..4 => self.disturb(),
                4..10 => {
                    let at = self.rng.usize(0..collectors);
                    self.place(at);
                }
                10..18 => {
                    let (_, name) = self.channels[self.rng.usize(0..self.channels.len())];
                    self.place_at_probe(name);
                }
                // More of it than with one collector.
                18..32 => {
                    let (at, number) = (self.rng.usize(0..collectors), self.rng.u32(0..PARTITIONS));
                    self.read(at, number, 30, true);
                }
                _ => self.step(),
            }
        }
        let mut rounds = 0;
        while !self.is_settled(until) {
            if rounds % 8 == 0 {
                (0..collectors).for_each(|at| self.place(at));
            }
            for (_, name) in self.channels.clone() {
                self.place_at_probe(name);
            }
            self.round();
            rounds += 1;
            assert!(rounds < 400, "nothing is settled any more: {:?}", self.histories());
        }
        // Each receives what all have reported.
        (0..2 * collectors).for_each(|it| self.place(it % collectors));
        let moves = self.histories().values().map(|it| it.len() - 1).sum();
        self.stores.iter_mut().for_each(|it| it.running = None);
        let files = self.stores.iter().map(|it| it.folder.join("results.sqlite"));
        (files.collect(), moves)
    }
}

/// Runs every second seed from the first one on. Each number of collectors has its turn. Returns the number of moves.
fn check(first: u64, expected: &[String], until: [Time<wirestamp_clock::Utc>; 2]) -> usize {
    let mut moves = 0;
    for seed in (first..seeds()).step_by(2) {
        let collectors = [2, 3, 5][usize::try_from(seed % 3).unwrap()];
        let mut world = World::new(seed, collectors, 1);
        let (files, count) = world.run(until);
        moves += count;
        assert_eq!(merged(&files), expected, "seed {seed}: {:?}", world.histories());
    }
    moves
}

#[test]
fn results_of_moved_tasks_are_those_of_direct_delivery() {
    let folder = folder();
    let file = folder.path().join("results.sqlite");
    let until = deliver_directly(&file);
    let expected = merged(&[file]);
    let expected = &expected;
    let moves: usize = std::thread::scope(|scope| {
        let threads = [0, 1].map(|first| scope.spawn(move || check(first, expected, until)));
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert!(moves > 600, "{moves} moves");
    println!("{} seeds, {moves} moves", seeds());
}

#[test]
fn former_collector_does_not_answer() {
    let mut world = World::new(0, 3, 1);
    let inquiry = |session, epoch| Record {
        spool: 5,
        task: 1,
        first: 1,
        session,
        epoch: Some(epoch),
        what: Some(What::Inquiry(Inquiry { sent: 0 })),
        ..Record::default()
    };
    let part = Part { number: 1, begin: 0, more: true, body: vec![0; 9] };
    let batch = Record { what: Some(What::Part(part)), ..inquiry(8, 0) };
    let take = |world: &mut World, offset, record: Record| {
        let Running { positions, readings, .. } = world.stores[0].running.as_mut().unwrap();
        let intake = &mut readings[1].intake;
        if intake.is_own(record.task) {
            intake.take(positions, offset, &"roof".parse().unwrap(), record).unwrap();
        }
        intake.advance_all(positions).unwrap();
        let restarts: Vec<_> = intake.answers(0).iter().map(|it| it.restart).collect();
        (restarts, intake.needed(offset + 1))
    };
    assert_eq!(take(&mut world, 0, inquiry(8, 0)), (vec![false], 1));
    assert_eq!(take(&mut world, 1, batch.clone()), (vec![], 1));
    // It has moved, and the collector has not received that.
    assert_eq!(take(&mut world, 2, inquiry(9, 1)), (vec![], 3));
    assert_eq!(take(&mut world, 3, inquiry(8, 0)), (vec![false], 4));
    assert_eq!(take(&mut world, 4, batch), (vec![], 4));
    world.controller.move_to(1, 1);
    world.place(0);
    assert_eq!(take(&mut world, 5, inquiry(8, 0)), (vec![], 6));
    assert_eq!(take(&mut world, 6, inquiry(9, 1)), (vec![], 7));
    // It returns. Records of earlier placements have no answer.
    world.controller.move_to(1, 0);
    world.place(0);
    assert_eq!(take(&mut world, 7, inquiry(7, 0)), (vec![], 8));
    assert_eq!(take(&mut world, 8, inquiry(7, 2)), (vec![true], 9));
}
