//! Errors of a capture, with the next step for the user.

mod message;

use std::io;
use std::path::PathBuf;

use self::message::{followed_clock, is_full, next_step, next_step_of_writing};
use crate::capabilities::{Obstacle, how_to_get};
use crate::method::{Method, StampSource};

/// Errors of opening, running and reading back a capture.
///
/// A message includes its cause, so [`std::error::Error::source`] is `None`: a report that prints the chain would
/// repeat it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The pair of method and stamp is not in [`crate::PAIRS`].
    #[error("method {method} has no {stamp} stamps; it has {alternatives}")]
    NoSuchPair {
        /// The requested method.
        method: String,
        /// The requested stamp.
        stamp: String,
        /// Supported stamps, as text.
        alternatives: String,
    },
    /// The interface, kernel or process does not support this pair, but supports others.
    #[error(
        "{method} with {stamp} stamps is not available on {interface}: {reason}; it supports \
         {alternatives}"
    )]
    Impossible {
        /// The interface.
        interface: String,
        /// The requested method.
        method: Method,
        /// The requested stamp.
        stamp: StampSource,
        /// The obstacle.
        reason: Obstacle,
        /// Pairs that the interface supports, as text.
        alternatives: String,
    },
    /// The network card's clock is not the one that the clock service follows.
    #[error(
        "{interface}'s network card stamps with /dev/ptp{stamps}, and {}: start the clock service \
         with that clock",
        followed_clock(*.followed)
    )]
    OtherCardClock {
        /// The interface.
        interface: String,
        /// Number of the network card's clock.
        stamps: u32,
        /// Number of the clock that is followed.
        followed: Option<u32>,
    },
    /// No method or timestamp source has this name.
    #[error("no {what} is called {name}; choose one of {known}")]
    NoSuchName {
        /// Kind of the named thing.
        what: &'static str,
        /// The name.
        name: String,
        /// The valid names, as text.
        known: String,
    },
    /// This process may not use the requested core.
    #[error(
        "cannot use core {core}: it is not in the CPU affinity of this process; choose one of {allowed:?}"
    )]
    NoSuchCore {
        /// The requested core.
        core: usize,
        /// The cores that the process may use.
        allowed: Vec<usize>,
    },
    /// The method does not support this number of acquiring threads.
    #[error(
        "method {method} cannot have {lanes} acquiring threads: it supports one; use ring, recvmsg, \
         recvmmsg or libpcap for several"
    )]
    Lanes {
        /// The requested number of threads.
        lanes: usize,
        /// The method.
        method: &'static str,
    },
    /// The method does not capture outgoing packets.
    #[error(
        "method {method} captures received packets only, and no outgoing ones; use -Q in, or method ring, \
         recvmsg, recvmmsg or libpcap"
    )]
    Outgoing {
        /// The method.
        method: &'static str,
    },
    /// No interface has this name in this network namespace.
    #[error("there is no interface {0}; `ip link` lists the interfaces of this network namespace")]
    NoSuchInterface(String),
    /// The process lacks privileges.
    #[error("cannot {what} on {interface} without privileges: {}", how_to_get(capabilities))]
    Permission {
        /// The failed action.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The required capabilities, in the syntax of setcap.
        capabilities: &'static str,
    },
    /// A system call failed for another reason.
    #[error("cannot {what} on {interface}: {cause}{}", next_step(cause))]
    System {
        /// The failed action.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The interface is down or gone.
    #[error("{interface} {what}")]
    Unusable {
        /// The interface.
        interface: String,
        /// The state of the interface, and the next step.
        what: &'static str,
    },
    /// Another capture has tuned the machine for the same interface.
    #[error(
        "cannot tune the machine for {0}: another capture has tuned it; wait for its end, or omit \
         --tune"
    )]
    TunedByAnother(String),
    /// The interface has neither Ethernet frames nor plain IP packets.
    #[error(
        "cannot capture on {interface}: it has neither Ethernet frames nor plain IP packets (hardware type {kind})"
    )]
    UnknownLink {
        /// The interface.
        interface: String,
        /// Its type, `ARPHRD_*` of linux/if_arp.h.
        kind: u16,
    },
    /// An XDP or tc program was not loaded or attached.
    #[error("cannot run {what} on {interface}: {reason}; --method ring needs no program")]
    Program {
        /// Kind of the program.
        what: &'static str,
        /// The interface.
        interface: String,
        /// The error of libbpf or the kernel.
        reason: String,
    },
    /// The BPF programs that follow packets through the host were not loaded.
    #[error(
        "cannot follow packets of {interface}: {reason}; run as root, on a kernel with type \
         information (CONFIG_DEBUG_INFO_BTF)"
    )]
    Layers {
        /// The interface.
        interface: String,
        /// The error of libbpf or the kernel.
        reason: String,
    },
    /// XDP programs were not loaded, or not run on frames in memory.
    #[error("cannot run XDP programs on frames in memory: {reason}; run as root")]
    TestRun {
        /// The error of libbpf or the kernel.
        reason: String,
    },
    /// The filter does not compile.
    #[error(
        "cannot compile filter '{expression}': {reason}; `man pcap-filter` describes the syntax"
    )]
    Filter {
        /// The filter expression.
        expression: String,
        /// The error of libpcap.
        reason: String,
    },
    /// The kernel cannot apply the filter. [`crate::Capture::open`] then applies the filter in this process, and
    /// adds a note to the capture's facts.
    #[error("the kernel cannot apply the filter: {reason}")]
    FilterNotInKernel {
        /// The obstacle.
        reason: String,
    },
    /// A file could not be created or written.
    #[error("cannot write {path}: {cause}{}", next_step_of_writing(cause))]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// No room for more packets.
    #[error(
        "cannot continue {path}: {cause}; its {packets} packets are readable; free some space and \
         run again"
    )]
    NoRoomLeft {
        /// The file.
        path: PathBuf,
        /// Packets written, in this file and in those before it.
        packets: u64,
        /// The operating system's error.
        cause: io::Error,
    },
    /// A capture file could not be opened or read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The file is not a capture file.
    #[error(
        "{path} is not a capture file: {reason}; pcapng and classic pcap are supported, also \
         compressed with zstd, gzip or xz"
    )]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// The format error.
        reason: String,
    },
    /// The requested interface is not in the file.
    #[error("cannot read {path}: {reason}")]
    NoInterfaceInFile {
        /// The file with the interface.
        path: PathBuf,
        /// Its interfaces.
        reason: String,
    },
    /// The file cannot be one of several.
    #[error("cannot read {path} together with other files: {reason}")]
    NotSeveral {
        /// The file.
        path: PathBuf,
        /// The obstacle, and the next step.
        reason: &'static str,
    },
    /// A file of anchors cannot be used.
    #[error("cannot use {path} as anchors: {reason}")]
    Anchors {
        /// The file.
        path: PathBuf,
        /// The format error.
        reason: String,
    },
    /// A file of anchors could not be written completely.
    #[error(
        "cannot continue {path} after {written} anchors: {cause}; the capture is complete, but \
         `wirestamp restamp` cannot improve its later packets"
    )]
    AnchorsCutShort {
        /// The file.
        path: PathBuf,
        /// Anchors in the file.
        written: u64,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The stamps of a capture cannot be converted again.
    #[error("cannot restamp {path}: {reason}")]
    Restamp {
        /// The file.
        path: PathBuf,
        /// The obstacle, and the next step.
        reason: String,
    },
    /// The file has frames of a link type that is not supported.
    #[error(
        "{path} has the link type {link}, which wirestamp cannot read; docs/guide.md lists those it can"
    )]
    LinkType {
        /// The file.
        path: PathBuf,
        /// Name and number of the link type.
        link: String,
    },
    /// The file has packets without stamps.
    #[error(
        "{path} has packets without time stamps (Simple Packet Blocks), which wirestamp cannot use"
    )]
    WithoutTimes {
        /// The file.
        path: PathBuf,
    },
    /// The file is truncated or corrupt.
    #[error("{path} is damaged after packet {packets}: {reason}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Packets before the damage.
        packets: u64,
        /// The format error.
        reason: String,
    },
}

impl Error {
    /// Whether the request is invalid: the user has to change the request, not the interface, privileges or files.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoSuchPair { .. }
                | Self::Impossible { .. }
                | Self::NoSuchName { .. }
                | Self::NoSuchCore { .. }
                | Self::Lanes { .. }
                | Self::Outgoing { .. }
                | Self::Filter { .. }
        )
    }

    /// Whether the packets went to a pipe whose reader has closed it, as `head` does.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { cause, .. } if cause.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The error for a capture at `path` that fails after `packets` packets.
    pub(crate) fn writing(path: PathBuf, packets: u64, cause: io::Error) -> Self {
        if packets > 0 && is_full(&cause) {
            Self::NoRoomLeft { path, packets, cause }
        } else {
            Self::Write { path, cause }
        }
    }

    /// The error for a system call that failed on `interface` with `cause`.
    pub(crate) fn system(
        what: &'static str,
        interface: &str,
        capabilities: &'static str,
        cause: io::Error,
    ) -> Self {
        let interface = interface.to_owned();
        if cause.kind() == io::ErrorKind::PermissionDenied {
            Self::Permission { what, interface, capabilities }
        } else {
            Self::System { what, interface, cause }
        }
    }
}

#[cfg(test)]
mod tests;
