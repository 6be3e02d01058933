//! The three stages in turn on one thread, for packets that the kernel has stamped.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use rtrb::RingBuffer;

use super::acquire::{self, Acquired, Downstream};
use super::consume::{Consumed, Consumer, Link, Sink, Turn};
use super::convert::Converter;
use super::{Plan, affinity};
use crate::filter::Filter;
use crate::receiver::Receiver;

/// Frames between two stages: few enough to stay in the second-level cache.
const QUEUE: usize = 1 << 10;

/// The two stages behind the acquisition.
struct Rest<'a> {
    converter: Converter,
    consumer: Consumer<'a>,
    plan: &'a Plan<'a>,
}

impl Downstream for Rest<'_> {
    fn turn(&mut self) {
        while self.converter.step(self.plan) > 0 {
            self.consumer.take_some();
        }
    }

    fn idle(&mut self) -> Duration {
        match self.consumer.turn() {
            Turn::Wait(pause) => pause,
            Turn::Again | Turn::Ended => Duration::ZERO,
        }
    }
}

/// Captures until the stop is requested, on the calling thread.
pub(super) fn run<R: Receiver>(
    receiver: R,
    plan: &Plan<'_>,
    filter: Option<&Filter>,
    sink: &mut dyn Sink,
) -> (Consumed, Acquired) {
    affinity::pin(plan.lanes.first().and_then(|cores| cores.consume));
    let (frames_in, frames_out) = RingBuffer::new(QUEUE);
    let (stamped_in, stamped_out) = RingBuffer::new(QUEUE);
    let lender = receiver.lender();
    // Nobody else is there to be waited for, or to be woken.
    let (stalled, converter) = (AtomicBool::new(false), thread::current());
    let link = Link { stamped: stamped_out, stalled: &stalled, converter, lender };
    let mut rest = Rest {
        converter: Converter::new(frames_out, stamped_in),
        consumer: Consumer::new(vec![link], plan, filter, sink),
        plan,
    };
    let acquired = acquire::acquire(receiver, frames_in, &mut rest, plan);
    let Rest { converter, mut consumer, .. } = rest;
    drop(converter); // so that the consumer sees the end
    while consumer.turn() != Turn::Ended {}
    (consumer.finish(), acquired)
}
