//! Stage one: stamps each frame that has arrived, and passes it on.

use std::hint;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rtrb::{Producer, PushError};
use wirestamp_clock::{Time, Utc};
use wirestamp_sys::scheduling::set_realtime;

use super::drops::{DropMonitor, STAMPED_BEFORE};
use super::wakeup::Wakeup;
use super::{PipelineContext, Wait};
use crate::receiver::{Frame, KernelCounts, Receiver};
use crate::waiter::Waiter;
use crate::{CaptureLoss, Error};

/// Max duration of a wait; a packet or a stop request ends it at once.
const WAIT_LIMIT: Duration = Duration::from_secs(1);
/// Rounds without packets between two readings of the clock by a thread that spins: some milliseconds. A reading delays
/// the stamp of a packet that arrives meanwhile.
const SPIN_ROUNDS: u32 = 1 << 16;
/// Interval of checks for free room, after there was none.
const ROOM_LIMIT: Duration = Duration::from_millis(1);
/// How long frames may stay in the kernel's ring after the capture stopped. A ring of blocks releases its last one
/// when its timer expires, within 100 ms.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Result of the stage.
pub(super) struct AcquisitionResult {
    /// The kernel's counts, as far as they could be read.
    pub(super) counts: KernelCounts,
    /// Frames passed on.
    pub(super) frames: u64,
    /// Drops not yet reported downstream.
    pub(super) missed: Option<CaptureLoss>,
    /// The error that ended the stage before the stop was requested.
    pub(super) outcome: Result<(), Error>,
}

impl AcquisitionResult {
    /// Packets that the kernel neither dropped nor returned.
    pub(super) fn left_behind(&self) -> u64 {
        self.counts.seen.saturating_sub(self.counts.dropped).saturating_sub(self.frames)
    }
}

/// Receives the acquired frames.
pub(super) trait Downstream {
    /// How many frames it can take now.
    fn room(&self) -> usize;

    /// Takes a frame. There must be room.
    fn take(&mut self, frame: Frame);

    /// Reports packets dropped by the kernel, before any frame with a later stamp is taken. Returns them if there
    /// is no room.
    fn missed(&mut self, missed: CaptureLoss) -> Result<(), CaptureLoss>;

    /// Called after the frames that had arrived were taken.
    fn batch_done(&mut self);

    /// Reports that every frame stamped before a time was taken, and every drop before it reported.
    fn complete(&mut self, until: Time<Utc>);

    /// Called when no frames have arrived; returns how long the next call can be delayed if none do.
    fn idle(&mut self) -> Duration;

    /// Whether the receiving thread has ended.
    fn is_gone(&self) -> bool;

    /// Whether frames may collect before they are taken, and wait for [`Self::batch_done`] after that.
    fn may_batch(&self) -> bool;
}

/// Sends frames to the converting thread.
pub(super) struct FrameSender {
    pub(super) frames: Producer<Frame>,
    /// Bypasses the converter: there are no stamps to convert.
    pub(super) missed: Producer<CaptureLoss>,
    pub(super) converter: Wakeup,
}

impl Downstream for FrameSender {
    fn room(&self) -> usize {
        self.frames.slots()
    }

    fn take(&mut self, frame: Frame) {
        let pushed = self.frames.push(frame);
        debug_assert!(pushed.is_ok(), "there is room");
    }

    fn missed(&mut self, missed: CaptureLoss) -> Result<(), CaptureLoss> {
        self.missed.push(missed).map_err(|PushError::Full(missed)| missed)
    }

    /// After the last frame is stamped, so that a wake-up delays no stamp of this batch.
    fn batch_done(&mut self) {
        self.converter.notify(self.frames.buffer().capacity() - self.frames.slots());
    }

    /// Frames that were taken are still in the queue: nothing to report.
    fn complete(&mut self, _: Time<Utc>) {}

    fn idle(&mut self) -> Duration {
        WAIT_LIMIT
    }

    fn is_gone(&self) -> bool {
        self.frames.is_abandoned()
    }

    /// A frame has to be found quickly for an accurate stamp.
    fn may_batch(&self) -> bool {
        false
    }
}

/// Acquires frames until the stop is requested, then stops their arrival and drains the kernel's memory.
pub(super) fn acquire<R: Receiver>(
    receiver: R,
    downstream: &mut impl Downstream,
    context: &PipelineContext<'_>,
) -> AcquisitionResult {
    let drops = DropMonitor::since(context.opened, context.live);
    let mut stage = Acquisition { receiver, downstream, drops, acquired: 0, arrived: None };
    let outcome = stage.run(context);
    // If they cannot be read, the counts of the last reading stay.
    let _ = stage.read_drops();
    let Acquisition { drops, acquired, .. } = stage;
    AcquisitionResult {
        counts: drops.counts(),
        frames: acquired,
        missed: drops.unreported(),
        outcome,
    }
}

fn set_priority(wait: Wait) -> io::Result<()> {
    match wait {
        Wait::Block { realtime: true } => set_realtime(),
        Wait::Block { realtime: false } | Wait::Spin => Ok(()),
    }
}

struct Acquisition<'a, R, D> {
    receiver: R,
    downstream: &'a mut D,
    drops: DropMonitor<'a>,
    acquired: u64,
    /// Number of frames that had arrived at a time, while not all of them are acquired.
    arrived: Option<(Time<Utc>, u64)>,
}

