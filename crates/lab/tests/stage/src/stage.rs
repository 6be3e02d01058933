//! The stage: forwards frames between two interfaces, impaired by the plan.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_lab::wire::{FAR, Wire};
use wirestamp_lab::{TAP_A, TAP_B};

use crate::plan::ImpairmentPlan;
use crate::queue::Queue;
use crate::report::{SendTimes, StageReport, StagedPacket};
use crate::socket::{FrameSocket, now};

/// Max frames received before due frames are sent.
const BATCH: usize = 64;
/// Max wait if the plan's delay is shorter than this: frames arriving meanwhile are late by up to it.
const MIN_WAIT: Span = Span::from_micros(20);

/// Returns the number of a frame, given from its Ethernet header; `None` if it is not a test packet.
pub type NumberOf<'a> = &'a (dyn Fn(&[u8]) -> Option<u64> + Sync);

/// Forwards frames between the two interfaces of a [`Wire`].
///
/// Test packets are delayed, dropped and duplicated by the plan. Delays count from the kernel's stamp
/// of the arrival, on the kernel's clock. No packet is sent before it is due; the actual send times
/// are in the [`StageReport`]. All other frames, and frames in the other direction, are forwarded at
/// once.
#[derive(Debug)]
pub struct Stage {
    plan: ImpairmentPlan,
    near: FrameSocket,
    far: FrameSocket,
    queue: Queue,
    report: StageReport,
}

impl Stage {
    /// A stage between the interfaces of `wire`. Frames are received from now on, and sent by [`Stage::run`]. Without a
    /// stage the wire forwards nothing; two stages would duplicate every frame.
    ///
    /// # Errors
    /// Usually because `CAP_NET_RAW` is missing.
    pub fn open(wire: &Wire, plan: ImpairmentPlan) -> io::Result<Self> {
        let open = || io::Result::Ok((FrameSocket::open(TAP_A)?, FrameSocket::open(FAR)?));
        let (near, far) = wire.wire.run(open)??;
        await_stamps(wire)?;
        Ok(Self { plan, near, far, queue: Queue::default(), report: StageReport::default() })
    }

    /// Forwards frames until `stop` is set and all waiting frames are sent. `arrived` counts received
    /// test packets.
    ///
    /// # Errors
    /// When a frame cannot be received or sent.
    pub fn run(
        mut self,
        number_of: NumberOf<'_>,
        stop: &AtomicBool,
        arrived: &AtomicU64,
    ) -> io::Result<StageReport> {
        loop {
            // Read first, so that frames that arrived before the request are received after it.
            let stopping = stop.load(Ordering::Acquire);
            let idle = !(self.receive(number_of)? | self.send_back()?);
            arrived.store(self.report.packets.len() as u64, Ordering::Release);
            self.send_due()?;
            if idle {
                match self.queue.next_due() {
                    None if stopping => break,
                    due => self.wait(due)?,
                }
            }
        }
        self.report.missed = self.near.missed()? + self.far.missed()?;
        Ok(self.report)
    }

    /// Receives arrived frames; returns whether there was any.
    fn receive(&mut self, number_of: NumberOf<'_>) -> io::Result<bool> {
        for taken in 0..BATCH {
            let Some(received) = self.near.receive()? else { return Ok(taken > 0) };
            let Some(number) = number_of(received.frame()) else {
                self.far.send(received.raw)?;
                self.report.others += 1;
                continue;
            };
            self.report.unstamped += u64::from(received.stamp.is_none());
            let arrived = received.stamp.unwrap_or_else(now);
            let planned = self.plan.delivery(number);
            let packet = self.report.packets.len();
            for (copy, delay) in planned.delays().into_iter().flatten().enumerate() {
                self.queue.push(arrived + delay, received.raw.into(), packet, copy);
            }
            self.report.packets.push(StagedPacket { number, arrived, planned, sent: [None; 2] });
        }
        Ok(true)
    }

    /// Forwards frames in the other direction; returns whether there was any.
    fn send_back(&mut self) -> io::Result<bool> {
        for taken in 0..BATCH {
            let Some(received) = self.far.receive()? else { return Ok(taken > 0) };
            self.near.send(received.raw)?;
            self.report.others += 1;
        }
        Ok(true)
    }

    fn send_due(&mut self) -> io::Result<()> {
        loop {
            let before = now();
            let Some(queued) = self.queue.take_due(before) else { return Ok(()) };
            self.far.send(&queued.frame)?;
            let sending = SendTimes { due: queued.due, before, after: now() };
            self.report.packets[queued.packet].sent[queued.copy] = Some(sending);
        }
    }

    /// Waits for a frame in the other direction, at most until the next frame is due or the min delay
    /// has passed.
    ///
    /// Arriving test packets wait in the socket with their stamps. They are not due before the min
    /// delay, so they need no wake-up.
    fn wait(&self, due: Option<Time<Utc>>) -> io::Result<()> {
        let max_wait = self.plan.delay.max(MIN_WAIT);
        let timeout = due.map_or(max_wait, |due| max_wait.min(due - now()));
        if timeout > Span::ZERO { self.far.wait(timeout) } else { Ok(()) }
    }
}

/// Sends frames from the wire to the sink until one has a stamp. The kernel starts to stamp, on all interfaces, shortly
/// after the first socket has requested stamps (`net_enable_timestamp` of net/core/dev.c), and stops when the last such
/// socket is closed.
fn await_stamps(wire: &Wire) -> io::Result<()> {
    let from = wire.wire.run(|| FrameSocket::open(FAR))??;
    let mut to = wire.sink.run(|| FrameSocket::open(TAP_B))??;
    loop {
        from.send_probe()?;
        to.wait(Span::from_secs(1))?;
        while let Some(received) = to.receive()? {
            if received.stamp.is_some() {
                return Ok(());
            }
        }
    }
}
