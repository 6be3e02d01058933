//! Correlators on several cores.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use wirestamp_clock::{DifferenceClock, Time, Utc};
use wirestamp_packet::FlowKey;

use crate::correlator::hash_of_flow;
use crate::{CaptureLoss, Config, Correlator, Observation, Outcome, Point};

/// Observations between two deliveries to the shards.
const BATCH: usize = 4096;
/// Deliveries that a shard may be behind before the caller has to wait for it.
const BEHIND: usize = 8;

/// Several correlators, each on a thread of its own, that share two points' observations.
///
/// # Shared by flow
///
/// All packets of a flow go to one shard, because reordering and delay variation are about the order
/// within a flow. An identity contains what makes the flow, so that a packet meets its counterpart,
/// its copies and its twins there. Shared by identity the load would be spread more evenly, and one
/// flow over several cores, but what says whether a packet is reordered would be spread as well, and
/// would have to be brought together in the order of departure: by one thread.
///
/// The outcomes are those of one correlator; shards are told the times of both points, which packets
/// of other flows move on too. Two things differ: each shard has its part of the memory, and gives up
/// when that is used up; and a stretch in which a capture lost packets
/// ([`Correlator::missed`]) may account for so many packets in each shard, because whose they were
/// nobody knows. With several shards, then, what the network lost may be counted too low by what the
/// captures lost, but nothing is counted as lost that the capture may have lost.
pub struct Shards<T> {
    shards: Vec<Shard<T>>,
    /// What is on its way to the shards, in all.
    pending: usize,
    /// The times of A and of B.
    times: [Time<Utc>; 2],
    seed: u64,
}

struct Shard<T> {
    pending: Vec<Told>,
    sender: SyncSender<Delivery>,
    thread: JoinHandle<T>,
}

/// What a shard is told, and the times of both points after it.
struct Delivery {
    told: Vec<Told>,
    times: [Time<Utc>; 2],
}

enum Told {
    /// With its place, which observations of other shards may have moved on.
    Seen(Point, Observation, Time<Utc>),
    Missed(Point, CaptureLoss),
    Clock(DifferenceClock),
}

impl<T: Send + 'static> Shards<T> {
    /// So many shards, at least one, which share the memory in equal parts. Each has a state by
    /// `begin`, to which `record` adds its outcomes.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn new(
        shards: usize,
        config: Config,
        mut begin: impl FnMut() -> T,
        record: impl Fn(&mut T, Outcome) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let shards = shards.max(1);
        let config = Config { memory: config.memory / shards, ..config };
        let shard = |number| {
            let (sender, receiver) = sync_channel(BEHIND);
            let (state, record) = (begin(), record.clone());
            let correlate = move || correlate(config, &receiver, state, &record);
            let thread = thread::Builder::new().name(format!("shard-{number}")).spawn(correlate)?;
            Ok(Shard { pending: Vec::new(), sender, thread })
        };
        Ok(Self {
            shards: (0..shards).map(shard).collect::<io::Result<_>>()?,
            pending: 0,
            times: [Time::from_nanos(i64::MIN); 2],
            seed: RandomState::new().hash_one(0),
        })
    }

    /// [`Correlator::set_difference_clock`].
    pub fn set_difference_clock(&mut self, clock: DifferenceClock) {
        for shard in &mut self.shards {
            shard.pending.push(Told::Clock(clock));
        }
    }

    /// Takes the next observation of a point ([`Correlator::observe`]).
    pub fn observe(&mut self, point: Point, observation: Observation) {
        let time = &mut self.times[usize::from(point == Point::B)];
        *time = observation.stamp.utc.max(*time);
        let told = Told::Seen(point, observation, *time);
        let shard = self.shard_of(&observation.flow);
        self.shards[shard].pending.push(told);
        self.pending += 1;
        if self.pending >= BATCH {
            self.deliver();
        }
    }

    /// The capture at `point` lost packets ([`Correlator::missed`]).
    pub fn missed(&mut self, point: Point, missed: CaptureLoss) {
        // A stretch begins where the point's time is.
        let from = missed.from.max(self.times[usize::from(point == Point::B)]);
        for shard in &mut self.shards {
            shard.pending.push(Told::Missed(point, CaptureLoss { from, ..missed }));
        }
    }

    /// Decides everything that is still open; returns the states of the shards.
    pub fn finish(mut self) -> Vec<T> {
        self.deliver();
        let threads: Vec<_> = self.shards.into_iter().map(|shard| shard.thread).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    }

    #[expect(clippy::cast_possible_truncation, reason = "below the number of shards")]
    fn shard_of(&self, flow: &FlowKey) -> usize {
        let hash = hash_of_flow(flow, self.seed);
        ((u128::from(hash) * self.shards.len() as u128) >> 64) as usize
    }

    /// Delivers to all shards, so that each knows how far the points are.
    fn deliver(&mut self) {
        self.pending = 0;
        for shard in &mut self.shards {
            let told = Vec::with_capacity(shard.pending.len());
            let told = std::mem::replace(&mut shard.pending, told);
            // It fails only if the shard has panicked, which `finish` passes on.
            let _ = shard.sender.send(Delivery { told, times: self.times });
        }
    }
}

/// What runs on each thread.
fn correlate<T>(
    config: Config,
    deliveries: &Receiver<Delivery>,
    mut state: T,
    record: &impl Fn(&mut T, Outcome),
) -> T {
    let mut correlator = Correlator::new(config);
    let mut sink = |outcome| record(&mut state, outcome);
    for Delivery { told, times } in deliveries {
        for told in told {
            match told {
                Told::Seen(point, observation, place) => {
                    correlator.pass(point, place);
                    correlator.observe(point, observation, &mut sink);
                }
                Told::Missed(point, missed) => correlator.missed(point, missed),
                Told::Clock(clock) => correlator.set_difference_clock(clock),
            }
        }
        for (point, time) in [Point::A, Point::B].into_iter().zip(times) {
            correlator.advance(point, time, &mut sink);
        }
    }
    correlator.finish(&mut sink);
    state
}
