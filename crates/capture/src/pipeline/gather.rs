//! Collects packets from the lanes at the consumer.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use super::consume::Consumer;
use super::convert::Stamped;
use super::merge::{Head, Merge, Next};
use super::now;
use super::wakeup::{Queued, Waiting};
use crate::CaptureLoss;
use crate::receiver::FrameMemory;

/// Max packets per round, so that limits are checked on an output that never pauses.
const ROUND: usize = 4096;

/// The consumer's end of a lane.
pub(super) struct LaneOutput<'a> {
    pub(super) stamped: rtrb::Consumer<Stamped>,
    pub(super) missed: rtrb::Consumer<CaptureLoss>,
    pub(super) stalled: &'a AtomicBool,
    pub(super) converter: Thread,
    /// Number of waiting packets that ends the consumer's sleep between two polls.
    pub(super) many: usize,
    pub(super) frame_memory: Arc<dyn FrameMemory>,
}

impl LaneOutput<'_> {
    fn head(&self) -> Head {
        // Checked before the queue, so that packets pushed just before the end are not missed.
        let ended = self.stamped.is_abandoned();
        match self.stamped.peek() {
            Ok(packet) => Head::Packet(packet.stamp.utc),
            Err(_) if ended => Head::Ended,
            Err(_) => Head::Empty,
        }
    }

    /// Reports the lane's losses to the consumer. Called after a packet of the lane was seen, it reports every loss
    /// before that packet.
    fn report_missed(&mut self, consumer: &mut Consumer<'_>) {
        while let Ok(missed) = self.missed.pop() {
            consumer.missed(&missed);
        }
    }

    fn wake_if_stalled(&self) {
        if self.stalled.swap(false, Ordering::SeqCst) {
            self.converter.unpark();
        }
    }
}

/// Passes packets to the consumer on this thread, in the order of their stamps, until the lanes have ended.
/// `waiting` is its end of the converters' wake-ups.
pub(super) fn gather(
    mut outputs: Vec<LaneOutput<'_>>,
    mut waiting: Waiting,
    consumer: &mut Consumer<'_>,
) {
    let mut merge = Merge::default();
    let mut has_worked = false;
    loop {
        outputs.iter_mut().for_each(|output| output.report_missed(consumer));
        let (taken, next) = take_some(&mut outputs, &mut merge, consumer);
        has_worked |= taken > 0;
        outputs.iter().for_each(LaneOutput::wake_if_stalled);
        if matches!(next, Next::Take(_)) {
            consumer.check_limits();
            continue;
        }
        let pause = consumer.pause();
        let limit = match next {
            Next::Wait(wait) => wait.min(pause),
            Next::Nothing if have_ended(&outputs) => break,
            Next::Nothing | Next::Take(_) => pause,
        };
        // It looks into the queues after the sink's last call: a sink that parks, as channels do, consumes the
        // converters' wake-ups.
        waiting.wait(mem::take(&mut has_worked), limit, || queued(&outputs, &mut merge));
    }
    outputs.iter_mut().for_each(|output| output.report_missed(consumer));
}

fn have_ended(outputs: &[LaneOutput<'_>]) -> bool {
    outputs.iter().all(|output| output.head() == Head::Ended)
}

/// The queues of all lanes, as the merge sees them.
fn queued(outputs: &[LaneOutput<'_>], merge: &mut Merge) -> Queued {
    if outputs.iter().any(|output| output.stamped.slots() >= output.many) {
        return Queued::Many;
    }
    match merge.next(outputs.iter().map(LaneOutput::head), now) {
        Next::Take(_) => Queued::Some,
        Next::Nothing if have_ended(outputs) => Queued::Some,
        Next::Nothing | Next::Wait(_) => Queued::Nothing,
    }
}

/// Takes packets that are ready. Returns their number and the merge's last decision.
fn take_some(
    outputs: &mut [LaneOutput<'_>],
    merge: &mut Merge,
    consumer: &mut Consumer<'_>,
) -> (usize, Next) {
    let (mut taken, mut next) = (0, Next::Nothing);
    while taken < ROUND {
        next = merge.next(outputs.iter().map(LaneOutput::head), now);
        let Next::Take(lane) = next else { break };
        let output = &mut outputs[lane];
        output.report_missed(consumer);
        let Ok(Stamped { frame, stamp }) = output.stamped.pop() else { break };
        consumer.take(frame, &*output.frame_memory, stamp);
        taken += 1;
    }
    (taken, next)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rtrb::{Producer, RingBuffer};
    use wirestamp_clock::{ClockService, Counter, Domain, RawStamp, Span, Stamp, Time};

    use super::*;
    use crate::affinity::Cores;
    use crate::interface::Interface;
    use crate::live_ledger::LiveLedger;
    use crate::pipeline::consume::{CapturedPacket, Sink};
    use crate::pipeline::{Limit, PipelineContext, Wait};
    use crate::receiver::{Frame, Ticket};
    use crate::{Error, Stop};

    struct NoMemory;

    impl FrameMemory for NoMemory {
        fn release(&self, _: Ticket) {}
    }

    /// Parks while the converter ends, like a channel with a slow receiver.
    struct ParkingSink(Option<Producer<Stamped>>);

    impl Sink for ParkingSink {
        fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
            drop(self.0.take());
            thread::current().unpark(); // the converter's last action
            thread::park();
            Ok(())
        }
    }

    #[test]
    fn sink_that_consumes_last_wakeup_does_not_hang() {
        let clock = ClockService::start(Counter::select()).unwrap();
        let stop = Stop::new().unwrap();
        let context = PipelineContext {
            clock: &clock,
            domain: Domain::Counter,
            fallback: None,
            stamped: false,
            lanes: &[Cores::default()],
            wait: Wait::Spin,
            limit: Limit::default(),
            shared_count: None,
            stop: &stop,
            interface: &Interface::open("lo").unwrap(),
            wait_for_interface: false,
            snaplen: 1,
            opened: Time::from_nanos(0),
            live: &LiveLedger::new(Arc::new(Interface::open("lo").unwrap()), 0),
        };
        let (mut stamped_in, stamped) = RingBuffer::new(1);
        let frame = Frame::empty(0, None);
        let raw = RawStamp { domain: Domain::Counter, value: 0 };
        let stamp = Stamp { raw, utc: Time::from_nanos(0), error: Span::from_nanos(0) };
        stamped_in.push(Stamped { frame, stamp }).unwrap();
        let (stalled, converter) = (AtomicBool::new(false), thread::current());
        let frame_memory = Arc::new(NoMemory);
        let (_, missed) = RingBuffer::new(1);
        let (stalled, many) = (&stalled, 1);
        let output = LaneOutput { stamped, missed, stalled, converter, many, frame_memory };
        let mut sink = ParkingSink(Some(stamped_in));
        let mut consumer = Consumer::new(&context, None, &mut sink);
        gather(vec![output], Waiting::new(), &mut consumer);
        assert_eq!(consumer.finish().ledger.delivered, 1);
    }
}
