//! What converters on other threads bring comes together at the consumer.
#![expect(unsafe_code, reason = "takes frames in memory that the kernel lends")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

use super::consume::Consumer;
use super::convert::Stamped;
use super::merge::{Head, Merge, Next};
use super::now;
use crate::CaptureLoss;
use crate::receiver::Lender;

/// Packets that are taken in one go: bounded, so that the limits are looked at on a link that never
/// pauses.
const TURN: usize = 4096;

/// The consumer's end of a lane.
pub(super) struct Link<'a> {
    pub(super) stamped: rtrb::Consumer<Stamped>,
    pub(super) missed: rtrb::Consumer<CaptureLoss>,
    pub(super) stalled: &'a AtomicBool,
    pub(super) converter: Thread,
    pub(super) lender: Arc<dyn Lender>,
}

impl Link<'_> {
    fn head(&self) -> Head {
        // Asked before the queue is, so that packets pushed just before the end are not missed.
        let ended = self.stamped.is_abandoned();
        match self.stamped.peek() {
            Ok(packet) => Head::Packet(packet.stamp.utc),
            Err(_) if ended => Head::Ended,
            Err(_) => Head::Silent,
        }
    }

    /// Passes on what the lane has lost. Asked after a packet of it was seen, there is nothing left
    /// that has to be known before that packet.
    fn tell_missed(&mut self, consumer: &mut Consumer<'_>) {
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

/// Gathers packets on this thread, in the order of their stamps, until the lanes have ended.
pub(super) fn gather(mut links: Vec<Link<'_>>, consumer: &mut Consumer<'_>) {
    let mut merge = Merge::default();
    loop {
        links.iter_mut().for_each(|link| link.tell_missed(consumer));
        let next = take_some(&mut links, &mut merge, consumer);
        links.iter().for_each(Link::wake_if_stalled);
        if matches!(next, Next::Take(_)) {
            consumer.take_stock();
            continue;
        }
        let pause = consumer.pause();
        // Asked after the sink's last turn, because a sink that parks, as channels do, takes the
        // converters' wake-ups for its own.
        match merge.next(links.iter().map(Link::head), now) {
            Next::Take(_) => {}
            Next::Wait(wait) => thread::park_timeout(wait.min(pause)),
            Next::Nothing if links.iter().all(|link| link.head() == Head::Ended) => break,
            Next::Nothing => thread::park_timeout(pause),
        }
    }
    links.iter_mut().for_each(|link| link.tell_missed(consumer));
}

/// Takes what is there. Returns what the merge said last.
fn take_some(links: &mut [Link<'_>], merge: &mut Merge, consumer: &mut Consumer<'_>) -> Next {
    let mut next = Next::Nothing;
    for _ in 0..TURN {
        next = merge.next(links.iter().map(Link::head), now);
        let Next::Take(lane) = next else { break };
        let link = &mut links[lane];
        link.tell_missed(consumer);
        let Ok(Stamped { frame, stamp }) = link.stamped.pop() else { break };
        // SAFETY: the link keeps the lender, and the ticket is given back after this call.
        unsafe { consumer.take(&frame, stamp) };
        link.lender.give_back(frame.ticket);
    }
    next
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use rtrb::{Producer, RingBuffer};
    use wirestamp_clock::{ClockService, Counter, Domain, RawStamp, Span, Stamp, Time};

    use super::*;
    use crate::affinity::Cores;
    use crate::interface::Interface;
    use crate::live_ledger::LiveLedger;
    use crate::pipeline::consume::{CapturedPacket, Sink};
    use crate::pipeline::{Limit, Plan, Wait};
    use crate::receiver::{Frame, Ticket};
    use crate::{Error, Stop};

    struct Nowhere;

    impl Lender for Nowhere {
        fn give_back(&self, _: Ticket) {}
    }

    /// Parks while the converter ends, like a channel whose other end is slow.
    struct Parking(Option<Producer<Stamped>>);

    impl Sink for Parking {
        fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
            drop(self.0.take());
            thread::current().unpark(); // the converter's last deed
            thread::park();
            Ok(())
        }
    }

    #[test]
    fn a_sink_that_takes_the_last_wake_up_does_not_keep_the_capture_from_ending() {
        let clock = ClockService::start(Counter::select()).unwrap();
        let stop = Stop::new().unwrap();
        let plan = Plan {
            clock: &clock,
            domain: Domain::Counter,
            instead_of_card: Domain::Realtime,
            stamped: false,
            lanes: &[Cores::default()],
            wait: Wait::Spin,
            limit: Limit::default(),
            stop: &stop,
            interface: &Interface::open("lo").unwrap(),
            snaplen: 1,
            opened: Time::from_nanos(0),
            live: &LiveLedger::new(Arc::new(Interface::open("lo").unwrap()), 0),
        };
        let (mut stamped_in, stamped) = RingBuffer::new(1);
        let frame = Frame {
            raw: 0,
            kernel: None,
            data: NonNull::dangling(),
            captured: 0,
            length: 0,
            ticket: Ticket::Later,
        };
        let raw = RawStamp { domain: Domain::Counter, value: 0 };
        let stamp = Stamp { raw, utc: Time::from_nanos(0), error: Span::from_nanos(0) };
        stamped_in.push(Stamped { frame, stamp }).unwrap();
        let (stalled, converter) = (AtomicBool::new(false), thread::current());
        let lender = Arc::new(Nowhere);
        let (_, missed) = RingBuffer::new(1);
        let link = Link { stamped, missed, stalled: &stalled, converter, lender };
        let mut sink = Parking(Some(stamped_in));
        let mut consumer = Consumer::new(&plan, None, &mut sink);
        gather(vec![link], &mut consumer);
        assert_eq!(consumer.finish().ledger.delivered, 1);
    }
}
