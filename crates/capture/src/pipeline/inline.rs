//! The three stages in turn on one thread, for packets that the kernel has stamped.
#![expect(unsafe_code, reason = "takes frames in memory that the kernel lends")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use wirestamp_clock::{Time, Utc};

use super::acquire::{self, Acquired, Downstream};
use super::consume::Consumer;
use super::convert::Batch;
use super::{Plan, affinity};
use crate::CaptureLoss;
use crate::receiver::{Frame, Lender, Receiver};

/// Frames that go through the stages together: few enough to stay in the first-level cache.
const BATCH: usize = 256;

/// The consumer pauses, which lets packets out to whoever watches, at least this often, also while
/// packets never cease.
const PAUSE_INTERVAL: Duration = Duration::from_millis(100);

/// The two stages behind the acquisition.
struct Rest<'a> {
    frames: Vec<Frame>,
    batch: Batch,
    consumer: Consumer<'a>,
    lender: Arc<dyn Lender>,
    plan: &'a Plan<'a>,
    /// When the consumer last paused.
    paused: Instant,
}

impl Downstream for Rest<'_> {
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

    fn turn(&mut self) {
        let stamps = self.batch.convert(self.frames.iter(), self.plan);
        for (frame, &stamp) in self.frames.drain(..).zip(stamps) {
            // SAFETY: the lender is kept here, and the ticket is given back after this call.
            unsafe { self.consumer.take(&frame, stamp) };
            self.lender.give_back(frame.ticket);
        }
        self.consumer.take_stock();
        if self.paused.elapsed() > PAUSE_INTERVAL {
            self.idle();
        }
    }

    fn complete(&mut self, until: Time<Utc>) {
        self.consumer.complete(until);
    }

    fn idle(&mut self) -> Duration {
        let rest = self.consumer.pause();
        self.paused = Instant::now();
        rest
    }

    fn is_gone(&self) -> bool {
        false
    }

    fn is_patient(&self) -> bool {
        true
    }
}

/// Captures until the stop is requested, on the calling thread.
pub(super) fn run<'a, R: Receiver>(
    receiver: R,
    consumer: Consumer<'a>,
    plan: &'a Plan<'a>,
) -> (Consumer<'a>, Acquired) {
    affinity::pin(plan.lanes.first().and_then(|cores| cores.consume));
    let (frames, batch, lender) = (Vec::with_capacity(BATCH), Batch::new(BATCH), receiver.lender());
    let mut rest = Rest { frames, batch, consumer, lender, plan, paused: Instant::now() };
    let acquired = acquire::acquire(receiver, &mut rest, plan);
    (rest.consumer, acquired)
}
