//! Sends the frames of a capture file again, with their own timing.

mod frame_reader;
mod timing;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

use crate::egress::Egress;
use crate::netlink::Link;
use crate::paced_run::PacedRun;
use crate::transmit::{SendOptions, open_for_frames};
use crate::{PacingClock, SendError, SentPacket, UnavailableStamps};
use frame_reader::{FrameReader, RecordedFrame};
use timing::ReplayTiming;

pub use timing::Speed;

/// File, speed and number of loops of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// A capture file, in any format that [`wirestamp_capture::file::Reader`] reads.
    pub path: PathBuf,
    /// Speed relative to the recording.
    pub speed: Speed,
    /// Number of loops; `u64::MAX` for endless.
    pub loops: u64,
}

/// A capture cannot be prepared for replay.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] wirestamp_capture::Error),
    /// The file has no packets.
    #[error("cannot replay {}: it has no packets; show its contents with `capinfos`", .0.display())]
    Empty(PathBuf),
    /// The first packet is not an Ethernet frame.
    #[error(
        "cannot replay {}: its first packet is not an Ethernet frame; add Ethernet headers with \
         `tcprewrite --dlt=enet`", .0.display()
    )]
    NotEthernet(PathBuf),
    /// The interface cannot be used.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// Result of a replay. Every packet read from the file is counted in exactly one of `sent`, `failed`,
/// `too_long` and `not_ethernet`, except the last one before a stop request.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// Frames that the kernel accepted.
    pub sent: u64,
    /// Their bytes, without check sequence and preamble.
    pub bytes: u64,
    /// Frames that the kernel refused.
    pub failed: u64,
    /// The kernel's first error.
    pub first_error: Option<String>,
    /// Frames not sent because they exceed the interface's MTU.
    pub too_long: u64,
    /// Packets not sent because they are not Ethernet frames.
    pub not_ethernet: u64,
    /// Frames sent truncated, because the file has only their beginning.
    pub cut_short: u64,
    /// Packets with an earlier time than a packet before them in the file; sent right after it.
    pub time_went_back: u64,
    /// Error that ended the reading of the file.
    pub read_error: Option<wirestamp_capture::Error>,
    /// Packets that were late because a sleep ended after their deadline.
    pub overslept: u64,
    /// Whether a request ended the replay before everything was sent.
    pub stopped: bool,
}

/// A replay of a capture over one interface, ready to run.
///
/// The socket belongs to the network namespace of the thread that opens it.
#[derive(Debug)]
pub struct Replay {
    recording: ReplayOptions,
    link: Link,
    egress: Egress,
}

impl Replay {
    /// Checks the file and opens a socket on `interface`. The frames keep their hardware addresses;
    /// [`SendOptions::mac`] is not used.
    ///
    /// # Errors
    /// [`ReplayError`] when the file or the interface cannot be used. [`SendMethod::Udp`] cannot
    /// send frames.
    ///
    /// [`SendMethod::Udp`]: crate::SendMethod::Udp
    pub fn open(
        recording: ReplayOptions,
        interface: &str,
        options: &SendOptions,
    ) -> Result<Self, ReplayError> {
        frame_reader::check(&recording.path)?;
        let link = Link::find(interface)?;
        let transmit = open_for_frames(&link, options)?;
        let egress = Egress::new(transmit, Some(interface), options)?;
        Ok(Self { recording, link, egress })
    }

    /// Unavailable transmit stamps, with the reason; none if no stamps were requested.
    #[must_use]
    pub fn unavailable_stamps(&self) -> Option<&UnavailableStamps> {
        self.egress.unavailable()
    }

    /// For [`SendMethod::Xdp`](crate::SendMethod::Xdp): `zero-copy` if the driver sends from the
    /// socket's memory, otherwise `copy`.
    #[must_use]
    pub fn mode(&self) -> Option<&'static str> {
        self.egress.mode()
    }

    /// Sends everything, or until `stop` is set; reacts to `stop` within about 10 ms.
    ///
    /// The first frame is due at once. Intervals between frames are those of the file, divided by the
    /// speed. The interval between two loops is the mean interval of the file. A second thread reads
    /// ahead. The calling thread sends, and calls `on_sent` as [`Sender::run`](crate::Sender::run)
    /// does. Sequence numbers count the file's packets from 0 through all loops.
    pub fn run(
        mut self,
        clock: &mut impl PacingClock,
        stop: &AtomicBool,
        mut on_sent: impl FnMut(&SentPacket),
    ) -> ReplayReport {
        let ReplayOptions { path, speed, loops } = self.recording.clone();
        let mut report = ReplayReport::default();
        let mut timing = ReplayTiming::new(speed);
        let mut frame_reader = FrameReader::start(path, loops).peekable();
        // Waits for the disk before the start, so that the first packet is not late.
        frame_reader.peek();
        let mut run = PacedRun::start(clock, stop);
        for (sequence, frame) in (0..).zip(frame_reader) {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    report.read_error = Some(error);
                    break;
                }
            };
            let due = timing.due_time(frame.round, frame.time);
            report.time_went_back += u64::from(due.went_back);
            if !report.accepts(&frame, &self.link) {
                continue;
            }
            let egresses = std::slice::from_mut(&mut self.egress);
            let Some(deadline) = run.wait(due.offset, egresses, &mut on_sent) else { break };
            let sent = SentPacket::now(run.clock, 0, sequence, deadline);
            self.egress.send(&frame.bytes, frame.bytes.len() as u64, sent);
        }
        self.egress.finish(&mut on_sent);
        let Egress { sent, bytes, failed, first_error, .. } = self.egress;
        let (overslept, stopped) = (run.overslept, run.stopped);
        ReplayReport { sent, bytes, failed, first_error, overslept, stopped, ..report }
    }
}

impl ReplayReport {
    /// Whether a frame can be sent over `link`. Counts frames that cannot, and truncated ones.
    fn accepts(&mut self, frame: &RecordedFrame, link: &Link) -> bool {
        let fits = link.takes(&frame.bytes);
        self.not_ethernet += u64::from(!frame.is_ethernet);
        self.too_long += u64::from(frame.is_ethernet && !fits);
        let admitted = frame.is_ethernet && fits;
        self.cut_short += u64::from(admitted && frame.is_truncated);
        admitted
    }
}
