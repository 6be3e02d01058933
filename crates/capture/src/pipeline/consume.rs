//! Stage three: packets with their time go to the caller.
#![expect(unsafe_code, reason = "looks at frames in memory that the kernel lends")]

use std::time::{Duration, Instant};

use wirestamp_clock::{Stamp, Time, Utc};

use super::Plan;
use crate::filter::Filter;
use crate::receiver::Frame;
use crate::{CaptureLoss, Error, Ledger};

/// The sink gets a turn at least this often, also on a link without packets.
const PAUSE_LIMIT: Duration = Duration::from_secs(10);

/// A captured packet. Its bytes are on loan for the duration of the call they are passed to.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
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
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error>;

    /// Is told that the capture has lost packets, and when: before it is handed any that is stamped
    /// after that time, as long as none is later than [`LATENESS`](crate::LATENESS). Packets that are
    /// stamped within it may have been handed over already, those of the last 10 ms; where one thread
    /// does it all, which it does unless stamps are raw or lanes several, none that came after a loss
    /// is handed over before it is told. Told of all
    /// stretches, it has been told of all that [`Ledger::kernel_dropped`] and
    /// [`Ledger::left_behind`] count. Stretches may overlap.
    ///
    /// # Errors
    /// As for [`Sink::packet`].
    fn missed(&mut self, _: &CaptureLoss) -> Result<(), Error> {
        Ok(())
    }

    /// Is told that it was handed every packet stamped before this time, and told of all of them that
    /// were missed: about every 10 ms while packets come, and every second while none do. Only where
    /// one thread does it all, which it does unless stamps are raw or lanes several.
    ///
    /// # Errors
    /// As for [`Sink::packet`].
    fn complete(&mut self, _: Time<Utc>) -> Result<(), Error> {
        Ok(())
    }

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

/// What the consumer did, and what stopped it from doing more.
pub(super) struct Consumed {
    pub(super) ledger: Ledger,
    pub(super) failure: Option<Error>,
}

/// The consumer: a sink, and what has become of the packets so far.
pub(super) struct Consumer<'a> {
    plan: &'a Plan<'a>,
    filter: Option<&'a Filter>,
    sink: &'a mut dyn Sink,
    deadline: Option<Instant>,
    /// The latest stamp so far.
    latest: Option<Time<Utc>>,
    done: Consumed,
}

impl<'a> Consumer<'a> {
    /// Takes over the packets of `plan`, and applies `filter` where the kernel cannot.
    pub(super) fn new(
        plan: &'a Plan<'a>,
        filter: Option<&'a Filter>,
        sink: &'a mut dyn Sink,
    ) -> Self {
        let deadline = plan.limit.duration.and_then(|limit| Instant::now().checked_add(limit));
        let done = Consumed { ledger: Ledger::default(), failure: None };
        Self { plan, filter, sink, deadline, latest: None, done }
    }

    /// Puts one packet where it belongs, and into the ledger.
    ///
    /// # Safety
    /// The frame's ticket has not been given back, and its lender is alive.
    pub(super) unsafe fn take(&mut self, frame: &Frame, stamp: Stamp) {
        // SAFETY: as the caller vouches; the bytes are not kept.
        let bytes = unsafe { frame.bytes() };
        let ledger = &mut self.done.ledger;
        ledger.out_of_order += u64::from(self.latest.is_some_and(|latest| stamp.utc < latest));
        self.latest = self.latest.max(Some(stamp.utc));
        if self.filter.is_some_and(|filter| !filter.passes(bytes)) {
            ledger.filtered += 1;
        } else if self.plan.limit.packets == Some(ledger.delivered) {
            ledger.surplus += 1;
        } else if self.done.failure.is_some() {
            ledger.consumer_dropped += 1;
        } else {
            let another = stamp.raw.domain == self.plan.domain;
            let kernel = frame.kernel.filter(|_| another);
            let kernel = kernel.and_then(|nanos| i64::try_from(nanos).ok());
            let kernel = kernel.map(Time::from_nanos);
            // Cut after the filter has seen all that there is.
            let bytes = &bytes[..bytes.len().min(self.plan.snaplen as usize)];
            let taken =
                self.sink.packet(&CapturedPacket { stamp, kernel, bytes, length: frame.length });
            match taken {
                Ok(()) => ledger.delivered += 1,
                Err(_) => ledger.consumer_dropped += 1,
            }
            self.done.note(taken);
        }
    }

    /// Passes on what was lost before it could be taken.
    pub(super) fn missed(&mut self, missed: &CaptureLoss) {
        if self.done.failure.is_none() {
            let taken = self.sink.missed(missed);
            self.done.note(taken);
        }
    }

    /// Passes on until when everything has been taken.
    pub(super) fn complete(&mut self, until: Time<Utc>) {
        if self.done.failure.is_none() {
            let taken = self.sink.complete(until);
            self.done.note(taken);
        }
    }

    /// Shows the account so far, and asks for the end when the plan's limit is reached or the sink has
    /// failed. Called after some packets rather than after each, for the sake of the clock that it reads.
    pub(super) fn take_stock(&self) {
        self.plan.live.show(&self.done.ledger);
        let enough = self.plan.limit.packets == Some(self.done.ledger.delivered);
        if self.rest() == Some(Duration::ZERO) || enough || self.done.failure.is_some() {
            self.plan.stop.request();
        }
    }

    /// Lets the sink pause, because no packet is waiting. Returns for how long there will be nothing
    /// to do if none comes.
    pub(super) fn pause(&mut self) -> Duration {
        if self.done.failure.is_none() {
            let paused = self.sink.pause();
            self.done.note(paused);
        }
        self.take_stock();
        let rest = self.rest().filter(|rest| !rest.is_zero());
        rest.map_or(PAUSE_LIMIT, |rest| rest.min(PAUSE_LIMIT))
    }

    /// What is left of the plan's time, if that has a limit.
    fn rest(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// What came of it all.
    pub(super) fn finish(mut self) -> Consumed {
        let ended = self.sink.end();
        self.done.note(ended);
        // What the sink took and lost goes to where it belongs.
        let ledger = &mut self.done.ledger;
        let lost = self.sink.lost().min(ledger.delivered);
        ledger.delivered -= lost;
        ledger.consumer_dropped += lost;
        self.done
    }
}

impl Consumed {
    /// Keeps the first failure.
    fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }
}
