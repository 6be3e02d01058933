//! Stage three: packets of all lanes in order, with their time, go to the caller, their memory back
//! to the kernel.
#![expect(unsafe_code, reason = "looks at frames in memory that the kernel lends")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime};

use wirestamp_clock::{Stamp, Time, Utc};

use super::Plan;
use super::convert::Stamped;
use super::merge::{Head, Merge, Next};
use crate::filter::Filter;
use crate::receiver::{Frame, Lender};
use crate::{Error, Ledger};

/// The sink gets a turn at least this often, also on a link without packets.
const PAUSE_LIMIT: Duration = Duration::from_secs(10);

/// Packets that are taken in one go.
const TURN: usize = 4096;

/// A captured packet. Its bytes are on loan for the duration of the call they are passed to.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// When it was captured, by which clock, how exactly.
    pub stamp: Stamp,
    /// The kernel's own stamp of the same packet, where it is another one than `stamp`. How much
    /// later `stamp` was taken is the acquisition lag.
    pub kernel: Option<Time<Utc>>,
    /// The frame from its first byte, cut to the snap length.
    pub bytes: &'a [u8],
    /// The frame's length on the wire in bytes, without the check sequence.
    pub length: u32,
}

/// What is done with the packets of a capture.
pub trait Sink {
    /// Takes one packet.
    ///
    /// # Errors
    /// An error ends the capture; packets after this one are counted as dropped by the consumer.
    fn packet(&mut self, packet: &Captured<'_>) -> Result<(), Error>;

    /// Called when no packet is waiting: the moment to flush. As long as none comes, it is called
    /// again every ten seconds.
    ///
    /// # Errors
    /// As for [`Sink::packet`].
    fn pause(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Called once, after the last packet: what is kept back goes out.
    ///
    /// # Errors
    /// As for [`Sink::packet`].
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Packets that were taken without an error and are lost all the same, as those in a buffer
    /// that could not be written. Asked once, after the end.
    fn lost(&self) -> u64 {
        0
    }
}

/// The consumer's end of a lane.
pub(super) struct Link<'a> {
    pub(super) stamped: rtrb::Consumer<Stamped>,
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

    fn wake_if_stalled(&self) {
        if self.stalled.swap(false, Ordering::SeqCst) {
            self.converter.unpark();
        }
    }
}

/// What the consumer did, and what stopped it from doing more.
pub(super) struct Consumed {
    pub(super) ledger: Ledger,
    pub(super) failure: Option<Error>,
}

/// The consumer between two turns.
pub(super) struct Consumer<'a> {
    links: Vec<Link<'a>>,
    merge: Merge,
    plan: &'a Plan<'a>,
    filter: Option<&'a Filter>,
    sink: &'a mut dyn Sink,
    deadline: Option<Instant>,
    done: Consumed,
}

/// What a turn of the consumer has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There is more to be consumed.
    Again,
    /// There is nothing, and there will be nothing to do for so long, unless packets arrive.
    Wait(Duration),
    /// The lanes have ended and all is consumed.
    Ended,
}

impl<'a> Consumer<'a> {
    pub(super) fn new(
        links: Vec<Link<'a>>,
        plan: &'a Plan<'a>,
        filter: Option<&'a Filter>,
        sink: &'a mut dyn Sink,
    ) -> Self {
        let deadline = plan.limit.duration.and_then(|limit| Instant::now().checked_add(limit));
        let done = Consumed { ledger: Ledger::default(), failure: None };
        Self { links, merge: Merge::default(), plan, filter, sink, deadline, done }
    }

    /// Consumes what is there, and lets the sink pause when that is all.
    pub(super) fn turn(&mut self) -> Turn {
        let next = self.take_some();
        if !matches!(next, Next::Take(_)) && self.done.failure.is_none() {
            self.done.note(self.sink.pause());
        }
        let late = self.ask_for_the_end();
        // Asked after the sink's last turn, because a sink that parks, as channels do, takes the
        // converters' wake-ups for its own.
        let pause = match self.merge.next(self.links.iter().map(Link::head), now) {
            Next::Take(_) => return Turn::Again,
            Next::Wait(wait) => wait,
            Next::Nothing if self.links.iter().all(|link| link.head() == Head::Ended) => {
                return Turn::Ended;
            }
            Next::Nothing => PAUSE_LIMIT,
        };
        let deadline = self.deadline.filter(|_| !late);
        let rest = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        Turn::Wait(rest.map_or(pause, |rest| rest.min(pause)))
    }

