//! What can go wrong in a capture, in words that say what to do next.

use std::io;
use std::path::PathBuf;

use crate::capabilities::{Obstacle, how_to_get};
use crate::method::{Method, StampSource};

/// Why a capture could not be opened, went wrong, or could not be read back.
///
/// A message has its cause in it, for which reason [`std::error::Error::source`] is `None`: a
/// report that prints the chain would say it twice.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The pair of method and stamp is not one of [`crate::PAIRS`].
    #[error("method {method} has no {stamp} stamps; it has {alternatives}")]
    NoSuchPair {
        /// The method that was asked for.
        method: String,
        /// The stamp that was asked for.
        stamp: String,
        /// What can be had instead, as words.
        alternatives: String,
    },
    /// The interface, the kernel or this process cannot do the pair, but others.
    #[error(
        "{method} with {stamp} stamps cannot be had on {interface}: {reason}; there are \
         {alternatives}"
    )]
    Impossible {
        /// The interface.
        interface: String,
        /// The method that was asked for.
        method: Method,
        /// The stamp that was asked for.
        stamp: StampSource,
        /// Why not.
        reason: Obstacle,
        /// The pairs that can be had there, as words.
        alternatives: String,
    },
    /// The clock that the network card stamps with is not the one that is followed.
    #[error(
        "{interface}'s network card stamps with /dev/ptp{stamps}, and {}: start the clock service \
         with that clock",
        is_followed(*.followed)
    )]
    OtherCardClock {
        /// The interface.
        interface: String,
        /// The number of its network card's clock.
        stamps: u32,
        /// The number of the one that is followed.
        followed: Option<u32>,
    },
    /// There is no such method or timestamp source.
    #[error("there is no {what} {name}; choose among {known}")]
    NoSuchName {
        /// What was asked for by name.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are, as words.
        known: String,
    },
    /// A thread was to run on a core that this process may not use.
    #[error("this process may not use core {core}; choose among {allowed:?}")]
    NoSuchCore {
        /// The core that was asked for.
        core: usize,
        /// The cores that it may use.
        allowed: Vec<usize>,
    },
    /// The method cannot have so many acquiring threads.
    #[error(
        "method {method} cannot have {lanes} acquiring threads, but one; ring, recvmsg, recvmmsg and \
         libpcap can share the packets among several"
    )]
    Lanes {
        /// Threads that were asked for.
        lanes: usize,
        /// The method.
        method: &'static str,
    },
    /// No interface of that name in this network namespace.
    #[error("there is no interface {0}; `ip link` lists those of this network namespace")]
    NoSuchInterface(String),
    /// The kernel refused for want of privileges.
    #[error("cannot {what} on {interface} without privileges: {}", how_to_get(capabilities))]
    Permission {
        /// What was tried.
        what: &'static str,
        /// The interface it was tried on.
        interface: String,
        /// The capabilities it takes, as setcap writes them.
        capabilities: &'static str,
    },
    /// The kernel refused for another reason.
    #[error("cannot {what} on {interface}: {cause}{}", next_step(cause))]
    System {
        /// What was tried.
        what: &'static str,
        /// The interface it was tried on.
        interface: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// The interface is down, or no longer there.
    #[error("{interface} {what}")]
    Unusable {
        /// The interface.
        interface: String,
        /// What became of it, and what to do.
        what: &'static str,
    },
    /// Another capture has tuned the machine for the same interface.
    #[error(
        "another capture has tuned the machine for {0} and puts everything back when it ends: \
         leave --tune away, or wait for that"
    )]
    TunedByAnother(String),
    /// The interface carries no Ethernet frames.
    #[error("{interface} is no Ethernet interface (hardware type {kind}); only those are captured")]
    NotEthernet {
        /// The interface.
        interface: String,
        /// Its type, `ARPHRD_*` of linux/if_arp.h.
        kind: u16,
    },
    /// An XDP or tc program was not loaded or attached.
    #[error("cannot run {what} on {interface}: {reason}; --method ring needs none")]
    Program {
        /// Which of the two it is.
        what: &'static str,
        /// The interface it was meant for.
        interface: String,
        /// What libbpf or the kernel said.
        reason: String,
    },
    /// The programs that follow packets through their host were not loaded.
    #[error(
        "cannot follow packets of {interface}: {reason}; it takes root and a kernel that tells its \
         types (CONFIG_DEBUG_INFO_BTF)"
    )]
    Layers {
        /// The interface.
        interface: String,
        /// What libbpf or the kernel said.
        reason: String,
    },
    /// XDP programs were not loaded, or not run on frames in memory.
    #[error("cannot run XDP programs on frames in memory: {reason}; it takes root")]
    TestRun {
        /// What libbpf or the kernel said.
        reason: String,
    },
    /// The filter does not compile.
    #[error("filter '{expression}': {reason}; `man pcap-filter` describes the syntax")]
    Filter {
        /// The filter as it was given.
        expression: String,
        /// What libpcap said about it.
        reason: String,
    },
    /// The kernel cannot apply the filter. [`crate::Capture::open`] goes on without it, applies the
    /// filter itself and says so in the capture's notes.
    #[error("the kernel does not take the filter: {reason}")]
    FilterNotInKernel {
        /// What stands in the way.
        reason: String,
    },
    /// A file could not be created or written.
    #[error("cannot write {path}: {cause}{}", next_step_of_writing(cause))]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        cause: io::Error,
    },
    /// There was no more room for packets.
    #[error(
        "cannot write {path} any further: {cause}; the {packets} packets before that are \
         readable: free some space and run again"
    )]
    NoRoomLeft {
        /// The file.
        path: PathBuf,
        /// Packets that were written, in this file and in those before it.
        packets: u64,
        /// The operating system's reason.
        cause: io::Error,
    },
    /// A capture file could not be opened or read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        cause: io::Error,
    },
    /// The file is not a capture.
    #[error(
        "{path} is not a capture file ({reason}); pcapng and classic pcap are understood, \
         compressed with zstd too"
    )]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
    /// A file of anchors cannot be used.
    #[error("cannot use {path} as anchors: {reason}")]
    Anchors {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
    /// A file of anchors could not be written to its end.
    #[error(
        "{path} ends after {written} anchors: {cause}; the capture itself is complete, but \
         `wirestamp restamp` will not improve its packets from then on"
    )]
    AnchorsCutShort {
        /// The file.
        path: PathBuf,
        /// Anchors that are in it.
        written: u64,
        /// The operating system's reason.
        cause: io::Error,
    },
    /// The stamps of a capture cannot be converted again.
    #[error("cannot restamp {path}: {reason}")]
    Restamp {
        /// The file.
        path: PathBuf,
        /// Why not, and what to do about it.
        reason: String,
    },
    /// The file ends, or stops making sense, in mid-way.
    #[error("{path} is damaged after packet {packets} ({reason})")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Packets that were read before the damage.
        packets: u64,
        /// What was wrong with it.
        reason: String,
    },
}

