//! Stage one: take a stamp for each frame that has arrived, and hand the frame on.

use std::hint;
use std::io;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rtrb::{Producer, PushError};
use wirestamp_clock::{Time, Utc};
use wirestamp_sys::scheduling::set_realtime;

use super::drops::{Drops, STAMPED_BEFORE};
use super::{Plan, Wait};
use crate::receiver::{Frame, KernelCounts, Receiver};
use crate::waiter::Waiter;
use crate::{CaptureLoss, Error};

/// Upper bound of a wait, which a packet or a stop request ends at once.
const WAIT_LIMIT: Duration = Duration::from_secs(1);
/// How often it is looked whether there is room again, after there was none.
const ROOM_LIMIT: Duration = Duration::from_millis(1);
/// How long the frames that are in the kernel's ring when the capture stops may take to come out
/// of it. A ring of blocks hands its last one over when its timer expires, within 100 ms.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// What came of the stage.
pub(super) struct Acquired {
    /// The kernel's counts, as far as they could be had.
    pub(super) counts: KernelCounts,
    /// Frames handed over.
    pub(super) frames: u64,
    /// What the kernel dropped and nobody downstream has been told of yet.
    pub(super) missed: Option<CaptureLoss>,
    /// What ended the stage before the stop was requested.
    pub(super) outcome: Result<(), Error>,
}

impl Acquired {
    /// Packets that the kernel has, did not drop, and did not hand over.
    pub(super) fn left_behind(&self) -> u64 {
        self.counts.seen.saturating_sub(self.counts.dropped).saturating_sub(self.frames)
    }
}

/// What becomes of the frames that are acquired.
pub(super) trait Downstream {
    /// How many frames it can take now.
    fn room(&self) -> usize;

    /// Takes a frame. There is room.
    fn take(&mut self, frame: Frame);

    /// Is told what the kernel dropped, before it takes any frame that is stamped later. Gives back
    /// what it has no room for.
    fn missed(&mut self, missed: CaptureLoss) -> Result<(), CaptureLoss>;

    /// Called when the frames that had arrived have been taken.
    fn turn(&mut self);

    /// Is told that it has taken every frame stamped before a time, and been told of all of them that were
    /// dropped.
    fn complete(&mut self, until: Time<Utc>);

    /// Called when none have arrived; returns how long this can be left alone if none do.
    fn idle(&mut self) -> Duration;

    /// Whether nobody wants frames any more.
    fn is_gone(&self) -> bool;

    /// Whether frames may be left to gather before they are taken, and wait for [`Self::turn`] after
    /// that.
    fn is_patient(&self) -> bool;
}

/// Frames go to a thread of their own.
pub(super) struct Handover {
    pub(super) frames: Producer<Frame>,
    /// Goes past the converter: it has no stamps to convert.
    pub(super) missed: Producer<CaptureLoss>,
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

    fn missed(&mut self, missed: CaptureLoss) -> Result<(), CaptureLoss> {
        self.missed.push(missed).map_err(|PushError::Full(missed)| missed)
    }

    /// After the last frame is stamped, so that the wake-up delays no stamp of this batch.
    fn turn(&mut self) {
        self.converter.unpark();
    }

    /// What it has taken is on its way for a while.
    fn complete(&mut self, _: Time<Utc>) {}

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
    let drops = Drops::since(plan.opened, plan.live);
    let mut stage = Stage { receiver, downstream, drops, acquired: 0, awaited: None };
    let outcome = stage.run(plan);
    // Where it cannot be read, what was read last is all that can be had.
    let _ = stage.read_drops();
    let Stage { drops, acquired, .. } = stage;
    Acquired { counts: drops.counts(), frames: acquired, missed: drops.untold(), outcome }
}

fn prioritise(wait: Wait) -> io::Result<()> {
    match wait {
        Wait::Block { realtime: true } => set_realtime(),
        Wait::Block { realtime: false } | Wait::Spin => Ok(()),
    }
}

struct Stage<'a, R, D> {
    receiver: R,
    downstream: &'a mut D,
    drops: Drops<'a>,
    acquired: u64,
    /// How many frames had arrived at a time that are not all acquired yet.
    awaited: Option<(Time<Utc>, u64)>,
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
        let spins = plan.wait == Wait::Spin;
        let (mut found, mut gathering) = (true, false);
        while !plan.stop.is_requested() {
            // Asked before: what comes free meanwhile must not pass for a lack of news.
            let full = self.downstream.room() == 0 || self.receiver.is_lent_out();
            // Whoever spins in vain looks at the ring only, for the sake of the next stamp.
            if found || !spins {
                self.watch_drops().map_err(failed)?;
            }
            found = self.hand_over().map_err(failed)? > 0;
            if found {
                gathering = true;
            } else if spins {
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
                    waiter.wait(patience).and_then(|()| self.watch_drops()).map_err(failed)?;
                    gathering = self.hand_over().map_err(failed)? > 0;
                    if !gathering {
                        plan.interface.check()?;
                    }
                }
            }
        }
        plan.interface.check()
    }

    /// Passes on what has arrived.
    fn hand_over(&mut self) -> io::Result<usize> {
        let room = self.downstream.room();
        let count = self.receiver.acquire(room, |frame| self.downstream.take(frame));
        if count > 0 {
            self.acquired += count as u64;
            // While the frames wait, what was dropped before any of them can be told ahead of it.
            if self.downstream.is_patient() {
                self.read_drops()?;
            }
        }
        if count < room && !self.downstream.is_patient() {
            self.drops.stamped();
            self.tell_drops();
        }
        if count > 0 {
            self.downstream.turn();
        }
        self.tell_complete();
        Ok(count)
    }

    /// Reads the kernel's counts if it is time. Called before frames are taken, so that nobody is
    /// handed one that is stamped much later than drops that nobody knows of.
    fn watch_drops(&mut self) -> io::Result<()> {
        if self.drops.is_due() { self.read_drops() } else { Ok(()) }
    }

    /// Reads the kernel's counts, and tells of them at once unless frames that are to be stamped may be
    /// waiting.
    fn read_drops(&mut self) -> io::Result<()> {
        self.drops.read(&mut self.receiver)?;
        if self.downstream.is_patient() {
            self.tell_drops();
        }
        // Those of an earlier reading come first, or there might never be a time by which all have come.
        self.awaited.get_or_insert(self.drops.arrived());
        Ok(())
    }

    /// Tells until when everything has been taken, if all frames are there that had arrived by then.
    fn tell_complete(&mut self) {
        if let Some((time, _)) = self.awaited.take_if(|(_, frames)| self.acquired >= *frames) {
            self.downstream.complete(time - STAMPED_BEFORE);
        }
    }

    fn tell_drops(&mut self) {
        self.drops.tell(|missed| self.downstream.missed(missed));
    }

    /// Acquires until as many frames have come out as the kernel says went in. The consumer may
    /// take its time with those that are out already; the kernel has to hand over the rest soon.
    fn drain(&mut self, waiter: &Waiter) -> io::Result<()> {
        let mut deadline = Instant::now() + DRAIN_LIMIT;
        self.read_drops()?;
        loop {
            let handed_over = self.hand_over()? > 0;
            let waiting_for_consumer = self.downstream.room() == 0 || self.receiver.is_lent_out();
            if self.downstream.is_gone() {
                return Ok(()); // nobody takes them any more
            }
            if handed_over || waiting_for_consumer {
                deadline = Instant::now() + DRAIN_LIMIT;
            }
            self.read_drops()?;
            let counts = self.drops.counts();
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