    /// Takes what is there in the order of the stamps: bounded, so that the deadline is looked at
    /// on a link that never pauses. Returns what the merge said last.
    pub(super) fn take_some(&mut self) -> Next {
        let mut next = Next::Nothing;
        for _ in 0..TURN {
            next = self.merge.next(self.links.iter().map(Link::head), now);
            let Next::Take(lane) = next else { break };
            let link = &mut self.links[lane];
            let Ok(Stamped { frame, stamp }) = link.stamped.pop() else { break };
            self.merge.went_on(stamp.utc);
            self.done.take(&frame, stamp, self.plan, self.filter, self.sink);
            link.lender.give_back(frame.ticket);
        }
        self.links.iter().for_each(Link::wake_if_stalled);
        self.ask_for_the_end();
        next
    }

    /// Asks for the end when the plan's limit is reached or the sink has failed. Returns whether
    /// the time is over.
    fn ask_for_the_end(&self) -> bool {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let enough = self.plan.limit.packets == Some(self.done.ledger.delivered);
        if late || enough || self.done.failure.is_some() {
            self.plan.stop.request();
        }
        late
    }

    /// What came of it all.
    pub(super) fn finish(mut self) -> Consumed {
        self.done.ledger.out_of_order = self.merge.out_of_order;
        let ended = self.sink.end();
        self.done.note(ended);
        self.done.settle(self.sink);
        self.done
    }
}

/// Consumes on this thread until the lanes have ended.
pub(super) fn consume(mut consumer: Consumer<'_>) -> Consumed {
    loop {
        match consumer.turn() {
            Turn::Again => {}
            Turn::Wait(pause) => thread::park_timeout(pause),
            Turn::Ended => return consumer.finish(),
        }
    }
}

/// The system's time. One that its type cannot hold is far from any stamp, which is all that the
/// merge wants to know.
fn now() -> Time<Utc> {
    Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(i64::MAX))
}

impl Consumed {
    /// Puts one packet where it belongs, and into the ledger.
    fn take(
        &mut self,
        frame: &Frame,
        stamp: Stamp,
        plan: &Plan<'_>,
        filter: Option<&Filter>,
        sink: &mut dyn Sink,
    ) {
        // SAFETY: the lender outlives this call, and the ticket is given back after it.
        let bytes = unsafe { frame.bytes() };
        let kernel = frame.kernel.and_then(|nanos| i64::try_from(nanos).ok());
        if filter.is_some_and(|filter| !filter.passes(bytes)) {
            self.ledger.filtered += 1;
        } else if plan.limit.packets == Some(self.ledger.delivered) {
            self.ledger.surplus += 1;
        } else if self.failure.is_some() {
            self.ledger.consumer_dropped += 1;
        } else {
            let kernel = kernel.map(Time::from_nanos);
            // Cut after the filter has seen all that there is.
            let bytes = &bytes[..bytes.len().min(plan.snaplen as usize)];
            let taken = sink.packet(&Captured { stamp, kernel, bytes, length: frame.length });
            match taken {
                Ok(()) => self.ledger.delivered += 1,
                Err(_) => self.ledger.consumer_dropped += 1,
            }
            self.note(taken);
        }
    }

    /// Moves what the sink took and lost to where it belongs.
    fn settle(&mut self, sink: &dyn Sink) {
        let lost = sink.lost().min(self.ledger.delivered);
        self.ledger.delivered -= lost;
        self.ledger.consumer_dropped += lost;
    }

    /// Keeps the first failure.
    fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use rtrb::{Producer, RingBuffer};
    use wirestamp_clock::{ClockService, Counter, Domain, RawStamp, Span};

    use super::*;
    use crate::Stop;
    use crate::affinity::Cores;
    use crate::interface::Interface;
    use crate::pipeline::{Limit, Wait};
    use crate::receiver::Ticket;

    struct Nowhere;

    impl Lender for Nowhere {
        fn give_back(&self, _: Ticket) {}
    }

    /// Parks while the converter ends, like a channel whose other end is slow.
    struct Parking(Option<Producer<Stamped>>);

    impl Sink for Parking {
        fn packet(&mut self, _: &Captured<'_>) -> Result<(), Error> {
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
            lanes: &[Cores::default()],
            wait: Wait::Spin,
            limit: Limit::default(),
            stop: &stop,
            interface: &Interface::open("lo").unwrap(),
            snaplen: 1,
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
        let link = Link { stamped, stalled: &stalled, converter, lender };
        let mut sink = Parking(Some(stamped_in));
        let done = consume(Consumer::new(vec![link], &plan, None, &mut sink));
        assert_eq!(done.ledger.delivered, 1);
    }
}
