//! Stage one: take a stamp for each frame that has arrived, and hand the frame on.

use std::hint;
use std::io;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rtrb::Producer;

use super::{Plan, Wait};
use crate::Error;
use crate::priority::realtime;
use crate::receiver::{Frame, KernelCounts, Receiver};
use crate::waiter::Waiter;

/// Upper bound of a wait, which a packet or a stop request ends at once.
const WAIT_LIMIT: Duration = Duration::from_secs(1);
/// How often it is looked whether there is room again, after there was none.
const ROOM_LIMIT: Duration = Duration::from_millis(1);
/// How long the frames that are in the kernel's ring when the capture stops may take to come out
/// of it. A ring of blocks hands its last one over when its timer expires, within 100 ms.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Frames after which the kernel's counts are fetched: its counters have 32 bits.
const COUNT_INTERVAL: u64 = 1 << 30;

/// What came of the stage.
pub(super) struct Acquired {
    /// The kernel's counts, as far as they could be had.
    pub(super) counts: KernelCounts,
    /// Frames handed over.
    pub(super) frames: u64,
    /// What ended the stage before the stop was requested.
    pub(super) outcome: Result<(), Error>,
}

/// What becomes of the frames that are acquired.
pub(super) trait Downstream {
    /// How many frames it can take now.
    fn room(&self) -> usize;

    /// Takes a frame. There is room.
    fn take(&mut self, frame: Frame);

    /// Called when the frames that had arrived have been taken.
    fn turn(&mut self);

    /// Called when none have arrived; returns how long this can be left alone if none do.
    fn idle(&mut self) -> Duration;

    /// Whether nobody wants frames any more.
    fn is_gone(&self) -> bool;

    /// Whether frames may be left to gather before they are taken.
    fn is_patient(&self) -> bool;
}

/// Frames go to a thread of their own.
pub(super) struct Handover {
    pub(super) frames: Producer<Frame>,
    pub(super) converter: Thread,
}

impl Downstream for Handover {
    fn room(&self) -> usize {
        self.frames.slots()
    }

    fn take(&mut self, frame: Frame) {
        let pushed = self.frames.push(frame);
        debug_assert!(pushed.is_ok(), "the receiver was told how much room there is");
    }

    /// After the last frame is stamped, so that the wake-up delays no stamp of this batch.
    fn turn(&mut self) {
        self.converter.unpark();
    }

    fn idle(&mut self) -> Duration {
        WAIT_LIMIT
    }

    fn is_gone(&self) -> bool {
        self.frames.is_abandoned()
    }

    /// The sooner a frame is found, the better is its stamp.
    fn is_patient(&self) -> bool {
        false
    }
}

/// Acquires until the stop is requested, then shuts the kernel's door and drains what is inside.
pub(super) fn acquire<R: Receiver>(
    receiver: R,
    downstream: &mut impl Downstream,
    plan: &Plan<'_>,
) -> Acquired {
    let mut stage = Stage { receiver, downstream, acquired: 0, counted: 0 };
    let outcome = stage.run(plan);
    let counts = stage.receiver.counts().unwrap_or_default();
    Acquired { counts, frames: stage.acquired, outcome }
}

fn prioritise(wait: Wait) -> io::Result<()> {
    match wait {
        Wait::Block { realtime: true } => realtime(),
        Wait::Block { realtime: false } | Wait::Spin => Ok(()),
    }
}

struct Stage<'a, R, D> {
    receiver: R,
    downstream: &'a mut D,
    acquired: u64,
    /// How many of them there were when the kernel's counts were last fetched.
    counted: u64,
}

impl<R: Receiver, D: Downstream> Stage<'_, R, D> {
    fn run(&mut self, plan: &Plan<'_>) -> Result<(), Error> {
        let failed = |what, capability| {
            move |cause| Error::system(what, &plan.interface.name, capability, cause)
        };
        prioritise(plan.wait).map_err(failed("take real-time priority", "cap_sys_nice"))?;
        let waiter = Waiter::new(self.receiver.descriptor(), plan.stop)
            .map_err(failed("wait for packets", "cap_net_raw"))?;
        let acquired = self.until_stop(plan, &waiter);
        let drained = self.receiver.close_intake().and_then(|()| self.drain(&waiter));
        acquired.and(drained.map_err(failed("empty the ring", "cap_net_raw")))
    }

    fn until_stop(&mut self, plan: &Plan<'_>, waiter: &Waiter) -> Result<(), Error> {
        let failed = |cause| Error::system("capture", &plan.interface.name, "cap_net_raw", cause);
        let nap = R::NAP.filter(|_| self.downstream.is_patient());
        let mut gathering = false;
        while !plan.stop.is_requested() {
            // Asked before: what comes free meanwhile must not pass for a lack of news.
            let full = self.downstream.room() == 0 || self.receiver.is_lent_out();
            if self.hand_over() > 0 {
                gathering = true;
                if self.acquired - self.counted >= COUNT_INTERVAL {
                    self.counted = self.acquired;
                    self.receiver.counts().map_err(failed)?;
                }
            } else if plan.wait == Wait::Spin {
                hint::spin_loop();
            } else if full {
                // There may be news, but no room for it; nothing tells when there is.
                waiter.wait(ROOM_LIMIT).map_err(failed)?;
            } else if let Some(nap) = nap.filter(|_| gathering) {
                // More are likely to come; if none do, the next look finds nothing.
                gathering = false;
                thread::sleep(nap);
            } else {
                let patience = self.downstream.idle().min(WAIT_LIMIT);
                if self.receiver.may_sleep() {
                    waiter.wait(patience).map_err(failed)?;
                    gathering = self.hand_over() > 0;
                    if !gathering {
                        plan.interface.check()?;
                    }
                }
            }
        }
        plan.interface.check()
    }

    /// Passes on what has arrived.
    fn hand_over(&mut self) -> usize {
        let room = self.downstream.room();
        let count = self.receiver.acquire(room, |frame| self.downstream.take(frame));
        if count > 0 {
            self.acquired += count as u64;
            self.downstream.turn();
        }
        count
    }

    /// Acquires until as many frames have come out as the kernel says went in. The consumer may
    /// take its time with those that are out already; the kernel has to hand over the rest soon.
    fn drain(&mut self, waiter: &Waiter) -> io::Result<()> {
        let mut deadline = Instant::now() + DRAIN_LIMIT;
        loop {
            let handed_over = self.hand_over() > 0;
            let waiting_for_consumer = self.downstream.room() == 0 || self.receiver.is_lent_out();
            if self.downstream.is_gone() {
                return Ok(()); // nobody takes them any more
            }
            if handed_over || waiting_for_consumer {
                deadline = Instant::now() + DRAIN_LIMIT;
            }
            let counts = self.receiver.counts()?;
            let expected = counts.seen.saturating_sub(counts.dropped);
            if self.acquired >= expected || Instant::now() > deadline {
                return Ok(());
            }
            if !handed_over {
                waiter.wait(ROOM_LIMIT)?;
            }
        }
    }
}
