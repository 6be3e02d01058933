//! The stage: takes frames from one interface and sends them over another, as the plan says.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wirestamp_clock::{Span, Time, Utc};

use super::account::{Account, Passage, Sending};
use super::plan::Plan;
use super::queue::Queue;
use super::socket::{FrameSocket, now};
use super::wire::FAR;
use crate::{LabError, Netns, TAP_A};

/// How many frames are taken in one go, before those that are due have their turn.
const BATCH: usize = 64;
/// How long the stage rests at most where the plan holds frames for less: what arrives meanwhile is
/// late by as much.
const SHORTEST_REST: Span = Span::from_micros(20);

/// Says a frame's number, from its Ethernet header on; `None` for a frame that is no part of the
/// test.
pub type NumberOf<'a> = &'a (dyn Fn(&[u8]) -> Option<u64> + Sync);

/// What stands between the two interfaces of a [`Wire`](super::Wire) and passes frames on.
///
/// Frames that have a number are held, dropped and copied as the plan says, counted from the
/// kernel's own stamp of their arrival, by the clock that the kernel stamps with. None is sent
/// before it is due; how much later it is sent is up to the machine, and in the [`Account`]. All
/// other frames, and those that go back, pass at once.
#[derive(Debug)]
pub struct Stage {
    plan: Plan,
    near: FrameSocket,
    far: FrameSocket,
    queue: Queue,
    account: Account,
}

impl Stage {
    /// A stage between the interfaces of `wire`. Frames are taken in from now on, and sent on by
    /// [`Stage::run`].
    ///
    /// # Errors
    /// [`LabError::System`], most often for want of `CAP_NET_RAW`.
    pub(super) fn open(wire: &Netns, plan: Plan) -> Result<Self, LabError> {
        let open = || Ok((FrameSocket::open(TAP_A)?, FrameSocket::open(FAR)?));
        let (near, far) = wire
            .run(open)
            .and_then(|opened| opened)
            .map_err(LabError::system("cannot open the impairment stage's sockets"))?;
        let (queue, account) = (Queue::default(), Account::default());
        Ok(Self { plan, near, far, queue, account })
    }

    /// Passes frames on until `stop` is set, and then those that are still held. `arrived` counts
    /// the frames with a number as they come in.
    ///
    /// # Errors
    /// [`LabError::System`] when a frame cannot be received or sent.
    pub fn run(
        mut self,
        number_of: NumberOf<'_>,
        stop: &AtomicBool,
        arrived: &AtomicU64,
    ) -> Result<Account, LabError> {
        self.pass_on(number_of, stop, arrived)
            .map_err(LabError::system("the impairment stage cannot go on"))?;
        Ok(self.account)
    }

    fn pass_on(
        &mut self,
        number_of: NumberOf<'_>,
        stop: &AtomicBool,
        arrived: &AtomicU64,
    ) -> io::Result<()> {
        loop {
            // Asked first: what came in before the request is taken in after it.
            let ends = stop.load(Ordering::Acquire);
            let idle = !(self.take_in(number_of)? | self.send_back()?);
            arrived.store(self.account.passages.len() as u64, Ordering::Release);
            self.send_due()?;
            if idle {
                match self.queue.next_due() {
                    None if ends => break,
                    due => self.rest(due)?,
                }
            }
        }
        self.account.missed = self.near.missed()? + self.far.missed()?;
        Ok(())
    }

    /// Takes in what has arrived; says whether there was anything.
    fn take_in(&mut self, number_of: NumberOf<'_>) -> io::Result<bool> {
        for taken in 0..BATCH {
            let Some(received) = self.near.receive()? else { return Ok(taken > 0) };
            let Some(number) = number_of(received.frame()) else {
                self.far.send(received.raw)?;
                self.account.others += 1;
                continue;
            };
            self.account.unstamped += u64::from(received.stamp.is_none());
            let arrived = received.stamp.unwrap_or_else(now);
            let fate = self.plan.fate(number);
            let passage = self.account.passages.len();
            for (copy, delay) in fate.delays().into_iter().flatten().enumerate() {
                self.queue.put(arrived + delay, received.raw.into(), passage, copy);
            }
            self.account.passages.push(Passage { number, arrived, fate, sent: [None; 2] });
        }
        Ok(true)
    }

    /// Passes on what goes back; says whether there was anything.
    fn send_back(&mut self) -> io::Result<bool> {
        for taken in 0..BATCH {
            let Some(received) = self.far.receive()? else { return Ok(taken > 0) };
            self.near.send(received.raw)?;
            self.account.others += 1;
        }
        Ok(true)
    }

    fn send_due(&mut self) -> io::Result<()> {
        loop {
            let before = now();
            let Some(held) = self.queue.take_due(before) else { return Ok(()) };
            self.far.send(&held.frame)?;
            let sending = Sending { due: held.due, before, after: now() };
            self.account.passages[held.passage].sent[held.copy] = Some(sending);
        }
    }

    /// Rests until a frame comes back, the next one is due, or one that arrives from now on may be.
    ///
    /// What arrives waits in the socket with its stamp, and is not due before the least delay has
    /// passed: nobody has to wake up for it.
    fn rest(&self, due: Option<Time<Utc>>) -> io::Result<()> {
        let longest = self.plan.delay.max(SHORTEST_REST);
        let patience = due.map_or(longest, |due| longest.min(due - now()));
        if patience > Span::ZERO { self.far.wait(patience) } else { Ok(()) }
    }
}
