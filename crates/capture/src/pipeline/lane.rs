//! A lane: the acquiring and the converting thread of one receiver, and the two queues behind them.

use std::panic;
use std::sync::atomic::AtomicBool;
use std::thread::{self, Scope, ScopedJoinHandle, Thread};

use rtrb::RingBuffer;

use super::acquire::{self, Acquired, Handover};
use super::convert::{self, Converter};
use super::gather::Link;
use super::{OnEnd, Plan};
use crate::Error;
use crate::affinity::{self, Cores};
use crate::receiver::Receiver;

/// Frames that may wait between two stages.
const QUEUE: usize = 1 << 16;
/// Stretches of drops that may wait for the consumer: some ten seconds of them. What finds no room is
/// told with the next.
const MISSED_QUEUE: usize = 1024;

/// A lane's threads.
pub(super) struct Lane<'scope> {
    acquiring: ScopedJoinHandle<'scope, Acquired>,
    converting: ScopedJoinHandle<'scope, ()>,
}

impl Lane<'_> {
    /// Waits for both threads, which end after the stop is requested.
    pub(super) fn join(self) -> Acquired {
        let acquired = join(self.acquiring);
        join(self.converting);
        acquired
    }
}

/// Starts the lane of `receiver`; what it brings comes out of the link. `stalled` belongs to the
/// lane and its link.
pub(super) fn start<'scope, R: Receiver + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    receiver: R,
    cores: Cores,
    plan: &'scope Plan<'scope>,
    stalled: &'scope AtomicBool,
    consumer: &Thread,
) -> Result<(Lane<'scope>, Link<'scope>), Error> {
    let lender = receiver.lender();
    let (frames_in, frames_out) = RingBuffer::new(QUEUE);
    let (stamped_in, stamped_out) = RingBuffer::new(QUEUE);
    let (missed_in, missed) = RingBuffer::new(MISSED_QUEUE);
    let consumer = consumer.clone();
    let converting = spawn(scope, "ws-convert", plan, move || {
        affinity::pin(cores.convert);
        convert::convert(Converter::new(frames_out, stamped_in), plan, stalled, &consumer);
    })?;
    let converter = converting.thread().clone();
    let waker = converter.clone();
    let acquiring = spawn(scope, "ws-acquire", plan, move || {
        // Declared first, so that it is dropped last: the converter sees the end of the queue.
        let _end = OnEnd::new(plan.stop, &waker);
        affinity::pin(cores.acquire);
        let converter = waker.clone();
        let mut handover = Handover { frames: frames_in, missed: missed_in, converter };
        acquire::acquire(receiver, &mut handover, plan)
    })
    .inspect_err(|_| converter.unpark())?; // to see that no frames will come
    let link = Link { stamped: stamped_out, missed, stalled, converter, lender };
    Ok((Lane { acquiring, converting }, link))
}

/// Spawns a named stage.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
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
