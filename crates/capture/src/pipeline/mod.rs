//! The three stages of a capture:
//!
//! - [`acquire`] reads the raw stamp and passes the frame on, without conversion, allocation or lock;
//! - [`convert`] converts raw stamps to time, in batches;
//! - [`consume`] filters where the kernel cannot, and passes packets to the caller's [`Sink`].
//!
//! With raw stamps, each stage has a thread, connected by two bounded queues. The converter and the consumer are not
//! woken for each packet ([`wakeup`]), and the consumer avoids the acquisition's cores. The first two stages are a
//! [`lane`]; a capture that the kernel distributes over several receivers has a lane for each. The consumer
//! [`gather`]s packets from the lanes, merges them in the order of their stamps ([`merge`]), and releases the memory.
//!
//! Where the kernel stamps, separate threads do not improve stamps: [`inline`] runs all stages on one thread, which
//! saves wake-ups and transfers between cores.
//!
//! This is the offloading of Orosz & Skopko 2013, section III, but zero-copy: the buffer is released after the last
//! stage. When a later stage is too slow, frames stay in the kernel's ring or queue until that is full. The kernel
//! counts packets that find no room, and [`crate::Ledger`] all others.

mod acquire;
mod consume;
mod convert;
mod drops;
mod gather;
mod inline;
mod lane;
mod merge;
mod wakeup;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, SystemTime};

use wirestamp_clock::{ClockService, Domain, Time, Utc};

use acquire::AcquisitionResult;
pub use consume::{CapturedPacket, Sink};
use consume::{Consumer, ConsumerResult};
use lane::Lane;
pub use merge::MERGE_TIMEOUT;
use wakeup::Waiting;

use crate::affinity::{ConsumerPlace, Cores};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::live_ledger::LiveLedger;
use crate::receiver::Receiver;
use crate::{CaptureLoss, Error, Ledger, Stop};

/// How the acquisition thread waits for the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It polls the ring without pause. A raw stamp is then taken within a fraction of a microsecond of the packet,
    /// at the cost of a whole core.
    Spin,
    /// It sleeps until the kernel wakes it. A raw stamp then includes the wake-up latency: some microseconds on an
    /// idle machine, more on a busy one.
    Block {
        /// Whether it gets real-time priority, so that no other thread on its core delays it. If that is not
        /// granted, the capture continues without it and [`Facts::notes`](crate::Facts::notes) reports it. Not for
        /// a thread that spins: the kernel would stop it for 50 ms of every second (`sched_rt_runtime_us`,
        /// sched(7)).
        realtime: bool,
    },
}

/// A number of packets that several captures may deliver together.
#[derive(Clone, Debug)]
pub struct SharedCount(Arc<AtomicU64>);

impl SharedCount {
    /// A count of `packets` for all captures with a clone of it.
    #[must_use]
    pub fn new(packets: u64) -> Self {
        Self(Arc::new(AtomicU64::new(packets)))
    }

    /// Counts one packet, unless all were delivered.
    fn take(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// When a capture ends automatically.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit {
    /// After this number of packets.
    pub packets: Option<u64>,
    /// After this time.
    pub duration: Option<Duration>,
}

/// Settings and services shared by the stages.
pub(crate) struct PipelineContext<'a> {
    pub(crate) clock: &'a ClockService,
    pub(crate) domain: Domain,
    /// Clock domain of the kernel's stamps that replace missing stamps, if stamps can be missing.
    pub(crate) fallback: Option<Domain>,
    /// Whether packets arrive already stamped, so that no thread of this process stamps.
    pub(crate) stamped: bool,
    /// Cores of each lane; the first also sets the consumer's.
    pub(crate) lanes: &'a [Cores],
    pub(crate) wait: Wait,
    pub(crate) limit: Limit,
    pub(crate) shared_count: Option<&'a SharedCount>,
    pub(crate) stop: &'a Stop,
    pub(crate) interface: &'a Interface,
    /// Whether the capture continues while the interface is down.
    pub(crate) wait_for_interface: bool,
    /// Snap length: bytes of each packet that the sink receives.
    pub(crate) snaplen: u32,
    /// A time before the receivers were opened.
    pub(crate) opened: Time<Utc>,
    /// The ledger that other threads read.
    pub(crate) live: &'a LiveLedger,
}

