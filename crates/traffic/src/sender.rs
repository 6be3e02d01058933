//! Sends streams of test packets, each packet when it is due.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::Serialize;
use thiserror::Error;
use wirestamp_clock::{Span, Time, Utc};

use crate::pace::{Pacer, Wait};
use crate::schedule::Schedule;
use crate::{PacingClock, PatternError, Payload, Plan, sys};

/// How long one packet may wait for room in the send buffer before it counts as failed.
const PATIENCE: Duration = Duration::from_millis(10);

/// From the call of [`Sender::run`] to the first deadline, so that its first wait is a wait.
const LEAD: Span = Span::from_millis(1);

/// A stream of packets to send.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Its number, in the payload of each packet.
    pub id: u16,
    /// When it sends, and how much.
    pub plan: Plan,
    /// Where to.
    pub destination: SocketAddr,
    /// The UDP port it comes from; 0 for any.
    pub source_port: u16,
    /// The interface to send over, whatever the routes say; `None` to follow the routes.
    pub interface: Option<String>,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
}

impl Stream {
    /// A stream from any port over the routes' interface, unmarked.
    #[must_use]
    pub const fn new(id: u16, plan: Plan, destination: SocketAddr) -> Self {
        Self { id, plan, destination, source_port: 0, interface: None, dscp: 0 }
    }
}

/// A stream could not be made ready to send.
///
/// The kernel's answer is in the message and therefore not the error's `source`: printed with its
/// chain of causes, the error would tell it twice.
#[derive(Debug, Error)]
pub enum SendError {
    /// The pattern does not fit the IP version.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// No code point.
    #[error("DSCP {0} is out of range: use 0 to 63")]
    Dscp(u8),
    /// The interface could not be had.
    #[error("cannot send over interface `{interface}`: {cause}; `ip link` lists what there is")]
    Interface {
        /// What was asked for.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The socket could not be had.
    #[error("cannot open a socket towards {destination}: {cause}")]
    Socket {
        /// Where the stream goes.
        destination: SocketAddr,
        /// The kernel's answer.
        cause: io::Error,
    },
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The number of its stream.
    pub stream: u16,
    /// Its number in the stream.
    pub sequence: u64,
    /// When it was due.
    pub intended: Time<Utc>,
    /// When it was handed to the kernel.
    pub actual: Time<Utc>,
    /// From the one to the other by the counter, never negative.
    pub pacing_error: Span,
}

/// What was sent of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// The stream's number.
    pub id: u16,
    /// Packets that the kernel took.
    pub sent: u64,
    /// Their frames' bytes, without check sequence and preamble.
    pub bytes: u64,
    /// Packets that the kernel refused. Their sequence numbers are not used again.
    pub failed: u64,
    /// What it said of the first.
    pub first_error: Option<String>,
}

/// What was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SendReport {
    /// Each stream, in the order in which they were given.
    pub streams: Vec<StreamReport>,
    /// Packets that were late because a sleep ended after their deadline.
    pub overslept: u64,
    /// Whether it ended by request, before everything was sent.
    pub stopped: bool,
}

impl SendReport {
    /// Packets that the kernel took, of all streams.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.streams.iter().map(|stream| stream.sent).sum()
    }
}

/// A stream that is ready to send.
#[derive(Debug)]
struct Outlet {
    stream: Stream,
    socket: UdpSocket,
    payload: Vec<u8>,
    report: StreamReport,
}

/// Sends streams of packets over UDP, paced by a counter.
///
/// Its sockets belong to the network namespace of the thread that opens it. They are not
/// connected: a connected socket reports a "port unreachable" of an earlier packet by refusing to
/// send the next one.
#[derive(Debug)]
pub struct Sender {
    outlets: Vec<Outlet>,
}

impl Sender {
    /// Opens a socket for each stream.
    ///
    /// # Errors
    /// [`SendError`] when a pattern, an interface or a destination cannot be used.
    pub fn open(streams: Vec<Stream>) -> Result<Self, SendError> {
        let outlets = streams.into_iter().map(Outlet::open).collect::<Result<_, _>>()?;
        Ok(Self { outlets })
    }

    /// Sends everything, or until `stop` is set, which is noticed within some 10 ms.
    ///
    /// Each packet is handed to the kernel when its deadline has come and never before; one that is
    /// late is sent at once. `on_sent` is called after each. It belongs on a thread of its own,
    /// which it leaves with the shortest timer slack.
    pub fn run(
        mut self,
        clock: &mut impl PacingClock,
        stop: &AtomicBool,
        mut on_sent: impl FnMut(&Sent),
    ) -> SendReport {
        sys::end_sleeps_on_time();
        let plans = self.outlets.iter().map(|outlet| outlet.stream.plan.clone()).collect();
        let mut pacer = Pacer::new();
        let (mut overslept, mut stopped) = (0, false);
        let start = clock.now().saturating_add(clock.ticks(LEAD));
        for due in Schedule::new(plans) {
            clock.refresh();
            let deadline = start.saturating_add(clock.ticks(due.offset));
            match pacer.wait(clock, deadline, stop) {
                Wait::Due => {}
                Wait::Overslept => overslept += 1,
                Wait::Stopped => {
                    stopped = true;
                    break;
                }
            }
            if let Some(sent) = self.outlets[due.stream].send(clock, due.sequence, deadline) {
                on_sent(&sent);
            }
        }
        let streams = self.outlets.into_iter().map(|outlet| outlet.report).collect();
        SendReport { streams, overslept, stopped }
    }
}

impl Outlet {
    fn open(stream: Stream) -> Result<Self, SendError> {
        if stream.dscp > 63 {
            return Err(SendError::Dscp(stream.dscp));
        }
        let Stream { destination, .. } = stream;
        let mut payload = vec![0; stream.plan.pattern.payload_bytes(destination.is_ipv6())?];
        Payload::fill(&mut payload);
        let socket =
            open_socket(&stream).map_err(|cause| SendError::Socket { destination, cause })?;
        if let Some(interface) = &stream.interface {
            sys::bind_to_interface(&socket, interface)
                .map_err(|cause| SendError::Interface { interface: interface.clone(), cause })?;
        }
        let report = StreamReport { id: stream.id, ..StreamReport::default() };
        Ok(Self { stream, socket, payload, report })
    }

    /// Sends one packet now; `None` when the kernel refused it.
    fn send(&mut self, clock: &impl PacingClock, sequence: u64, deadline: u64) -> Option<Sent> {
        let intended = clock.utc(deadline);
        // The last thing before the system call that the packet can still tell of.
        let now = clock.now();
        let actual = clock.utc(now);
        let stream = self.stream.id;
        Payload { stream, sequence, intended, actual }.write(&mut self.payload);
        match self.socket.send_to(&self.payload, self.stream.destination) {
            Ok(_) => {
                self.report.sent += 1;
                self.report.bytes += u64::from(self.stream.plan.pattern.frame_bytes());
                let pacing_error = clock.span(deadline, now);
                Some(Sent { stream, sequence, intended, actual, pacing_error })
            }
            Err(error) => {
                self.report.failed += 1;
                self.report.first_error.get_or_insert_with(|| error.to_string());
                None
            }
        }
    }
}

fn open_socket(stream: &Stream) -> io::Result<UdpSocket> {
    let ipv6 = stream.destination.is_ipv6();
    let socket = if ipv6 {
        UdpSocket::bind((Ipv6Addr::UNSPECIFIED, stream.source_port))?
    } else {
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, stream.source_port))?
    };
    sys::forbid_fragments(&socket, ipv6)?;
    sys::set_dscp(&socket, ipv6, stream.dscp)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}
