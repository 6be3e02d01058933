//! Stage two: converts raw stamps to time, in batches.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rtrb::{Consumer, Producer};
use wirestamp_clock::{ClockService, CounterValues, Stamp, Timeline};

use super::wakeup::{Queued, Waiting, Wakeup};
use super::{PipelineContext, StopOnDrop};
use crate::card_stamps;
use crate::receiver::Frame;

/// Frames per batch: enough to amortize the lookup of the timeline, few enough for the first-level cache.
const BATCH: usize = 256;

/// A frame with its time.
#[derive(Debug)]
pub(super) struct Stamped {
    pub(super) frame: Frame,
    pub(super) stamp: Stamp,
}

/// Buffers for one batch of stamps, kept to avoid allocation.
#[derive(Debug)]
pub(super) struct Batch {
    raw: Vec<u64>,
    stamps: Vec<Stamp>,
    counter_values: CounterValues,
}

impl Batch {
    pub(super) fn new(frames: usize, clock: &ClockService) -> Self {
        let (raw, stamps) = (Vec::with_capacity(frames), Vec::with_capacity(frames));
        Self { raw, stamps, counter_values: clock.counter_values() }
    }

    /// The stamps of `frames`, in their order. Stamps of the kernel get the counter's values at the same time, where
    /// these are known exactly.
    pub(super) fn convert<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a Frame> + Clone,
        context: &PipelineContext<'_>,
    ) -> &[Stamp] {
        self.raw.clear();
        self.raw.extend(frames.clone().map(|frame| frame.raw));
        self.stamps.clear();
        context.clock.convert_batch(context.domain, &self.raw, &mut self.stamps);
        if let Some(fallback) = context.fallback {
            replace_missing(&mut self.stamps, frames, &context.clock.timeline(fallback));
        } else {
            self.counter_values.replace(&mut self.stamps);
        }
        &self.stamps
    }
}

/// Replaces missing stamps by the kernel's. The stamp's domain identifies its clock.
fn replace_missing<'a>(
    stamps: &mut [Stamp],
    frames: impl Iterator<Item = &'a Frame>,
    fallback: &Timeline,
) {
    for (stamp, frame) in stamps.iter_mut().zip(frames) {
        if let Some(kernel) = frame.kernel.filter(|_| frame.raw == card_stamps::NONE) {
            *stamp = fallback.convert(kernel);
        }
    }
}

/// The queues around the converter.
pub(super) struct Converter {
    frames: Consumer<Frame>,
    stamped: Producer<Stamped>,
    batch: Batch,
}

impl Converter {
    pub(super) fn new(
        frames: Consumer<Frame>,
        stamped: Producer<Stamped>,
        clock: &ClockService,
    ) -> Self {
        Self { frames, stamped, batch: Batch::new(BATCH, clock) }
    }

    /// Converts one batch of waiting frames, as far as there is room; returns its size.
    fn step(&mut self, context: &PipelineContext<'_>) -> usize {
        let count = self.frames.slots().min(self.stamped.slots()).min(BATCH);
        let Ok(chunk) = self.frames.read_chunk(count) else { return 0 };
        let (first, second) = chunk.as_slices();
        let stamps = self.batch.convert(first.iter().chain(second), context);
        for (frame, &stamp) in chunk.into_iter().zip(stamps) {
            self.stamped.push(Stamped { frame, stamp }).expect("there is room");
        }
        count
    }

    /// The queue of frames, in which `many` frames end the sleep between two polls.
    fn queued(&self, many: usize) -> Queued {
        let ended = self.frames.is_abandoned();
        match self.frames.slots() {
            0 if !ended => Queued::Nothing,
            frames if frames >= many => Queued::Many,
            _ => Queued::Some,
        }
    }
}

/// The converter's connections to the other stages.
pub(super) struct Connections<'a> {
    /// Its end of the acquisition's wake-ups.
    pub(super) waiting: Waiting,
    /// Number of waiting frames that ends its sleep between two polls.
    pub(super) many: usize,
    /// Requests a wake-up from the consumer when there is room.
    pub(super) stalled: &'a AtomicBool,
    pub(super) consumer: Wakeup,
}

/// Converts until the queue of frames has ended.
pub(super) fn convert(
    converter: Converter,
    context: &PipelineContext<'_>,
    connections: Connections<'_>,
) {
    let Connections { mut waiting, many, stalled, consumer } = connections;
    // Declared first, so that it is dropped last: the consumer then sees the end of the queue.
    let _end = StopOnDrop::new(context.stop, consumer.thread());
    let mut converter = converter;
    let mut has_worked = false;
    loop {
        // Checked before the step, so that frames pushed just before the end are not missed.
        let ended = converter.frames.is_abandoned();
        if converter.step(context) > 0 {
            has_worked = true;
            consumer.notify(converter.stamped.buffer().capacity() - converter.stamped.slots());
        } else if !converter.frames.is_empty() {
            stalled.store(true, Ordering::SeqCst);
            // The consumer may have made room and checked the flag just before.
            if converter.stamped.is_full() && !converter.stamped.is_abandoned() {
                thread::park();
            }
            if converter.stamped.is_abandoned() {
                break;
            }
        } else if ended {
            break;
        } else {
            let has_worked = mem::take(&mut has_worked);
            waiting.wait(has_worked, Duration::MAX, || converter.queued(many));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wirestamp_clock::{Calibrator, Clocks, Domain, MonotonicRaw, RawStamp, Time, Utc};

    use super::*;

    /// A clock that was started `epoch` nanoseconds after 1970 and counts nanoseconds. Each reading takes 20 ns.
    struct FakeClock {
        epoch: i64,
        now: u64,
    }

    impl Clocks for FakeClock {
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

    /// The clock's value at its calibration.
    const START: u64 = 1 << 40;

    /// The timeline of such a clock.
    fn timeline(domain: Domain, epoch: i64) -> Arc<Timeline> {
        Calibrator::new(domain, FakeClock { epoch, now: START }, 1).unwrap().timeline()
    }

    #[test]
    fn replaced_card_stamps_use_the_kernels_clock() {
        let (card_epoch, boot_epoch) = (5_000_000_000, 1_700_000_000_000_000_000);
        let card = timeline(Domain::Nic, card_epoch);
        for fallback in [Arc::new(Timeline::realtime()), timeline(Domain::Monotonic, boot_epoch)] {
            let epoch = if fallback.domain() == Domain::Realtime { 0 } else { boot_epoch };
            let value = START + 1_000;
            let frames = [Frame::empty(card_stamps::NONE, Some(value)), Frame::empty(value, None)];
            let mut stamps = Vec::new();
            card.convert_batch(&frames.each_ref().map(|frame| frame.raw), &mut stamps);
            replace_missing(&mut stamps, frames.iter(), &fallback);
            let converted =
                stamps.iter().zip([(fallback.domain(), epoch), (Domain::Nic, card_epoch)]);
            for (stamp, (domain, epoch)) in converted {
                assert_eq!(stamp.raw, RawStamp { domain, value });
                let off = stamp.utc - Time::from_nanos(epoch + value.cast_signed());
                assert!(off.abs() <= stamp.error, "{domain:?}: {off:?}, within {:?}", stamp.error);
            }
        }
    }
}
