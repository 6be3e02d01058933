//! The bed: a sender and a receiver, connected by a veth pair that carries nothing else.
//!
//! They are the source and the first router of the lab's path; the rest of the path is not used. Frames
//! go to an unused hardware address, so that the receiver's stack drops them right after the taps.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::thread;

use anyhow::{Context, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};
use wirestamp_lab::{Impairments, Netns, PathLab, SOURCE_INTERFACE, SOURCE_V4, TAP_A};
use wirestamp_traffic::MacAddress;

/// A locally administered address that no interface of the bed has.
pub const UNUSED_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x99]);
/// The receiver's own address: the router's at tap A in the lab.
pub const RECEIVER: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
/// Destination address of the frames: another host of the link.
pub const DESTINATION: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 77, 1, 99), 5004);

/// The sending core. A veth's softIRQ runs on the sender's core, so it also receives here.
pub const SENDING_CORE: usize = 0;
/// The core that is left to the capture.
pub const CAPTURE_CORE: usize = 1;

/// Two namespaces and the link between them.
pub struct Bed {
    lab: PathLab,
}

impl Bed {
    /// Builds it.
    ///
    /// # Errors
    /// When privileges, a second core, iproute2 or ethtool are missing.
    pub fn build() -> anyhow::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        ensure!(cores > CAPTURE_CORE, "a sender and a capture need two cores; there is one");
        // The bottleneck behind the receiver is not used; any valid one is suitable.
        let bed = Self { lab: PathLab::new(&WIDE)? };
        take_live_frames(bed.receiver())?;
        Ok(bed)
    }

    /// Namespace of the sender, which sends over [`SENDING_INTERFACE`].
    #[must_use]
    pub fn sender(&self) -> &Netns {
        self.lab.source()
    }

    /// Namespace of the receiver, which receives at [`INTERFACE`].
    #[must_use]
    pub fn receiver(&self) -> &Netns {
        self.lab.router()
    }

    /// Runs a command line that configures `netns`.
    ///
    /// # Errors
    /// When it cannot be run or fails.
    pub fn settle(&self, netns: &Netns, line: &str) -> anyhow::Result<()> {
        settle(netns, line)
    }

    /// Runs `work` on a thread of the sender, on the sending core.
    ///
    /// # Errors
    /// Those of `work`; there is no such thread or core.
    pub fn send<T: Send>(
        &self,
        work: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        send(self.sender(), work)
    }
}

/// A bottleneck without effect, for paths in which it is not used.
pub(crate) const WIDE: Impairments = Impairments::bottleneck(1_000_000_000, 100_000);

/// Makes tap A accept live frames: a veth accepts them if its peer polls (NAPI), which requires GRO.
fn take_live_frames(receiver: &Netns) -> anyhow::Result<()> {
    settle(receiver, &format!("ethtool -K {TAP_A} gro on"))
}

/// Runs `work` on a thread of a namespace, on the sending core.
pub(super) fn send<T: Send>(
    source: &Netns,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    source.run(|| {
        stay_on(SENDING_CORE)?;
        work()
    })?
}

/// Runs a command line that configures a namespace.
///
/// # Errors
/// When it cannot be run or fails.
pub(crate) fn settle(netns: &Netns, line: &str) -> anyhow::Result<()> {
    let mut words = line.split_whitespace();
    let mut command = netns.command(words.next().context("an empty command line")?);
    run(command.args(words)).with_context(|| format!("`{line}` failed"))
}

/// Where IPv4 frames come from.
#[must_use]
pub fn source() -> SocketAddr {
    (SOURCE_V4, 7000).into()
}

/// The receiver's interface.
pub const INTERFACE: &str = TAP_A;
/// The sender's interface.
pub const SENDING_INTERFACE: &str = SOURCE_INTERFACE;

/// Keeps the calling thread on one core.
///
/// # Errors
/// When this process may not use it.
pub fn stay_on(core: usize) -> anyhow::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).with_context(|| format!("cannot run on core {core}"))
}

pub(super) fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