impl<R: Receiver, D: Downstream> Acquisition<'_, R, D> {
    fn run(&mut self, context: &PipelineContext<'_>) -> Result<(), Error> {
        let failed = |what, capability| {
            move |cause| Error::system(what, &context.interface.name, capability, cause)
        };
        set_priority(context.wait).map_err(failed("take real-time priority", "cap_sys_nice"))?;
        let waiter = Waiter::new(self.receiver.descriptor(), context.stop)
            .map_err(failed("wait for packets", "cap_net_raw"))?;
        let acquired = self.run_until_stop(context, &waiter);
        let drained = self.receiver.close_intake().and_then(|()| self.drain(&waiter));
        acquired.and(drained.map_err(failed("empty the ring", "cap_net_raw")))
    }

    fn run_until_stop(
        &mut self,
        context: &PipelineContext<'_>,
        waiter: &Waiter,
    ) -> Result<(), Error> {
        let failed =
            |cause| Error::system("capture", &context.interface.name, "cap_net_raw", cause);
        let collect_time = R::COLLECT_TIME.filter(|_| self.downstream.may_batch());
        let spins = context.wait == Wait::Spin;
        let (mut found, mut collecting) = (true, false);
        let (mut empty_rounds, mut checked) = (0_u32, Instant::now());
        while !context.stop.is_requested() {
            // Checked first: room that becomes free during the call must not look like a lack of frames.
            let full = self.downstream.room() == 0 || self.receiver.is_exhausted();
            // A spinning thread that finds nothing polls little but the ring, for accurate stamps.
            if found || !spins {
                self.poll_drops().map_err(failed)?;
            }
            found = self.forward().map_err(failed)? > 0;
            if found {
                collecting = true;
            } else if spins {
                empty_rounds = empty_rounds.wrapping_add(1);
                if empty_rounds.is_multiple_of(SPIN_ROUNDS) && checked.elapsed() >= WAIT_LIMIT {
                    checked = Instant::now();
                    context.check_interface()?;
                    self.poll_drops().map_err(failed)?;
                }
                hint::spin_loop();
            } else if full {
                // Frames may be waiting, but there is no room for them, and no event reports free room.
                waiter.wait(ROOM_LIMIT).map_err(failed)?;
            } else if let Some(collect_time) = collect_time.filter(|_| collecting) {
                // More frames are likely to arrive soon; otherwise the next check finds nothing.
                collecting = false;
                thread::sleep(collect_time);
            } else {
                let limit = self.downstream.idle().min(WAIT_LIMIT);
                if self.receiver.may_sleep() {
                    waiter.wait(limit).and_then(|()| self.poll_drops()).map_err(failed)?;
                    collecting = self.forward().map_err(failed)? > 0;
                    if !collecting {
                        context.check_interface()?;
                    }
                }
            }
        }
        context.check_interface()
    }

    /// Passes on the frames that have arrived.
    fn forward(&mut self) -> io::Result<usize> {
        let room = self.downstream.room();
        let count = self.receiver.acquire(room, |frame| self.downstream.take(frame));
        if count > 0 {
            self.acquired += count as u64;
            // While the frames wait, earlier drops can be reported before them.
            if self.downstream.may_batch() {
                self.read_drops()?;
            }
        }
        if count < room && !self.downstream.may_batch() {
            self.drops.extend_to_now();
            self.report_drops();
        }
        if count > 0 {
            self.downstream.batch_done();
        }
        self.report_complete();
        Ok(count)
    }

    /// Reads the kernel's counts if it is time. Called before frames are taken, so that drops are reported before
    /// frames with a much later stamp.
    fn poll_drops(&mut self) -> io::Result<()> {
        if self.drops.is_due() { self.read_drops() } else { Ok(()) }
    }

    /// Reads the kernel's counts. Reports new drops at once, unless unstamped frames may be waiting.
    fn read_drops(&mut self) -> io::Result<()> {
        self.drops.read(&mut self.receiver)?;
        if self.downstream.may_batch() {
            self.report_drops();
        }
        // Keeps an earlier reading: if each reading replaced it, completeness might never be reported.
        self.arrived.get_or_insert(self.drops.arrived());
        Ok(())
    }

    /// Reports completeness up to the last reading, if all frames that had arrived by then are acquired.
    fn report_complete(&mut self) {
        if let Some((time, _)) = self.arrived.take_if(|(_, frames)| self.acquired >= *frames) {
            self.downstream.complete(time - STAMPED_BEFORE);
        }
    }

    fn report_drops(&mut self) {
        self.drops.report(|missed| self.downstream.missed(missed));
    }

    /// Acquires all frames that the kernel has counted. Waits for a slow consumer without limit, and for the kernel
    /// up to `DRAIN_LIMIT`.
    fn drain(&mut self, waiter: &Waiter) -> io::Result<()> {
        let mut deadline = Instant::now() + DRAIN_LIMIT;
        self.read_drops()?;
        loop {
            let forwarded = self.forward()? > 0;
            let waiting_for_consumer = self.downstream.room() == 0 || self.receiver.is_exhausted();
            if self.downstream.is_gone() {
                return Ok(()); // no thread takes frames any more
            }
            if forwarded || waiting_for_consumer {
                deadline = Instant::now() + DRAIN_LIMIT;
            }
            self.read_drops()?;
            let counts = self.drops.counts();
            let expected = counts.seen.saturating_sub(counts.dropped);
            if self.acquired >= expected || Instant::now() > deadline {
                return Ok(());
            }
            if !forwarded {
                waiter.wait(ROOM_LIMIT)?;
            }
        }
    }
}
