//! The three stages of a capture, each on a thread of its own, joined by two bounded queues:
//!
//! - [`acquire`] reads the raw stamp and hands the frame on; no conversion, allocation or lock;
//! - [`convert`] turns raw stamps into time, in batches, on another core;
//! - [`consume`] filters where the kernel could not, hands packets to the caller's [`Sink`], and
//!   gives their memory back.
//!
//! This is the offloading of Orosz & Skopko 2013, section III, with the packet bytes left where
//! the kernel put them. When a later stage cannot keep up, frames stay in the kernel's ring until
//! that is full: the only place where the pipeline loses packets, and the kernel counts them.

mod acquire;
mod consume;
mod convert;

use std::panic;
use std::sync::atomic::AtomicBool;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use rtrb::RingBuffer;
use wirestamp_clock::{ClockService, Domain};

pub use consume::{Captured, Sink};
use consume::{Consumed, Link};

use crate::affinity::{self, Cores};
use crate::filter::Filter;
use crate::receiver::{KernelCounts, Receiver};
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
    pub(crate) interface: &'a str,
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
        let converting = spawn(scope, "ws-convert", move || {
            affinity::pin(plan.cores.convert);
            convert::convert(frames_out, stamped_in, plan, stalled, consumer);
        });
        let converter = converting.thread().clone();
        let waker = converter.clone();
        let acquiring = spawn(scope, "ws-acquire", move || {
            affinity::pin(plan.cores.acquire);
            acquire::acquire(receiver, frames_in, &waker, plan)
        });
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
fn account(
    consumed: Consumed,
    acquired: Result<KernelCounts, Error>,
) -> (Ledger, Result<(), Error>) {
    let mut ledger = consumed.ledger;
    let acquired = acquired.map(|counts| {
        ledger.seen = counts.seen;
        ledger.kernel_dropped = counts.dropped;
        ledger.stamped_late = counts.stamped_late;
    });
    (ledger, consumed.failure.map_or(acquired, Err))
}

/// Spawns a named stage. A stage that ends drops its queues, at which the others end too.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    stage: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn_scoped(scope, stage)
        .expect("a process that has come this far can start a thread")
}

fn join<T>(stage: ScopedJoinHandle<'_, T>) -> T {
    stage.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
}
