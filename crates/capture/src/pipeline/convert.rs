//! Stage two: raw stamps become time, a batch at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

use rtrb::{Consumer, Producer};
use wirestamp_clock::Stamp;

use super::{OnEnd, Plan};
use crate::receiver::Frame;

/// Frames that are converted in one go: enough to spread the cost of looking up the timeline, few
/// enough to stay in the first-level cache.
const BATCH: usize = 256;

/// A frame and its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamped {
    pub(super) frame: Frame,
    pub(super) stamp: Stamp,
}

/// Raw stamps and their time, a batch at once. It is kept, so that nothing is allocated for it.
#[derive(Debug)]
pub(super) struct Batch {
    raw: Vec<u64>,
    stamps: Vec<Stamp>,
}

impl Batch {
    pub(super) fn new(frames: usize) -> Self {
        Self { raw: Vec::with_capacity(frames), stamps: Vec::with_capacity(frames) }
    }

    /// The stamps of `frames`, in their order.
    pub(super) fn convert<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a Frame>,
        plan: &Plan<'_>,
    ) -> &[Stamp] {
        self.raw.clear();
        self.raw.extend(frames.map(|frame| frame.raw));
        self.stamps.clear();
        plan.clock.timeline(plan.domain).convert_batch(&self.raw, &mut self.stamps);
        &self.stamps
    }
}

/// Frames on their way to their time.
pub(super) struct Converter {
    frames: Consumer<Frame>,
    stamped: Producer<Stamped>,
    batch: Batch,
}

impl Converter {
    pub(super) fn new(frames: Consumer<Frame>, stamped: Producer<Stamped>) -> Self {
        Self { frames, stamped, batch: Batch::new(BATCH) }
    }

    /// Converts a batch of what waits, as far as there is room; returns how many frames it has.
    fn step(&mut self, plan: &Plan<'_>) -> usize {
        let count = self.frames.slots().min(self.stamped.slots()).min(BATCH);
        let Ok(chunk) = self.frames.read_chunk(count) else { return 0 };
        let (first, second) = chunk.as_slices();
        let stamps = self.batch.convert(first.iter().chain(second), plan);
        for (&frame, &stamp) in first.iter().chain(second).zip(stamps) {
            self.stamped.push(Stamped { frame, stamp }).expect("so much room was just counted");
        }
        chunk.commit_all();
        count
    }
}

/// Converts until the queue of frames has ended. `stalled` tells the consumer that this thread
/// waits for room rather than for frames, and wants to be woken when there is some.
pub(super) fn convert(
    converter: Converter,
    plan: &Plan<'_>,
    stalled: &AtomicBool,
    consumer: &Thread,
) {
    // Declared first, so that it is dropped last: the consumer sees the end of the queue.
    let _end = OnEnd::new(plan.stop, consumer);
    let mut converter = converter;
    loop {
        // Asked before the step, so that frames pushed just before the end are not missed.
        let ended = converter.frames.is_abandoned();
        if converter.step(plan) > 0 {
            consumer.unpark();
        } else if !converter.frames.is_empty() {
            stalled.store(true, Ordering::SeqCst);
            // The consumer may have made room, and have looked at the flag, just before.
            if converter.stamped.is_full() && !converter.stamped.is_abandoned() {
                thread::park();
            }
            if converter.stamped.is_abandoned() {
                break;
            }
        } else if ended {
            break;
        } else {
            thread::park();
        }
    }
}
