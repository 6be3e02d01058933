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

/// Frames on their way to their time.
pub(super) struct Converter {
    frames: Consumer<Frame>,
    stamped: Producer<Stamped>,
    // The batch that is being converted: kept, so that nothing is allocated for it.
    raw: Vec<u64>,
    stamps: Vec<Stamp>,
}

impl Converter {
    pub(super) fn new(frames: Consumer<Frame>, stamped: Producer<Stamped>) -> Self {
        let (raw, stamps) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        Self { frames, stamped, raw, stamps }
    }

    /// Converts a batch of what waits, as far as there is room; returns how many frames it has.
    pub(super) fn step(&mut self, plan: &Plan<'_>) -> usize {
        let count = self.frames.slots().min(self.stamped.slots()).min(BATCH);
        let Ok(chunk) = self.frames.read_chunk(count) else { return 0 };
        if count == 0 {
            return 0;
        }
        let (first, second) = chunk.as_slices();
        self.raw.clear();
        self.raw.extend(first.iter().chain(second).map(|frame| frame.raw));
        self.stamps.clear();
        plan.clock.timeline(plan.domain).convert_batch(&self.raw, &mut self.stamps);
        for (&frame, &stamp) in first.iter().chain(second).zip(&self.stamps) {
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
