//! Stage three: passes packets with their time to the caller.

use std::time::{Duration, Instant};

use wirestamp_clock::{Stamp, Time, Utc};

use super::{PipelineContext, SharedCount};
use crate::filter::Filter;
use crate::receiver::{Frame, FrameMemory, use_and_release};
use crate::{CaptureLoss, Error, Ledger};

/// The sink's `pause` is called at least this often, also on a link without packets.
const PAUSE_LIMIT: Duration = Duration::from_secs(10);

/// A captured packet. Its bytes are valid for the duration of the call.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// Capture time, its clock and its error.
    pub stamp: Stamp,
    /// The kernel's own stamp of the packet, if it differs from `stamp`. The acquisition lag is how much later
    /// `stamp` was taken.
    pub kernel: Option<Time<Utc>>,
    /// The frame from its first byte, cut to the snap length.
    pub bytes: &'a [u8],
    /// Bytes of the frame on the wire, without the frame check sequence.
    pub length: u32,
}

/// Receives the packets of a capture.
pub trait Sink {
    /// Receives one packet.
    ///
    /// # Errors
    /// An error ends the capture; packets after this one are counted as dropped by the consumer.
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error>;

    /// Reports packets that the capture has lost, with the time interval. Called before any packet with a later
    /// stamp, as long as none is later than [`MERGE_TIMEOUT`](crate::MERGE_TIMEOUT). Packets stamped within the
    /// interval may have been passed on already: those of the last 10 ms. With one thread (all captures but those
    /// with raw stamps or several lanes), no packet that arrived after a loss is passed on before the report. All
    /// reports together have the packets of [`Ledger::kernel_dropped`] and [`Ledger::left_behind`]. Intervals may
    /// overlap.
    ///
    /// # Errors
    /// As for [`Sink::packet`].
    fn missed(&mut self, _: &CaptureLoss) -> Result<(), Error> {
        Ok(())
    }

    /// Reports that every packet stamped before this time was passed on, or reported as missed. Called about every
    /// 10 ms while packets arrive, otherwise every second. Only with one thread: with raw stamps or several lanes
    /// it is never called.
    ///
    /// # Errors
    /// As for [`Sink::packet`].
    fn complete(&mut self, _: Time<Utc>) -> Result<(), Error> {
        Ok(())
    }

    /// Called when no packet is waiting, to flush. Called again every ten seconds while none arrives.
    ///
    /// # Errors
    /// As for [`Sink::packet`].
    fn pause(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Called once, after the last packet, to write out buffered data.
    ///
    /// # Errors
    /// As for [`Sink::packet`].
    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Packets that were accepted and lost later, for example in a buffer that could not be written. Called once,
    /// after the end.
    fn lost(&self) -> u64 {
        0
    }
}

/// Ledger of the consumer, and its first error.
pub(super) struct ConsumerResult {
    pub(super) ledger: Ledger,
    pub(super) failure: Option<Error>,
}

/// The consumer: passes packets to the sink and counts them.
pub(super) struct Consumer<'a> {
    context: &'a PipelineContext<'a>,
    filter: Option<&'a Filter>,
    sink: &'a mut dyn Sink,
    deadline: Option<Instant>,
    /// Latest stamp so far.
    latest: Option<Time<Utc>>,
    done: ConsumerResult,
}

impl<'a> Consumer<'a> {
    /// A consumer that applies `filter` where the kernel cannot.
    pub(super) fn new(
        context: &'a PipelineContext<'a>,
        filter: Option<&'a Filter>,
        sink: &'a mut dyn Sink,
    ) -> Self {
        let deadline = context.limit.duration.and_then(|limit| Instant::now().checked_add(limit));
        let done = ConsumerResult { ledger: Ledger::default(), failure: None };
        Self { context, filter, sink, deadline, latest: None, done }
    }

