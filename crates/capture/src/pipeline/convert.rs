//! Stage two: raw stamps become time, a batch at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

use rtrb::{Consumer, Producer};
use wirestamp_clock::{Domain, Stamp, Timeline};

use super::{OnEnd, Plan};
use crate::card_stamps;
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
        frames: impl Iterator<Item = &'a Frame> + Clone,
        plan: &Plan<'_>,
    ) -> &[Stamp] {
        self.raw.clear();
        self.raw.extend(frames.clone().map(|frame| frame.raw));
        self.stamps.clear();
        plan.clock.timeline(plan.domain).convert_batch(&self.raw, &mut self.stamps);
        if plan.domain == Domain::Nic {
            fill_in(&mut self.stamps, frames, &plan.clock.timeline(Domain::Realtime));
        }
        &self.stamps
    }
}

/// Puts the kernel's stamp in the place of the network card's where there is none: a stamp that says
/// of itself that it is of another clock.
fn fill_in<'a>(stamps: &mut [Stamp], frames: impl Iterator<Item = &'a Frame>, kernels: &Timeline) {
    for (stamp, frame) in stamps.iter_mut().zip(frames) {
        if let Some(kernel) = frame.kernel.filter(|_| frame.raw == card_stamps::NONE) {
            *stamp = kernels.convert(kernel);
        }
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

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use wirestamp_clock::{RawStamp, Span, Time};

    use super::*;
    use crate::receiver::Ticket;

    fn frame(raw: u64, kernel: Option<u64>) -> Frame {
        let (data, ticket) = (NonNull::dangling(), Ticket::Later);
        Frame { raw, kernel, data, captured: 0, length: 0, ticket }
    }

    #[test]
    fn the_kernels_stamp_takes_the_place_of_the_cards_only_where_there_is_none() {
        let frames = [frame(card_stamps::NONE, Some(9)), frame(5, None)];
        let by_card = |frame: &Frame| {
            let raw = RawStamp { domain: Domain::Nic, value: frame.raw };
            Stamp { raw, utc: Time::from_nanos(7), error: Span::ZERO }
        };
        let mut stamps = [by_card(&frames[0]), by_card(&frames[1])];
        fill_in(&mut stamps, frames.iter(), &Timeline::realtime());
        let expected = RawStamp { domain: Domain::Realtime, value: 9 };
        assert_eq!((stamps[0].raw, stamps[0].utc.as_nanos()), (expected, 9));
        assert_eq!(stamps[1], by_card(&frames[1]));
    }
}