impl Error {
    /// Whether the request itself was wrong: it has to be put differently, and that will do.
    /// Nothing has to be done to the interface, the privileges or the files.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::NoSuchPair { .. }
                | Self::Impossible { .. }
                | Self::NoSuchName { .. }
                | Self::NoSuchCore { .. }
                | Self::Lanes { .. }
                | Self::Filter { .. }
        )
    }

    /// Whether the packets went to a pipe whose reader has gone, as `head` does when it has seen
    /// enough.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { cause, .. } if cause.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The error for a capture at `path` that cannot be written after so many packets were.
    pub(crate) fn writing(path: PathBuf, packets: u64, cause: io::Error) -> Self {
        if packets > 0 && is_full(&cause) {
            Self::NoRoomLeft { path, packets, cause }
        } else {
            Self::Write { path, cause }
        }
    }

    /// The error for a system call `what` that failed on `interface` with `cause`.
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

fn is_followed(number: Option<u32>) -> String {
    number.map_or("no such clock is followed".into(), |n| format!("/dev/ptp{n} is followed"))
}

/// What to do about a refused system call, where that is known.
fn next_step(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::ENODEV | libc::ENXIO) => {
            "; the interface is gone: `ip link` lists those that are there"
        }
        Some(libc::EMFILE | libc::ENFILE) => "; allow more open files with `ulimit -n`",
        Some(libc::EAFNOSUPPORT) => "; load the kernel's packet sockets with `modprobe af_packet`",
        _ if cause.kind() == io::ErrorKind::OutOfMemory => {
            "; ask for a smaller ring with --buffer-size"
        }
        _ => "",
    }
}

/// Whether there is no room for more.
fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn next_step_of_writing(cause: &io::Error) -> &'static str {
    match cause.kind() {
        _ if is_full(cause) => "; free some space and run again",
        io::ErrorKind::NotFound => "; the folder has to exist",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn a_cause_is_told_once_and_then_what_to_do() {
        let cause = io::Error::from_raw_os_error(libc::ENOMEM);
        let words = cause.to_string();
        let error = Error::system("set up the ring", "eth0", "cap_net_raw", cause);
        assert_eq!(
            error.to_string(),
            format!(
                "cannot set up the ring on eth0: {words}; ask for a smaller ring with --buffer-size"
            )
        );
        assert!(error.source().is_none());
    }

    #[test]
    fn packets_are_said_to_be_readable_where_some_were_written() {
        let said = |packets| {
            let cause = io::ErrorKind::StorageFull.into();
            Error::writing("x".into(), packets, cause).to_string()
        };
        assert!(said(0).contains("free some space") && !said(0).contains("readable"));
        assert!(
            said(7).contains("free some space")
                && said(7).contains("the 7 packets before that are readable")
        );
    }

    #[test]
    fn a_missing_privilege_is_told_with_the_program_that_runs() {
        let denied = io::Error::from_raw_os_error(libc::EPERM);
        let said = Error::system("see all packets", "lo", "cap_net_raw", denied).to_string();
        let program = std::env::current_exe().unwrap();
        assert!(said.starts_with("cannot see all packets on lo without privileges: "), "{said}");
        assert!(
            said.ends_with(&format!("`setcap cap_net_raw+ep {}`", program.display())),
            "{said}"
        );
    }

    #[test]
    fn only_a_reader_that_has_gone_is_a_broken_pipe() {
        let written = |kind: io::ErrorKind| Error::Write { path: "-".into(), cause: kind.into() };
        assert!(written(io::ErrorKind::BrokenPipe).is_broken_pipe());
        assert!(!written(io::ErrorKind::StorageFull).is_broken_pipe());
    }
}
