//! A lane: the acquiring and the converting thread of one receiver, with their queues.

#[cfg(test)]
use std::cell::Cell;
#[cfg(test)]
use std::io;
use std::panic;
use std::sync::atomic::AtomicBool;
use std::thread::{self, Scope, ScopedJoinHandle, Thread};

use rtrb::RingBuffer;

use super::acquire::{self, AcquisitionResult, FrameSender};
use super::convert::{self, Connections, Converter};
use super::gather::LaneOutput;
use super::wakeup::Waiting;
use super::{PipelineContext, StopOnDrop};
use crate::Error;
use crate::affinity::{self, Cores};
use crate::receiver::Receiver;

/// Capacity of the queue between two stages, in frames.
const QUEUE: usize = 1 << 16;
/// Capacity of the queue of loss intervals: about ten seconds. Intervals without room are merged with the next one.
const MISSED_QUEUE: usize = 1024;

/// The threads of a lane.
pub(super) struct Lane<'scope> {
    acquiring: ScopedJoinHandle<'scope, AcquisitionResult>,
    converting: ScopedJoinHandle<'scope, ()>,
}

impl Lane<'_> {
    /// Waits for both threads, which end after the stop is requested.
    pub(super) fn join(self) -> AcquisitionResult {
        let acquired = join(self.acquiring);
        join(self.converting);
        acquired
    }
}

/// Number of waiting frames that ends the next stage's sleep between two polls: an eighth of the receiver's memory, so that both
/// stages leave most of it to the kernel.
fn many(receiver: &impl Receiver) -> usize {
    (receiver.capacity() / 8).clamp(1, QUEUE / 8)
}

/// Starts the lane of `receiver`; its packets come out of the output. `stalled` belongs to the lane and its output.
/// `consumer` runs on the thread `here`.
pub(super) fn start<'scope, R: Receiver + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    receiver: R,
    cores: Cores,
    context: &'scope PipelineContext<'scope>,
    stalled: &'scope AtomicBool,
    (consumer, here): (&Waiting, &Thread),
) -> Result<(Lane<'scope>, LaneOutput<'scope>), Error> {
    let frame_memory = receiver.frame_memory();
    let (frames_in, frames_out) = RingBuffer::new(QUEUE);
    let (stamped_in, stamped_out) = RingBuffer::new(QUEUE);
    let (missed_in, missed) = RingBuffer::new(MISSED_QUEUE);
    let many = many(&receiver);
    let consumer = consumer.wakeup(here.clone(), many);
    let waiting = Waiting::new();
    let state = waiting.clone();
    let converting = spawn(scope, "ws-convert", context, move || {
        affinity::pin(cores.convert);
        let converter = Converter::new(frames_out, stamped_in, context.clock);
        let connections = Connections { waiting, many, stalled, consumer };
        convert::convert(converter, context, connections);
    })?;
    let converter = converting.thread().clone();
    let wakeup = state.wakeup(converter.clone(), many);
    let acquiring = spawn(scope, "ws-acquire", context, move || {
        // Declared first, so that it is dropped last: the converter then sees the end of the queue.
        let _end = StopOnDrop::new(context.stop, wakeup.thread());
        affinity::pin(cores.acquire);
        let converter = wakeup.clone();
        let mut sender = FrameSender { frames: frames_in, missed: missed_in, converter };
        acquire::acquire(receiver, &mut sender, context)
    })
    .inspect_err(|_| converter.unpark())?; // so that it sees the end of the queue
    let stamped = stamped_out;
    let output = LaneOutput { stamped, missed, stalled, converter, many, frame_memory };
    Ok((Lane { acquiring, converting }, output))
}

/// Spawns a named stage.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    context: &PipelineContext<'_>,
    stage: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    let failed =
        |cause| Error::system("start a thread for the capture", &context.interface.name, "", cause);
    #[cfg(test)]
    take_startable().map_err(failed)?;
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, stage).map_err(failed)
}

#[cfg(test)]
thread_local! {
    /// Number of threads that this thread can still start.
    pub(super) static STARTABLE: Cell<u32> = const { Cell::new(u32::MAX) };
}

#[cfg(test)]
fn take_startable() -> io::Result<()> {
    let left = STARTABLE.get().checked_sub(1).ok_or(io::ErrorKind::WouldBlock)?;
    STARTABLE.set(left);
    Ok(())
}

fn join<T>(stage: ScopedJoinHandle<'_, T>) -> T {
    stage.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
}
