//! Sends the frames of a capture file again, with their own timing.

mod tape;
mod timing;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

use crate::netlink::Link;
use crate::outlet::Outlet;
use crate::run::Run;
use crate::transmit::{Transmission, open_for_frames};
use crate::{PacingClock, SendError, Sent, TxStamps, Unavailable};
use tape::{Frame, Tape};
use timing::Timing;

pub use timing::Speed;

/// What to replay, and how.
#[derive(Clone, Debug)]
pub struct Recording {
    /// A capture file, in any format that [`wirestamp_capture::file::Reader`] reads.
    pub path: PathBuf,
    /// How much faster than it was recorded.
    pub speed: Speed,
    /// How many times; `u64::MAX` for no end.
    pub loops: u64,
}

/// A capture could not be made ready for replay.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The file is not to be read.
    #[error(transparent)]
    File(#[from] wirestamp_capture::Error),
    /// There is nothing in it.
    #[error("{} has no packets; `capinfos` tells what is in a capture", .0.display())]
    Empty(PathBuf),
    /// Its packets cannot be sent as they are.
    #[error(
        "{} begins with a packet without Ethernet header, and only Ethernet frames are replayed; \
         `tcprewrite --dlt=enet` adds headers", .0.display()
    )]
    NotEthernet(PathBuf),
    /// The interface cannot be used.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// What was replayed. Of every packet that was read from the file, `sent`, `failed`, `too_long` or
/// `not_ethernet` tells, or it was the last one before a request to stop.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// Frames that the kernel took.
    pub sent: u64,
    /// Their bytes, without check sequence and preamble.
    pub bytes: u64,
    /// Frames that the kernel refused.
    pub failed: u64,
    /// What it said of the first.
    pub first_error: Option<String>,
    /// Frames that were not sent, because they are longer than the interface's MTU allows.
    pub too_long: u64,
    /// Packets that were not sent, because they are no Ethernet frames.
    pub not_ethernet: u64,
    /// Frames sent of which the file has only the beginning.
    pub cut_short: u64,
    /// Packets whose time in the file is before that of a packet ahead of them; they were sent
    /// right behind it.
    pub time_went_back: u64,
    /// Why the file was not read to its end.
    pub broke_off: Option<wirestamp_capture::Error>,
    /// Packets that were late because a sleep ended after their deadline.
    pub overslept: u64,
    /// Whether it ended by request, before everything was sent.
    pub stopped: bool,
}

/// A capture that is ready to be replayed over one interface.
///
/// Its socket belongs to the network namespace of the thread that opens it.
#[derive(Debug)]
pub struct Replay {
    recording: Recording,
    link: Link,
    outlet: Outlet,
}

impl Replay {
    /// Looks into the file and opens a socket on `interface`. The frames keep the hardware
    /// addresses that they have: [`Transmission::mac`] is not used.
    ///
    /// # Errors
    /// [`ReplayError`] when the file or the interface cannot be used. [`SendMethod::Udp`] cannot
    /// send frames.
    ///
    /// [`SendMethod::Udp`]: crate::SendMethod::Udp
    pub fn open(
        recording: Recording,
        interface: &str,
        transmission: &Transmission,
    ) -> Result<Self, ReplayError> {
        tape::check(&recording.path)?;
        let link = Link::find(interface)?;
        let transmit = open_for_frames(&link, transmission)?;
        let outlet = Outlet::new(transmit, Some(interface), transmission)?;
        Ok(Self { recording, link, outlet })
    }

    /// Which transmit stamps cannot be had, and why; none if none were asked for.
    #[must_use]
    pub fn unavailable_stamps(&self) -> Option<&Unavailable> {
        self.outlet.unavailable()
    }

    /// With [`SendMethod::Xdp`](crate::SendMethod::Xdp), `zero-copy` where the driver sends from our
    /// memory, or `copy`.
    #[must_use]
    pub fn mode(&self) -> Option<&'static str> {
        self.outlet.mode()
    }

    /// Sends everything, or until `stop` is set, which is noticed within some 10 ms.
    ///
    /// The first frame is due at once, each other one as long after the one before it as in the
    /// file, divided by the speed. From the last frame of one loop to the first of the next it is as
    /// long as between two frames on average. A thread reads ahead of the calling one, which is
    /// paced and on which `on_sent` is called as [`Sender::run`](crate::Sender::run) does. The
    /// sequence numbers count the file's packets, from 0 on and through all loops.
    pub fn run(
        mut self,
        clock: &mut impl PacingClock,
        stop: &AtomicBool,
        mut on_sent: impl FnMut(&Sent),
    ) -> ReplayReport {
        let Recording { path, speed, loops } = self.recording.clone();
        let mut report = ReplayReport::default();
        let mut timing = Timing::new(speed);
        let mut tape = Tape::start(path, loops).peekable();
        // The start waits for the disk, so that the first packet does not.
        tape.peek();
        let mut run = Run::start(clock, stop);
        for (sequence, frame) in (0..).zip(tape) {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    report.broke_off = Some(error);
                    break;
                }
            };
            let due = timing.place(frame.round, frame.time);
            report.time_went_back += u64::from(due.went_back);
            if !report.admits(&frame, &self.link) {
                continue;
            }
            let outlets = std::slice::from_mut(&mut self.outlet);
            let Some(deadline) = run.wait(due.offset, outlets, &mut on_sent) else { break };
            send(run.clock, &frame.bytes, sequence, deadline, &mut self.outlet);
        }
        self.outlet.finish(&mut on_sent);
        let Outlet { sent, bytes, failed, first_error, .. } = self.outlet;
        let (overslept, stopped) = (run.overslept, run.stopped);
        ReplayReport { sent, bytes, failed, first_error, overslept, stopped, ..report }
    }
}

impl ReplayReport {
    /// Whether a frame can be sent over `link`; counts what is odd about it.
    fn admits(&mut self, frame: &Frame, link: &Link) -> bool {
        let fits = link.takes(&frame.bytes);
        self.not_ethernet += u64::from(!frame.is_ethernet);
        self.too_long += u64::from(frame.is_ethernet && !fits);
        let admitted = frame.is_ethernet && fits;
        self.cut_short += u64::from(admitted && frame.is_cut);
        admitted
    }
}

/// Sends one frame now.
fn send(clock: &impl PacingClock, frame: &[u8], sequence: u64, deadline: u64, outlet: &mut Outlet) {
    let now = clock.now();
    let sent = Sent {
        stream: 0,
        sequence,
        intended: clock.utc(deadline),
        actual: clock.utc(now),
        pacing_error: clock.span(deadline, now),
        stamps: TxStamps::default(),
    };
    outlet.send(frame, u64::try_from(frame.len()).unwrap_or(u64::MAX), sent);
}
