//! The load: live frames to an unused hardware address.

use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use wirestamp_clock::ClockService;
use wirestamp_lab::Netns;
use wirestamp_sys::scheduling::set_realtime;
use wirestamp_traffic::ServiceClock;
use wirestamp_traffic::live::{Direction, Limit, LiveFrames, LiveReport, Pace, Template, outgoing};

use super::bed::{Bed, DESTINATION, INTERFACE, SENDING_INTERFACE, UNUSED_MAC, send, source};

/// Bytes of the check sequence (IEEE 802.3), which frame sizes in papers include, but frames on a veth do
/// not have.
pub const CHECK_SEQUENCE: u16 = 4;

/// Frames that arrive back to back. The kernel allocates a pool of pages for each burst, and keeps it until another
/// core has freed the last page: thousands of bursts a second slow the sender down.
const BURST: u32 = 1024;

/// Source and destination addresses of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The source: address and UDP port.
    pub source: SocketAddr,
    /// The destination.
    pub destination: SocketAddr,
}

impl Ends {
    /// The bed's own addresses.
    #[must_use]
    pub fn of_the_bed() -> Self {
        Self { source: source(), destination: DESTINATION.into() }
    }

    /// Two IPv6 addresses, each with a port.
    #[must_use]
    pub fn v6(source: (Ipv6Addr, u16), destination: (Ipv6Addr, u16)) -> Self {
        Self { source: source.into(), destination: destination.into() }
    }
}

/// Equal frames at a rate, up to a limit.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of a frame, check sequence included.
    pub frame_bytes: u16,
    /// How fast.
    pub pace: Pace,
    /// How many, or for how long.
    pub limit: Limit,
    /// Source and destination.
    pub ends: Ends,
}

impl Load {
    /// Sends all of it, or until `stop` is set.
    ///
    /// # Errors
    /// When frames of that size cannot be made, or the link does not take them.
    pub fn send(
        &self,
        bed: &Bed,
        clock: &ClockService,
        stop: &AtomicBool,
    ) -> anyhow::Result<LiveReport> {
        self.pass(bed.sender(), (SENDING_INTERFACE, Direction::Transmit), || Ok(()), clock, stop)
    }

    /// The same with real-time priority: work of the kernel for other processes (workqueues) does not take the core of the
    /// sender for some milliseconds.
    ///
    /// # Errors
    /// As of [`Load::send`], or this process may not have real-time priority.
    pub(crate) fn send_in_realtime(
        &self,
        bed: &Bed,
        clock: &ClockService,
        stop: &AtomicBool,
    ) -> anyhow::Result<LiveReport> {
        let realtime = || set_realtime().context("cannot send with real-time priority");
        self.pass(bed.sender(), (SENDING_INTERFACE, Direction::Transmit), realtime, clock, stop)
    }

    /// Injects the frames at tap A of a namespace as if they had arrived over its link, received by `core` or by the
    /// sending core. That takes less CPU time of the sending core, so that the max rate is higher.
    ///
    /// # Errors
    /// As of [`Load::send`].
    pub(crate) fn arrive_in(
        &self,
        receiver: &Netns,
        core: Option<usize>,
        clock: &ClockService,
        stop: &AtomicBool,
    ) -> anyhow::Result<LiveReport> {
        let core = core.map(u32::try_from).transpose()?;
        let direction = core.map_or(Direction::Receive, Direction::ReceiveOn);
        let pace = self.pace.with_burst(self.pace.burst().max(BURST))?;
        Self { pace, ..*self }.pass(receiver, (INTERFACE, direction), || Ok(()), clock, stop)
    }

    fn pass(
        &self,
        namespace: &Netns,
        (interface, direction): (&str, Direction),
        before: impl FnOnce() -> anyhow::Result<()> + Send,
        clock: &ClockService,
        stop: &AtomicBool,
    ) -> anyhow::Result<LiveReport> {
        send(namespace, || {
            let template = self.template(interface)?;
            let mut frames = LiveFrames::open(interface, template, direction)?;
            before()?;
            Ok(frames.run(&ServiceClock::new(clock), self.pace, self.limit, stop)?)
        })
    }

    fn template(&self, interface: &str) -> anyhow::Result<Template> {
        let Ends { source: from, destination: to } = self.ends;
        let frame_bytes = self.frame_bytes.checked_sub(CHECK_SEQUENCE);
        let frame_bytes = frame_bytes.context("a frame is longer than its check sequence")?;
        let ends = outgoing(interface, to, Some(from.ip()), from.port(), Some(UNUSED_MAC))?;
        let [source, destination] = ends;
        Ok(Template { source, destination, frame_bytes, flows: 1, stream: 1 })
    }
}
