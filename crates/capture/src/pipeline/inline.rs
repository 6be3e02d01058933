//! All three stages on one thread, for packets with kernel stamps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wirestamp_clock::{Time, Utc};

use super::PipelineContext;
use super::acquire::{self, AcquisitionResult, Downstream};
use super::consume::Consumer;
use super::convert::Batch;
use crate::CaptureLoss;
use crate::affinity;
use crate::receiver::{Frame, FrameMemory, Receiver};

/// Frames per batch: few enough for the first-level cache.
const BATCH: usize = 256;

/// Max time between calls of the consumer's `pause`, which flushes packets, while packets arrive without a break.
const PAUSE_INTERVAL: Duration = Duration::from_millis(100);

/// The two stages after the acquisition.
struct InlineStages<'a> {
    frames: Vec<Frame>,
    batch: Batch,
    consumer: Consumer<'a>,
    frame_memory: Arc<dyn FrameMemory>,
    context: &'a PipelineContext<'a>,
    /// When the consumer last paused.
    paused: Instant,
}

impl Downstream for InlineStages<'_> {
    fn room(&self) -> usize {
        BATCH - self.frames.len()
    }

    fn take(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    fn missed(&mut self, missed: CaptureLoss) -> Result<(), CaptureLoss> {
        self.consumer.missed(&missed);
        Ok(())
    }

    fn batch_done(&mut self) {
        let stamps = self.batch.convert(self.frames.iter(), self.context);
        for (frame, &stamp) in self.frames.drain(..).zip(stamps) {
            self.consumer.take(frame, &*self.frame_memory, stamp);
        }
        self.consumer.check_limits();
        if self.paused.elapsed() > PAUSE_INTERVAL {
            self.idle();
        }
    }

    fn complete(&mut self, until: Time<Utc>) {
        self.consumer.complete(until);
    }

    fn idle(&mut self) -> Duration {
        let delay = self.consumer.pause();
        self.paused = Instant::now();
        delay
    }

    fn is_gone(&self) -> bool {
        false
    }

    fn may_batch(&self) -> bool {
        true
    }
}

/// Captures until the stop is requested, on the calling thread.
pub(super) fn run<'a, R: Receiver>(
    receiver: R,
    consumer: Consumer<'a>,
    context: &'a PipelineContext<'a>,
) -> (Consumer<'a>, AcquisitionResult) {
    affinity::pin(context.lanes.first().and_then(|cores| cores.consume));
    let (frames, batch, frame_memory) =
        (Vec::with_capacity(BATCH), Batch::new(BATCH, context.clock), receiver.frame_memory());
    let mut stages =
        InlineStages { frames, batch, consumer, frame_memory, context, paused: Instant::now() };
    let acquired = acquire::acquire(receiver, &mut stages, context);
    (stages.consumer, acquired)
}
