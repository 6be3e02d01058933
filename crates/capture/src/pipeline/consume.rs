//! Stage three: packets of all lanes in order, with their time, go to the caller, their memory back
//! to the kernel.
#![expect(unsafe_code, reason = "looks at frames in memory that the kernel lends")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime};

use rtrb::Consumer;
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

    /// Packets that were taken without an error and are lost all the same, as those in a buffer
    /// that could not be written. Asked once, at the end.
    fn lost(&self) -> u64 {
        0
    }
}

/// The consumer's end of a lane.
pub(super) struct Link<'a> {
    pub(super) stamped: Consumer<Stamped>,
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

/// Consumes until the lanes have ended, and asks for that end when the plan's limit is reached or
/// the sink fails.
pub(super) fn consume(
    mut links: Vec<Link<'_>>,
    plan: &Plan<'_>,
    filter: Option<&Filter>,
    sink: &mut dyn Sink,
) -> Consumed {
    let deadline = plan.limit.duration.and_then(|duration| Instant::now().checked_add(duration));
    let mut done = Consumed { ledger: Ledger::default(), failure: None };
    let mut merge = Merge::default();
    loop {
        let next = done.take_some(&mut links, &mut merge, plan, filter, sink);
        links.iter().for_each(Link::wake_if_stalled);
        if !matches!(next, Next::Take(_)) && done.failure.is_none() {
            done.note(sink.pause());
        }
        let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late || done.failure.is_some() || plan.limit.packets == Some(done.ledger.delivered) {
            plan.stop.request();
        }
        // Asked after the sink's last turn, because a sink that parks, as channels do, takes the
        // converters' wake-ups for its own.
        let pause = match merge.next(links.iter().map(Link::head), now) {
            Next::Take(_) => continue,
            Next::Wait(wait) => wait,
            Next::Nothing if links.iter().all(|link| link.head() == Head::Ended) => {
                done.settle(&merge, sink);
                return done;
            }
            Next::Nothing => PAUSE_LIMIT,
        };
        let rest = deadline.filter(|_| !late).map(|d| d.saturating_duration_since(Instant::now()));
        thread::park_timeout(rest.map_or(pause, |rest| rest.min(pause)));
    }
}

/// The system's time. One that its type cannot hold is far from any stamp, which is all that the
/// merge wants to know.
fn now() -> Time<Utc> {
    Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(i64::MAX))
}

impl Consumed {
    /// Takes what is there in the order of the stamps: bounded, so that the deadline is looked at
    /// on a link that never pauses. Returns what the merge said last.
    fn take_some(
        &mut self,
        links: &mut [Link<'_>],
        merge: &mut Merge,
        plan: &Plan<'_>,
        filter: Option<&Filter>,
        sink: &mut dyn Sink,
    ) -> Next {
        let wanted = |bytes: &[u8]| filter.is_none_or(|filter| filter.passes(bytes));
        let mut next = Next::Nothing;
        for _ in 0..TURN {
            next = merge.next(links.iter().map(Link::head), now);
            let Next::Take(lane) = next else { break };
            let link = &mut links[lane];
            let Ok(Stamped { frame, stamp }) = link.stamped.pop() else { break };
            merge.went_on(stamp.utc);
            self.take(&frame, stamp, plan, wanted, sink);
            link.lender.give_back(frame.ticket);
        }
        next
    }

    /// Puts one packet where it belongs, and into the ledger.
    fn take(
        &mut self,
        frame: &Frame,
        stamp: Stamp,
        plan: &Plan<'_>,
        wanted: impl Fn(&[u8]) -> bool,
        sink: &mut dyn Sink,
    ) {
        // SAFETY: the lender outlives this call, and the ticket is given back after it.
        let bytes = unsafe { frame.bytes() };
        let kernel = frame.kernel.and_then(|nanos| i64::try_from(nanos).ok());
        if !wanted(bytes) {
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
    fn settle(&mut self, merge: &Merge, sink: &dyn Sink) {
        self.ledger.out_of_order = merge.out_of_order;
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
        let done = consume(vec![link], &plan, None, &mut Parking(Some(stamped_in)));
        assert_eq!(done.ledger.delivered, 1);
    }
}
