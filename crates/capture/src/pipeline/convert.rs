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

/// Converts until the queue of frames has ended. `stalled` tells the consumer that this thread
/// waits for room rather than for frames, and wants to be woken when there is some.
pub(super) fn convert(
    frames: Consumer<Frame>,
    stamped: Producer<Stamped>,
    plan: &Plan<'_>,
    stalled: &AtomicBool,
    consumer: &Thread,
) {
    // Declared first, so that it is dropped last: the consumer sees the end of the queue.
    let _end = OnEnd::new(plan.stop, consumer);
    let (mut frames, mut stamped) = (frames, stamped);
    let mut raw = Vec::with_capacity(BATCH);
    let mut stamps = Vec::with_capacity(BATCH);
    loop {
        // Asked before the count, so that frames pushed just before the end are not missed.
        let ended = frames.is_abandoned();
        let waiting = frames.slots();
        let count = waiting.min(stamped.slots()).min(BATCH);
        if count > 0 {
            convert_batch(&mut frames, &mut stamped, count, plan, (&mut raw, &mut stamps));
            consumer.unpark();
        } else if waiting > 0 {
            stalled.store(true, Ordering::SeqCst);
            // The consumer may have made room, and have looked at the flag, just before.
            if stamped.slots() == 0 && !stamped.is_abandoned() {
                thread::park();
            }
            if stamped.is_abandoned() {
                break;
            }
        } else if ended {
            break;
        } else {
            thread::park();
        }
    }
}

fn convert_batch(
    frames: &mut Consumer<Frame>,
    stamped: &mut Producer<Stamped>,
    count: usize,
    plan: &Plan<'_>,
    (raw, stamps): (&mut Vec<u64>, &mut Vec<Stamp>),
) {
    let chunk = frames.read_chunk(count).expect("so many frames were just counted");
    let (first, second) = chunk.as_slices();
    raw.clear();
    raw.extend(first.iter().chain(second).map(|frame| frame.raw));
    stamps.clear();
    plan.clock.timeline(plan.domain).convert_batch(raw, stamps);
    for (&frame, &stamp) in first.iter().chain(second).zip(&*stamps) {
        stamped.push(Stamped { frame, stamp }).expect("so much room was just counted");
    }
    chunk.commit_all();
}
