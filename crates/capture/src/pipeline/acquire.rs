//! Stage one: take a stamp for each frame that has arrived, and hand the frame on.

use std::hint;
use std::io;
use std::thread::Thread;
use std::time::{Duration, Instant};

use rtrb::Producer;

use super::{Plan, Wait};
use crate::Error;
use crate::priority::realtime;
use crate::receiver::{Frame, KernelCounts, Receiver};
use crate::waiter::Waiter;

/// Upper bound of a wait, which a packet or a stop request ends at once.
const WAIT_LIMIT: Duration = Duration::from_secs(1);
/// How long the frames that are in the kernel's ring when the capture stops may take to come out
/// of it. A ring of blocks hands its last one over when its timer expires, within 10 ms.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);

/// Acquires until the stop is requested, then shuts the kernel's door and drains what is inside.
pub(super) fn acquire<R: Receiver>(
    receiver: R,
    frames: Producer<Frame>,
    converter: &Thread,
    plan: &Plan<'_>,
) -> Result<KernelCounts, Error> {
    let failed =
        |what, capability| move |cause| Error::system(what, plan.interface, capability, cause);
    let mut stage = Stage { receiver, frames, converter, acquired: 0 };
    let result = prioritise(plan.wait)
        .map_err(failed("take real-time priority", "cap_sys_nice"))
        .and_then(|()| stage.run(plan).map_err(failed("capture", "cap_net_raw")));
    drop(stage);
    // The converter sees the end of the queue only if it looks.
    converter.unpark();
    result
}

fn prioritise(wait: Wait) -> io::Result<()> {
    match wait {
        Wait::Block { realtime: true } => realtime(),
        Wait::Block { realtime: false } | Wait::Spin => Ok(()),
    }
}

struct Stage<'a, R> {
    receiver: R,
    frames: Producer<Frame>,
    converter: &'a Thread,
    acquired: u64,
}

impl<R: Receiver> Stage<'_, R> {
    fn run(&mut self, plan: &Plan<'_>) -> io::Result<KernelCounts> {
        let waiter = Waiter::new(self.receiver.descriptor(), plan.stop)?;
        while !plan.stop.is_requested() {
            if self.hand_over() == 0 {
                match plan.wait {
                    Wait::Block { .. } => waiter.wait(WAIT_LIMIT)?,
                    Wait::Spin => hint::spin_loop(),
                }
            }
        }
        self.receiver.close_intake()?;
        self.drain(&waiter)
    }

    /// Passes on what has arrived. The converter is woken after the last frame is stamped, so that
    /// the wake-up delays no stamp of this batch.
    fn hand_over(&mut self) -> usize {
        let room = self.frames.slots();
        let frames = &mut self.frames;
        let count = self.receiver.acquire(room, |frame| {
            let pushed = frames.push(frame);
            debug_assert!(pushed.is_ok(), "the receiver was told how much room there is");
        });
        if count > 0 {
            self.acquired += count as u64;
            self.converter.unpark();
        }
        count
    }

    /// Acquires until as many frames have come out as the kernel says went in.
    fn drain(&mut self, waiter: &Waiter) -> io::Result<KernelCounts> {
        let mut deadline = Instant::now() + DRAIN_LIMIT;
        loop {
            if self.hand_over() > 0 {
                deadline = Instant::now() + DRAIN_LIMIT;
                continue;
            }
            let counts = self.receiver.counts()?;
            let expected = counts.seen.saturating_sub(counts.dropped);
            if self.acquired >= expected || Instant::now() > deadline {
                return Ok(counts);
            }
            waiter.wait(Duration::from_millis(10))?;
        }
    }
}