impl PipelineContext<'_> {
    /// Whether packets can still arrive: now, or after the interface has come up again.
    fn check_interface(&self) -> Result<(), Error> {
        match self.interface.is_up() {
            Ok(false) if self.wait_for_interface => Ok(()),
            _ => self.interface.check(),
        }
    }

    /// Whether one thread is enough: packets arrive stamped, and neither spinning nor real-time priority is
    /// requested.
    fn suits_one_thread(&self, receivers: usize) -> bool {
        suits_one_thread(self.stamped, receivers, self.wait)
    }
}

/// Whether one thread is enough for `receivers` of packets that are `stamped` on arrival, or not.
pub(crate) fn suits_one_thread(stamped: bool, receivers: usize, wait: Wait) -> bool {
    stamped && receivers == 1 && wait == Wait::Block { realtime: false }
}

/// Runs the three stages until the stop is requested or the limit is reached. Each receiver has a lane. The
/// consumer, on the calling thread, merges the lanes in the order of their stamps, and applies `filter` where the
/// kernel cannot.
///
/// The ledger is complete in case of an error, too.
pub(crate) fn run<R: Receiver>(
    receivers: Vec<R>,
    context: &PipelineContext<'_>,
    filter: Option<&Filter>,
    sink: &mut dyn Sink,
) -> (Ledger, Result<(), Error>) {
    let mut receivers = receivers;
    let mut consumer = Consumer::new(context, filter, sink);
    if context.suits_one_thread(receivers.len())
        && let Some(receiver) = receivers.pop()
    {
        let (consumer, acquired) = inline::run(receiver, consumer, context);
        return complete_ledger(consumer, context, vec![acquired]);
    }
    let stalled: Vec<_> = receivers.iter().map(|_| AtomicBool::new(false)).collect();
    let here = thread::current();
    let waiting = Waiting::new();
    thread::scope(|scope| {
        // The acquisition must end with this thread, also after an error or a panic.
        let _end = StopOnDrop::new(context.stop, &here);
        let mut started = Vec::with_capacity(receivers.len());
        let mut outputs = Vec::with_capacity(receivers.len());
        for ((receiver, stalled), &cores) in receivers.into_iter().zip(&stalled).zip(context.lanes)
        {
            match lane::start(scope, receiver, cores, context, stalled, (&waiting, &here)) {
                Ok((lane, output)) => {
                    started.push(lane);
                    outputs.push(output);
                }
                Err(error) => {
                    // Packets of the lanes before count as dropped by the consumer.
                    consumer.fail(error);
                    break;
                }
            }
        }
        let _place = ConsumerPlace::take(context.lanes);
        gather::gather(outputs, waiting, &mut consumer);
        complete_ledger(consumer, context, started.into_iter().map(Lane::join).collect())
    })
}

/// Ends the consumer, and adds the kernel's counts to its ledger. Of two failures the consumer's is returned, which
/// the user can act on.
fn complete_ledger(
    mut consumer: Consumer<'_>,
    context: &PipelineContext<'_>,
    lanes: Vec<AcquisitionResult>,
) -> (Ledger, Result<(), Error>) {
    for lane in &lanes {
        // The arrival time of packets left in the kernel's memory is unknown.
        let missed =
            CaptureLoss { from: context.opened, until: now(), packets: lane.left_behind() };
        let left_behind = (missed.packets > 0).then_some(missed);
        lane.missed.iter().chain(&left_behind).for_each(|missed| consumer.missed(missed));
    }
    let ConsumerResult { mut ledger, failure } = consumer.finish();
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

/// The system's time. A time beyond the range of the type is far from any stamp, which is sufficient here.
pub(crate) fn now() -> Time<Utc> {
    Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(i64::MAX))
}

/// Requests the stop and wakes the next stage when a stage ends, also by a panic. It has to be dropped after the
/// stage's end of the queue, so that the next stage then sees the end.
struct StopOnDrop<'a> {
    stop: &'a Stop,
    next: &'a Thread,
}

impl<'a> StopOnDrop<'a> {
    fn new(stop: &'a Stop, next: &'a Thread) -> Self {
        Self { stop, next }
    }
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.stop.request();
        self.next.unpark();
    }
}

#[cfg(test)]
mod tests;
