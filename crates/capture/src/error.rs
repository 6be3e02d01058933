//! What can go wrong in a capture, in words that say what to do next.

use std::io;
use std::path::PathBuf;

/// Why a capture could not be opened, went wrong, or could not be read back.
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
    /// No interface of that name in this network namespace.
    #[error("there is no interface {0}; `ip link` lists those of this network namespace")]
    NoSuchInterface(String),
    /// The kernel refused for want of privileges.
    #[error(
        "{what} on {interface} needs privileges: run it with sudo, or grant it once with \
         `setcap {capabilities}+ep $(command -v wirestamp)`"
    )]
    Permission {
        /// What was tried.
        what: &'static str,
        /// The interface it was tried on.
        interface: String,
        /// The capabilities it takes, as setcap writes them.
        capabilities: &'static str,
    },
    /// The kernel refused for another reason.
    #[error("cannot {what} on {interface}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The interface it was tried on.
        interface: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The XDP program was not loaded or attached.
    #[error("cannot run the XDP program on {interface}: {reason}; --method ring needs none")]
    Xdp {
        /// The interface it was meant for.
        interface: String,
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
    /// A file could not be created or written.
    #[error("cannot write {path}: {source}{}", advice(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A capture file could not be opened or read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The file is not a capture.
    #[error("{path} is not a capture file ({reason}); pcapng and classic pcap are understood")]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
    /// The file ends, or stops making sense, in mid-way.
    #[error(
        "{path} is damaged after packet {packets} ({reason}); add --partial to measure the \
         packets before that point"
    )]
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
    /// The error for a system call `what` that failed on `interface` with `source`.
    pub(crate) fn system(
        what: &'static str,
        interface: &str,
        capabilities: &'static str,
        source: io::Error,
    ) -> Self {
        let interface = interface.to_owned();
        if source.kind() == io::ErrorKind::PermissionDenied {
            Self::Permission { what, interface, capabilities }
        } else {
            Self::System { what, interface, source }
        }
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; what was captured before is in the file and readable: free some space and run again"
        }
        io::ErrorKind::NotFound => "; the folder has to exist",
        _ => "",
    }
}
