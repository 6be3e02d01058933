//! Live frames: frames that an XDP program generates in the kernel. This gives the highest rates
//! without a special driver.
//!
//! The kernel runs the program on duplicates of one frame and executes its verdict, as if each frame
//! had arrived at an interface ("Running XDP programs in live frame mode",
//! `Documentation/bpf/bpf_prog_run.rst`). No packet passes a socket, so routes, neighbours, filters
//! and queueing disciplines do not apply: the frame is sent as its [`Template`] defines it.
//!
//! The program writes the flow's source port, the sequence number, the time, and a valid UDP
//! checksum (over IPv4 too). The time is `bpf_ktime_get_ns`: `CLOCK_MONOTONIC`, read when the program
//! runs ([`Payload::sent_monotonic`](crate::Payload::sent_monotonic)). A frame leaves when its whole
//! batch of up to 64 frames is written.

mod burst_run;
mod dispatcher;
mod endpoint;
mod error;
mod interface;
mod libbpf;
mod pace;
mod program;
mod template;

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

use wirestamp_clock::Span;
use wirestamp_sys::scheduling::disable_timer_slack;

use self::burst_run::{BurstRun, run_bursts};
pub use self::endpoint::{Endpoint, incoming, outgoing};
pub use self::error::LiveError;
use self::interface::Interface;
pub use self::pace::Pace;
use self::program::{Program, system};
pub use self::template::Template;
use crate::PacingClock;

/// Direction in which frames pass the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Out of it (`XDP_TX`).
    Transmit,
    /// Into the network stack, as received frames (`XDP_PASS`): after an XDP program in the
    /// interface's driver, and before packet sockets.
    Receive,
    /// The same on this core, as if it had read them from a network card: a kernel thread receives them there
    /// (`BPF_MAP_TYPE_CPUMAP`).
    ReceiveOn(u32),
}

impl Direction {
    /// The receiving core, if it is not the sender's.
    const fn core(self) -> Option<u32> {
        match self {
            Self::ReceiveOn(core) => Some(core),
            Self::Transmit | Self::Receive => None,
        }
    }
}

/// End of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Max number of frames.
    pub frames: Option<u64>,
    /// Max duration.
    pub duration: Option<Span>,
}

/// Result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveReport {
    /// Frames handed to the driver or to the stack. Their sequence numbers have no gaps.
    pub sent: u64,
    /// Their bytes, without check sequences.
    pub bytes: u64,
    /// Frames of all senders that the interface dropped in this direction during the run, and frames
    /// that the queue of [`Direction::ReceiveOn`]'s core had no room for. For a veth this includes
    /// frames that its peer had no room for. Frames that the stack drops on receipt are not included.
    pub dropped: u64,
    /// Time from the deadline of the first burst to the end of the last one.
    pub elapsed: Span,
    /// Bursts that were late because a sleep ended after their deadline.
    pub overslept: u64,
    /// Longest time from the deadline of a burst to its begin. The bursts after it are sent at once, so that more frames
    /// arrive together than the pace has. None at full speed, where bursts have no deadlines.
    pub latest: Option<Span>,
    /// Whether a request ended the run before everything was sent.
    pub stopped: bool,
}

/// A frame generator, ready to send.
///
/// Bound to the thread that opens it: the kernel finds the interface by its index in the network
/// namespace of the calling thread.
pub struct LiveFrames {
    interface: Interface,
    program: Program,
    template: Template,
    direction: Direction,
    not_send: PhantomData<*const ()>,
}

impl LiveFrames {
    /// Loads the program for frames that pass `interface` of the calling thread's network namespace.
    ///
    /// # Errors
    /// An invalid template; an interface that does not exist, is down or cannot send such frames
    /// ([`LiveError::NoTransmit`] describes what a veth requires); or missing privileges.
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
        Ok(Self { interface, program, template, direction, not_send: PhantomData })
    }

    /// Sends until the limit is reached or `stop` is set; reacts to `stop` within about 10 ms. The
    /// next run continues with the next sequence number.
    ///
    /// Each burst is sent at its deadline, never before; a late burst is sent at once. Sets the
    /// thread's timer slack to the minimum.
    ///
    /// # Errors
    /// When the interface goes down or is removed, or the kernel refuses to run the program.
    pub fn run(
        &mut self,
        clock: &impl PacingClock,
        pace: Pace,
        limit: Limit,
        stop: &AtomicBool,
    ) -> Result<LiveReport, LiveError> {
        disable_timer_slack();
        let (sent_before, dropped_before) = (self.program.sent, self.dropped()?);
        let BurstRun { elapsed, overslept, latest, stopped } =
            run_bursts(clock, pace, limit, stop, |frames| {
                // The kernel silently drops frames for an interface that is down.
                self.interface.check()?;
                self.program.send(frames).map_err(|cause| self.failed(cause))
            })?;
        let sent = self.program.sent - sent_before;
        let bytes = sent * u64::from(self.template.frame_bytes);
        let dropped = self.dropped()?.saturating_sub(dropped_before);
        Ok(LiveReport { sent, bytes, dropped, elapsed, overslept, latest, stopped })
    }

    fn dropped(&self) -> Result<u64, LiveError> {
        let refused = self.program.refused().map_err(|cause| self.failed(cause))?;
        Ok(self.interface.dropped(self.direction)? + refused)
    }

    /// The error of a failed program run: the interface's error, if it is down or gone.
    fn failed(&self, cause: io::Error) -> LiveError {
        let what = "run the program that generates frames (requires Linux 5.18)";
        self.interface.check().err().unwrap_or_else(|| system(what, &self.interface.link, cause))
    }
}
