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
            fill_in(&mut self.stamps, frames, &plan.clock.timeline(plan.instead_of_card));
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
    use std::sync::Arc;

    use wirestamp_clock::{Calibrator, Clocks, MonotonicRaw, RawStamp, Time, Utc};

    use super::*;
    use crate::receiver::Ticket;

    fn frame(raw: u64, kernel: Option<u64>) -> Frame {
        let (data, ticket) = (NonNull::dangling(), Ticket::Later);
        Frame { raw, kernel, data, captured: 0, length: 0, ticket }
    }

    /// A clock that was started so many nanoseconds after 1970 and counts nanoseconds. To read it, or
    /// one of the system's, takes 20 of them.
    struct MadeUp {
        epoch: i64,
        now: u64,
    }

    impl Clocks for MadeUp {
        fn raw(&mut self) -> u64 {
            self.now += 20;
            self.now
        }

        fn utc(&mut self) -> Time<Utc> {
            Time::from_nanos(self.epoch + self.raw().cast_signed())
        }

        fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
            Time::from_nanos(self.raw().cast_signed())
        }
    }

    /// What it shows when it is calibrated.
    const START: u64 = 1 << 40;

    /// The timeline of such a clock.
    fn timeline(domain: Domain, epoch: i64) -> Arc<Timeline> {
        Calibrator::new(domain, MadeUp { epoch, now: START }, 1).unwrap().timeline()
    }

    #[test]
    fn the_cards_stamps_and_those_in_their_place_are_converted_each_by_its_own_clock() {
        let (by_card, since_boot) = (5_000_000_000, 1_700_000_000_000_000_000);
        let card = timeline(Domain::Nic, by_card);
        for kernels in [Arc::new(Timeline::realtime()), timeline(Domain::Monotonic, since_boot)] {
            let epoch = if kernels.domain() == Domain::Realtime { 0 } else { since_boot };
            let value = START + 1_000;
            let frames = [frame(card_stamps::NONE, Some(value)), frame(value, None)];
            let mut stamps = Vec::new();
            card.convert_batch(&frames.map(|frame| frame.raw), &mut stamps);
            fill_in(&mut stamps, frames.iter(), &kernels);
            let told = stamps.iter().zip([(kernels.domain(), epoch), (Domain::Nic, by_card)]);
            for (stamp, (domain, epoch)) in told {
                assert_eq!(stamp.raw, RawStamp { domain, value });
                let off = stamp.utc - Time::from_nanos(epoch + value.cast_signed());
                assert!(off.abs() <= stamp.error, "{domain:?}: {off:?}, within {:?}", stamp.error);
            }
        }
    }
}
