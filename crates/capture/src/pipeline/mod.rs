//! The three stages of a capture, each on a thread of its own, joined by two bounded queues:
//!
//! - [`acquire`] reads the raw stamp and hands the frame on; no conversion, allocation or lock;
//! - [`convert`] turns raw stamps into time, in batches, on another core;
//! - [`consume`] filters where the kernel could not, hands packets to the caller's [`Sink`], and
//!   gives their memory back.
//!
//! This is the offloading of Orosz & Skopko 2013, section III, with the packet bytes left where
//! the kernel put them. When a later stage cannot keep up, frames stay in the kernel's ring or
//! queue until that is full; the kernel counts what finds no room, and [`crate::Ledger`] all the
//! rest.

mod acquire;
mod consume;
mod convert;

use std::panic;
use std::sync::atomic::AtomicBool;
use std::thread::{self, ScopedJoinHandle, Thread};
use std::time::Duration;

use rtrb::RingBuffer;
use wirestamp_clock::{ClockService, Domain};

use acquire::Acquired;
pub use consume::{Captured, Sink};
use consume::{Consumed, Link};

use crate::affinity::{self, Cores};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::receiver::Receiver;
use crate::{Error, Ledger, Stop};

/// Frames that may wait between two stages.
const QUEUE: usize = 1 << 16;

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
    pub(crate) cores: Cores,
    pub(crate) wait: Wait,
    pub(crate) limit: Limit,
    pub(crate) stop: &'a Stop,
    pub(crate) interface: &'a Interface,
    /// Bytes of each packet that the sink gets.
    pub(crate) snaplen: u32,
}

/// Runs the three stages until the stop is requested or the limit reached, and accounts for every
/// packet. The consumer runs on the calling thread, and applies `filter` where the kernel cannot.
///
/// The error, if there is one, comes with the ledger up to that point.
pub(crate) fn run<R: Receiver>(
    receiver: R,
    plan: &Plan<'_>,
    filter: Option<&Filter>,
    sink: &mut dyn Sink,
) -> (Ledger, Result<(), Error>) {
    let lender = receiver.lender();
    let (frames_in, frames_out) = RingBuffer::new(QUEUE);
    let (stamped_in, stamped_out) = RingBuffer::new(QUEUE);
    let stalled = AtomicBool::new(false);
    let consumer = thread::current();
    thread::scope(|scope| {
        let (stalled, consumer) = (&stalled, &consumer);
        // However this thread ends, the acquisition must not go on without it.
        let _end = OnEnd::new(plan.stop, consumer);
        let converting = spawn(scope, "ws-convert", plan, move || {
            affinity::pin(plan.cores.convert);
            convert::convert(frames_out, stamped_in, plan, stalled, consumer);
        });
        let converting = match converting {
            Ok(converting) => converting,
            Err(error) => return (Ledger::default(), Err(error)),
        };
        let converter = converting.thread().clone();
        let waker = converter.clone();
        let acquiring = spawn(scope, "ws-acquire", plan, move || {
            affinity::pin(plan.cores.acquire);
            acquire::acquire(receiver, frames_in, &waker, plan)
        });
        let acquiring = match acquiring {
            Ok(acquiring) => acquiring,
            Err(error) => {
                converter.unpark(); // to see that no frames will come
                return (Ledger::default(), Err(error));
            }
        };
        affinity::pin(plan.cores.consume);
        let link = Link { stamped: stamped_out, stalled, converter: &converter, lender };
        let consumed = consume::consume(link, plan, filter, sink);
        let acquired = join(acquiring);
        join(converting);
        account(consumed, acquired)
    })
}

/// Puts the kernel's counts beside the consumer's. Of two failures the consumer's is told: it is
/// the one that the user of the packets has a name for.
fn account(consumed: Consumed, acquired: Acquired) -> (Ledger, Result<(), Error>) {
    let Acquired { counts, frames, outcome } = acquired;
    let ledger = Ledger {
        seen: counts.seen,
        kernel_dropped: counts.dropped,
        left_behind: counts.seen.saturating_sub(counts.dropped).saturating_sub(frames),
        stamped_late: counts.stamped_late,
        ..consumed.ledger
    };
    (ledger, consumed.failure.map_or(outcome, Err))
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

/// Spawns a named stage.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    plan: &Plan<'_>,
    stage: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, stage).map_err(|cause| {
        Error::system("start a thread for the capture", &plan.interface.name, "", cause)
    })
}

fn join<T>(stage: ScopedJoinHandle<'_, T>) -> T {
    stage.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
}
