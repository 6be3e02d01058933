//! Correlators on several cores.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use wirestamp_clock::{DifferenceClock, Time, Utc};
use wirestamp_packet::FlowKey;

use crate::correlator::hash_of_flow;
use crate::{CaptureLoss, Config, Correlator, Observation, Outcome, Point};

/// Observations per batch.
const BATCH_LEN: usize = 4096;
/// Max batches queued for a shard before the caller has to wait.
const MAX_QUEUED_BATCHES: usize = 8;

/// Several correlators, each on its own thread, that share the observations of two points.
///
/// # Shared by flow
///
/// All packets of a flow belong to one shard, because reordering and delay variation depend on the order within a
/// flow. An identity includes the flow, so a packet has its counterpart, its duplicates and its twins in the same
/// shard. Sharing by identity would balance the load better, and spread one flow over several cores; but the state for
/// reordering would be spread as well, and would have to be merged in the order of departure by one thread.
///
/// The outcomes are those of one correlator, because each shard receives the times of both points, which packets of
/// other flows advance too. There are two differences. Each shard has its part of the memory, and its packets become
/// undetermined when that is used up. And each shard may assign as many packets to a capture loss
/// ([`Correlator::missed`]) as were lost in total, because their flows are unknown. With several shards, the network
/// loss may be underestimated by the capture loss, but never overestimated.
pub struct Shards<T> {
    shards: Vec<Shard<T>>,
    /// Number of observations pending for all shards.
    pending: usize,
    /// Times of A and B.
    times: [Time<Utc>; 2],
    seed: u64,
}

struct Shard<T> {
    pending: Vec<Message>,
    sender: SyncSender<Batch>,
    thread: JoinHandle<T>,
}

/// Messages to a shard, and the times of both points after them.
struct Batch {
    messages: Vec<Message>,
    times: [Time<Utc>; 2],
}

enum Message {
    /// Observation with its place, which observations of other shards may have advanced.
    Observed(Point, Observation, Time<Utc>),
    Missed(Point, CaptureLoss),
    Clock(DifferenceClock),
}

impl<T: Send + 'static> Shards<T> {
    /// Starts `shards` threads, at least one, which share the memory equally. `begin` creates the state of each, and
    /// `record` adds its outcomes to it.
    ///
    /// # Errors
    ///
    /// A thread cannot be started.
    pub fn new(
        shards: usize,
        config: Config,
        mut begin: impl FnMut() -> T,
        record: impl Fn(&mut T, Outcome) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let shards = shards.max(1);
        let config = Config { memory: config.memory / shards, ..config };
        let shard = |number| {
            let (sender, receiver) = sync_channel(MAX_QUEUED_BATCHES);
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
            shard.pending.push(Message::Clock(clock));
        }
    }

    /// Records the next observation of a point ([`Correlator::observe`]).
    pub fn observe(&mut self, point: Point, observation: Observation) {
        let time = &mut self.times[usize::from(point == Point::B)];
        *time = observation.stamp.utc.max(*time);
        let message = Message::Observed(point, observation, *time);
        let shard = self.shard_of(&observation.flow);
        self.shards[shard].pending.push(message);
        self.pending += 1;
        if self.pending >= BATCH_LEN {
            self.deliver();
        }
    }

    /// Records a capture loss at `point` ([`Correlator::missed`]).
    pub fn missed(&mut self, point: Point, missed: CaptureLoss) {
        // A loss interval begins at the point's time or later.
        let from = missed.from.max(self.times[usize::from(point == Point::B)]);
        for shard in &mut self.shards {
            shard.pending.push(Message::Missed(point, CaptureLoss { from, ..missed }));
        }
    }

    /// Decides all open observations; returns the states of the shards.
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

    /// Sends the pending messages to all shards, with the times of the points.
    fn deliver(&mut self) {
        self.pending = 0;
        for shard in &mut self.shards {
            let messages = Vec::with_capacity(shard.pending.len());
            let messages = std::mem::replace(&mut shard.pending, messages);
            // Fails only if the shard has panicked, which `finish` propagates.
            let _ = shard.sender.send(Batch { messages, times: self.times });
        }
    }
}

/// Thread of a shard.
fn correlate<T>(
    config: Config,
    batches: &Receiver<Batch>,
    mut state: T,
    record: &impl Fn(&mut T, Outcome),
) -> T {
    let mut correlator = Correlator::new(config);
    let mut sink = |outcome| record(&mut state, outcome);
    for Batch { messages, times } in batches {
        for message in messages {
            match message {
                Message::Observed(point, observation, place) => {
                    correlator.pass(point, place);
                    correlator.observe(point, observation, &mut sink);
                }
                Message::Missed(point, missed) => correlator.missed(point, missed),
                Message::Clock(clock) => correlator.set_difference_clock(clock),
            }
        }
        for (point, time) in [Point::A, Point::B].into_iter().zip(times) {
            correlator.advance(point, time, &mut sink);
        }
    }
    correlator.finish(&mut sink);
    state
}