    /// Passes one packet to the sink, or drops it, counts it, and releases its `memory`.
    pub(super) fn take(&mut self, frame: Frame, memory: &dyn FrameMemory, stamp: Stamp) {
        use_and_release(frame, memory, |frame, bytes| self.packet(frame, bytes, stamp));
    }

    fn packet(&mut self, frame: &Frame, bytes: &[u8], stamp: Stamp) {
        let ledger = &mut self.done.ledger;
        ledger.out_of_order += u64::from(self.latest.is_some_and(|latest| stamp.utc < latest));
        self.latest = self.latest.max(Some(stamp.utc));
        if self.filter.is_some_and(|filter| !filter.passes(bytes, frame.length)) {
            ledger.filtered += 1;
        } else if self.context.limit.packets == Some(ledger.delivered) {
            ledger.surplus += 1;
        } else if self.done.failure.is_some() {
            ledger.consumer_dropped += 1;
        } else if self.context.shared_count.is_some_and(|count| !count.take()) {
            ledger.surplus += 1;
        } else {
            let differs = stamp.raw.domain == self.context.domain;
            let kernel = frame.kernel.filter(|_| differs);
            let kernel = kernel.and_then(|nanos| i64::try_from(nanos).ok());
            let kernel = kernel.map(Time::from_nanos);
            // Cut after the filter, which sees all captured bytes.
            let bytes = &bytes[..bytes.len().min(self.context.snaplen as usize)];
            let result =
                self.sink.packet(&CapturedPacket { stamp, kernel, bytes, length: frame.length });
            match result {
                Ok(()) => ledger.delivered += 1,
                Err(_) => ledger.consumer_dropped += 1,
            }
            self.done.keep_failure(result);
        }
    }

    /// Ends the capture with this error: packets that follow are dropped and counted.
    pub(super) fn fail(&mut self, error: Error) {
        self.done.keep_failure(Err(error));
        self.check_limits();
    }

    /// Passes a loss on to the sink.
    pub(super) fn missed(&mut self, missed: &CaptureLoss) {
        if self.done.failure.is_none() {
            let result = self.sink.missed(missed);
            self.done.keep_failure(result);
        }
    }

    /// Passes completeness on to the sink.
    pub(super) fn complete(&mut self, until: Time<Utc>) {
        if self.done.failure.is_none() {
            let result = self.sink.complete(until);
            self.done.keep_failure(result);
        }
    }

    /// Publishes the ledger, and requests the stop when the limit is reached or the sink has failed. Called per
    /// batch, because it reads the clock.
    pub(super) fn check_limits(&self) {
        self.context.live.publish(&self.done.ledger);
        let enough = self.context.limit.packets == Some(self.done.ledger.delivered)
            || self.context.shared_count.is_some_and(SharedCount::is_used_up);
        if self.time_left() == Some(Duration::ZERO) || enough || self.done.failure.is_some() {
            self.context.stop.request();
        }
    }

    /// Calls the sink's `pause`, because no packet is waiting. Returns how long the next call can be delayed if
    /// none arrives.
    pub(super) fn pause(&mut self) -> Duration {
        if self.done.failure.is_none() {
            let result = self.sink.pause();
            self.done.keep_failure(result);
        }
        self.check_limits();
        let time_left = self.time_left().filter(|time_left| !time_left.is_zero());
        time_left.map_or(PAUSE_LIMIT, |time_left| time_left.min(PAUSE_LIMIT))
    }

    /// Time left until the limit, if there is one.
    fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Ends the sink and returns the result.
    pub(super) fn finish(mut self) -> ConsumerResult {
        let result = self.sink.end();
        self.done.keep_failure(result);
        // Packets that the sink lost are not delivered.
        let ledger = &mut self.done.ledger;
        let lost = self.sink.lost().min(ledger.delivered);
        ledger.delivered -= lost;
        ledger.consumer_dropped += lost;
        self.done
    }
}

impl ConsumerResult {
    /// Keeps the first failure.
    fn keep_failure(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }
}
