//! Tasks that move between collectors, on request or because one is away, and a controller that restarts.

use sha2::{Digest, Sha256};

use super::*;

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

    /// Random steps, faults and moves, until all results are final. Returns the number of moves.
    pub(super) fn run(&mut self, until: [Time<wirestamp_clock::Utc>; 2]) -> usize {
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
        self.histories().values().map(|it| it.len() - 1).sum()
    }

    /// All results, as the controller shows them.
    fn export(&self) -> String {
        let running = self.stores.iter().map(|it| it.running.as_ref().unwrap());
        self.controller.export(running.map(|it| Arc::clone(&it.collector)))
    }
}

/// Runs every second seed from the first one on. Each number of collectors has its turn. Returns the number of moves.
fn check(first: u64, expected: &str, until: [Time<wirestamp_clock::Utc>; 2]) -> usize {
    let mut moves = 0;
    for seed in (first..seeds()).step_by(2) {
        let collectors = [2, 3, 5][usize::try_from(seed % 3).unwrap()];
        let mut world = World::new(seed, collectors, 1);
        moves += world.run(until);
        assert_eq!(world.export(), expected, "seed {seed}: {:?}", world.histories());
    }
    moves
}

#[test]
fn results_of_moved_tasks_are_those_of_direct_delivery() {
    let folder = folder();
    let file = folder.path().join("results.sqlite");
    let until = deliver_directly(&file);
    let tasks = tasks(1);
    let direct = Arc::new(Collector::new(Results::open(&file).unwrap(), tasks.clone()));
    let all = Arc::clone(&tasks.borrow());
    let expected = &*SimulatedPlacement::new(folder.path(), all, 1).export([direct]);
    let moves: usize = std::thread::scope(|scope| {
        let threads = [0, 1].map(|first| scope.spawn(move || check(first, expected, until)));
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert!(moves as u64 > 3 * seeds(), "{moves} moves");
    let digest = Sha256::digest(expected).iter().map(|it| format!("{it:02x}")).collect::<String>();
    println!("{} seeds, {moves} moves; SHA-256 of all exports: {digest}", seeds());
    println!("{expected}");
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
