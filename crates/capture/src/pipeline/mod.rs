//! The three stages of a capture:
//!
//! - [`acquire`] reads the raw stamp and hands the frame on; no conversion, allocation or lock;
//! - [`convert`] turns raw stamps into time, in batches;
//! - [`consume`] filters where the kernel could not, and hands packets to the caller's [`Sink`].
//!
//! Raw stamps have each stage on a thread of its own, joined by two bounded queues. The first two
//! stages make a [`lane`]; a capture that the kernel spreads over several receivers has a lane for
//! each. The consumer [`gather`]s what they bring, merges it in the order of the stamps
//! ([`merge`]), and gives the memory back.
//!
//! Where the kernel stamps, no stamp is the better for a thread of its own: then [`inline`] has one
//! thread do it all in turn, which saves the wake-ups and the ways between cores.
//!
//! This is the offloading of Orosz & Skopko 2013, section III, with the packet bytes left where
//! the kernel put them. When a later stage cannot keep up, frames stay in the kernel's ring or
//! queue until that is full; the kernel counts what finds no room, and [`crate::Ledger`] all the
//! rest.

mod acquire;
mod consume;
mod convert;
mod drops;
mod gather;
mod inline;
mod lane;
mod merge;

use std::sync::atomic::AtomicBool;
use std::thread::{self, Thread};
use std::time::{Duration, SystemTime};

use wirestamp_clock::{ClockService, Domain, Time, Utc};

use acquire::Acquired;
pub use consume::{CapturedPacket, Sink};
use consume::{Consumed, Consumer};
use lane::Lane;
pub use merge::LATENESS;

use crate::affinity::{self, Cores};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::live_ledger::LiveLedger;
use crate::receiver::Receiver;
use crate::{CaptureLoss, Error, Ledger, Stop};

/// How the acquisition thread waits for the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It looks at the ring without pause. A raw stamp is then taken within a fraction of a
    /// microsecond of the packet, for the price of a whole core.
    Spin,
    /// It sleeps until the kernel wakes it. A raw stamp then carries the wake-up, some
    /// microseconds on an idle machine and more on a busy one.
    Block {
        /// Whether it gets real-time priority, so that nothing else on its core delays it further.
        /// Where that is not granted, the capture goes on without and
        /// [`Facts::notes`](crate::Facts::notes) says so. Not for a thread that spins: the kernel
        /// would stop it for 50 ms of every second (`sched_rt_runtime_us`, sched(7)).
        realtime: bool,
    },
}

/// When a capture ends by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit {
    /// After so many packets.
    pub packets: Option<u64>,
    /// After so long.
    pub duration: Option<Duration>,
}

/// What the stages share.
pub(crate) struct Plan<'a> {
    pub(crate) clock: &'a ClockService,
    pub(crate) domain: Domain,
    /// The clock of the kernel's stamps where a network card's are missing.
    pub(crate) instead_of_card: Domain,
    /// Whether packets come with their stamps, so that no thread of ours takes any.
    pub(crate) stamped: bool,
    /// Where the threads of each lane run; the first says it for the consumer too.
    pub(crate) lanes: &'a [Cores],
    pub(crate) wait: Wait,
    pub(crate) limit: Limit,
    pub(crate) stop: &'a Stop,
    pub(crate) interface: &'a Interface,
    /// Bytes of each packet that the sink gets.
    pub(crate) snaplen: u32,
    /// When the receivers were not open yet.
    pub(crate) opened: Time<Utc>,
    /// Where others look at the account meanwhile.
    pub(crate) live: &'a LiveLedger,
}

impl Plan<'_> {
    /// Whether one thread is enough: packets come with their stamps, and nothing was asked for that
    /// only a thread of its own can have.
    fn suits_one_thread(&self, receivers: usize) -> bool {
        self.stamped && receivers == 1 && self.wait == Wait::Block { realtime: false }
    }
}

/// Runs the three stages until the stop is requested or the limit reached, and accounts for every
/// packet. Each receiver has a lane of its own; the consumer, on the calling thread, merges what
/// they bring in the order of their stamps, and applies `filter` where the kernel cannot.
///
/// The error, if there is one, comes with the ledger up to that point.
pub(crate) fn run<R: Receiver>(
    receivers: Vec<R>,
    plan: &Plan<'_>,
    filter: Option<&Filter>,
    sink: &mut dyn Sink,
) -> (Ledger, Result<(), Error>) {
    let mut receivers = receivers;
    let mut consumer = Consumer::new(plan, filter, sink);
    if plan.suits_one_thread(receivers.len())
        && let Some(receiver) = receivers.pop()
    {
        let (consumer, acquired) = inline::run(receiver, consumer, plan);
        return account(consumer, plan, vec![acquired]);
    }
    let stalled: Vec<_> = receivers.iter().map(|_| AtomicBool::new(false)).collect();
    let here = thread::current();
    thread::scope(|scope| {
        // However this thread ends, the acquisition must not go on without it.
        let _end = OnEnd::new(plan.stop, &here);
        let mut started = Vec::with_capacity(receivers.len());
        let mut links = Vec::with_capacity(receivers.len());
        for ((receiver, stalled), &cores) in receivers.into_iter().zip(&stalled).zip(plan.lanes) {
            match lane::start(scope, receiver, cores, plan, stalled, &here) {
                Ok((lane, link)) => {
                    started.push(lane);
                    links.push(link);
                }
                Err(error) => return (Ledger::default(), Err(error)),
            }
        }
        affinity::pin(plan.lanes.first().and_then(|cores| cores.consume));
        gather::gather(links, &mut consumer);
        account(consumer, plan, started.into_iter().map(Lane::join).collect())
    })
}

/// Ends the consumer, and puts the kernel's counts beside its own. Of two failures the consumer's is
/// told: it is the one that the user of the packets has a name for.
fn account(
    mut consumer: Consumer<'_>,
    plan: &Plan<'_>,
    lanes: Vec<Acquired>,
) -> (Ledger, Result<(), Error>) {
    for lane in &lanes {
        // Of what is left in the kernel's memory, nothing tells when it came.
        let missed = CaptureLoss { from: plan.opened, until: now(), packets: lane.left_behind() };
        let left_behind = (missed.packets > 0).then_some(missed);
        lane.missed.iter().chain(&left_behind).for_each(|missed| consumer.missed(missed));
    }
    let Consumed { mut ledger, failure } = consumer.finish();
    let mut outcome = failure.map_or(Ok(()), Err);
    for lane in lanes {
        ledger.seen += lane.counts.seen;
        ledger.kernel_dropped += lane.counts.dropped;
        ledger.left_behind += lane.left_behind();
        ledger.stamped_late += lane.counts.stamped_late;
        ledger.fill_ring_empty += lane.counts.fill_ring_empty;
        outcome = outcome.and(lane.outcome);
    }
    (ledger, outcome)
}

/// The system's time. One that its type cannot hold is far from any stamp, which is all that anybody
/// here wants to know.
pub(crate) fn now() -> Time<Utc> {
    Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(i64::MAX))
}

/// Asks the capture to end and wakes the next stage when a stage ends, be it by a panic. It has
/// to be dropped after the stage's end of the queue, whose absence the next stage then sees.
struct OnEnd<'a> {
    stop: &'a Stop,
    next: &'a Thread,
}

impl<'a> OnEnd<'a> {
    fn new(stop: &'a Stop, next: &'a Thread) -> Self {
        Self { stop, next }
    }
}

impl Drop for OnEnd<'_> {
    fn drop(&mut self) {
        self.stop.request();
        self.next.unpark();
    }
}
