//! Frames that an XDP program makes in the kernel: the highest rates that there are without a driver
//! of one's own.
//!
//! The kernel runs the program on copies of one frame and does with each what the program says, as
//! if it had come in over an interface ("Running XDP programs in live frame mode",
//! `Documentation/bpf/bpf_prog_run.rst`). No packet goes through a socket, so no route, neighbour,
//! filter or queueing discipline has a say: the frame is sent as its [`Template`] says.
//!
//! The program writes the source port of the flow, the sequence number, the time, and a UDP checksum
//! that is right, over IPv4 too. The time is that of `bpf_ktime_get_ns`: `CLOCK_MONOTONIC`, read when
//! the program ran ([`Payload::sent_monotonic`](crate::Payload::sent_monotonic)). The frame leaves
//! when all of its batch, up to 64, are written.

mod dispatcher;
mod drive;
mod ends;
mod error;
mod interface;
mod pace;
mod program;
mod template;

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

use wirestamp_clock::Span;

use self::drive::{Driven, drive};
pub use self::ends::{Endpoint, incoming, outgoing};
pub use self::error::LiveError;
use self::interface::Interface;
pub use self::pace::Pace;
use self::program::{Program, system};
pub use self::template::Template;
use crate::{PacingClock, sys};

/// Which way frames pass the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Out of it (`XDP_TX`).
    Transmit,
    /// Into the network stack, as if they had been received there (`XDP_PASS`): behind an XDP program
    /// in the interface's driver, and before packet sockets.
    Receive,
    /// The same on another core, as if that had taken them from a network card: a thread of the kernel receives
    /// them there (`BPF_MAP_TYPE_CPUMAP`), which some 16,000 frames wait for.
    ReceiveOn(u32),
}

impl Direction {
    /// The core that receives, where that is not the sender's.
    const fn core(self) -> Option<u32> {
        match self {
            Self::ReceiveOn(core) => Some(core),
            Self::Transmit | Self::Receive => None,
        }
    }
}

/// When a run ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// After so many frames.
    pub frames: Option<u64>,
    /// After so long.
    pub duration: Option<Span>,
}

/// What was sent in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveReport {
    /// Frames that were written and handed to the driver, or to the stack. Their sequence numbers
    /// follow each other without a gap.
    pub sent: u64,
    /// Their bytes, without check sequences.
    pub bytes: u64,
    /// Frames that the interface counted as dropped meanwhile in that direction, whoever sent them, and those
    /// that the core of [`Direction::ReceiveOn`] had no room for. A veth counts here what its peer had no
    /// room for. What the stack drops on receipt is not counted here.
    pub dropped: u64,
    /// From the first burst's deadline to the end of the last one.
    pub elapsed: Span,
    /// Bursts that were late because a sleep ended after their deadline.
    pub overslept: u64,
    /// Whether it ended by request, before everything was sent.
    pub stopped: bool,
}

/// A generator that is ready to send.
///
/// It belongs to the thread that opens it: the kernel looks the interface up by its number, in the
/// network namespace of the thread that calls.
pub struct LiveFrames {
    interface: Interface,
    program: Program,
    template: Template,
    direction: Direction,
    one_thread: PhantomData<*const ()>,
}

impl LiveFrames {
    /// Loads the program for frames that pass `interface`, which is one of the calling thread's
    /// network namespace.
    ///
    /// # Errors
    /// A template that cannot be built, an interface that does not exist, is down or cannot send
    /// such frames ([`LiveError::NoTransmit`] says what a veth wants), or missing privileges.
    pub fn open(
        interface: &str,
        template: Template,
        direction: Direction,
    ) -> Result<Self, LiveError> {
        let interface = Interface::open(interface)?;
        let (bytes, longest) = (template.frame_bytes, interface.link.longest_frame());
        if direction == Direction::Transmit && usize::from(bytes) > longest {
            let interface = interface.link.name;
            return Err(LiveError::TooLong { bytes, interface, longest });
        }
        let program = Program::load(&interface.link, &template, direction)?;
        Ok(Self { interface, program, template, direction, one_thread: PhantomData })
    }

    /// Sends until the limit is reached or `stop` is set, which is noticed within some 10 ms. Another
    /// run goes on with the sequence number after the last.
    ///
    /// Each burst is sent when its deadline has come and never before; one that is late is sent at
    /// once. The thread is left with the shortest timer slack.
    ///
    /// # Errors
    /// When the interface goes down or away, or the kernel refuses to run the program.
    pub fn run(
        &mut self,
        clock: &impl PacingClock,
        pace: Pace,
        limit: Limit,
        stop: &AtomicBool,
    ) -> Result<LiveReport, LiveError> {
        sys::end_sleeps_on_time();
        let (sent_before, dropped_before) = (self.program.sent(), self.dropped()?);
        let Driven { elapsed, overslept, stopped } = drive(clock, pace, limit, stop, |frames| {
            // The kernel drops frames for an interface that is down without a word.
            self.interface.check()?;
            self.program.send(frames).map_err(|cause| self.failed(cause))
        })?;
        let sent = self.program.sent() - sent_before;
        let bytes = sent * u64::from(self.template.frame_bytes);
        let dropped = self.dropped()?.saturating_sub(dropped_before);
        Ok(LiveReport { sent, bytes, dropped, elapsed, overslept, stopped })
    }

    fn dropped(&self) -> Result<u64, LiveError> {
        let refused = self.program.refused().map_err(|cause| self.failed(cause))?;
        Ok(self.interface.dropped(self.direction)? + refused)
    }

    /// The error for a run of the program that failed: the interface, if it is gone.
    fn failed(&self, cause: io::Error) -> LiveError {
        let what = "run the program that makes frames (Linux 5.18 or newer can)";
        self.interface.check().err().unwrap_or_else(|| system(what, &self.interface.link, cause))
    }
}
