//! What can go wrong while a bed is built or asked.

use std::io;

use thiserror::Error;
use wirestamp_sys::netns::NetnsError;

use crate::privilege;

/// A bed could not be built, named, removed or read.
///
/// The kernel's answer is in the message and therefore not the error's `source`: printed with its
/// chain of causes, the error would tell it twice.
#[derive(Debug, Error)]
pub enum LabError {
    /// A system call failed.
    #[error("{doing}: {cause}{}", hint(cause))]
    System {
        /// What was being done, to what.
        doing: String,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// No namespace has this name.
    #[error("there is no network namespace `{0}`: `ip netns list` shows the names")]
    NoSuchNetns(String),
    /// A program of iproute2 is not installed.
    #[error("`{program}` was not found: install it with `apt-get install iproute2`")]
    MissingProgram {
        /// `ip` or `tc`.
        program: &'static str,
    },
    /// A program of iproute2 refused a line of its batch.
    #[error("`{program} {line}` failed: {message}")]
    Command {
        /// `ip` or `tc`.
        program: &'static str,
        /// The line it stopped at, or the arguments it was started with.
        line: String,
        /// What it said.
        message: String,
    },
    /// The bottleneck's rate is out of range.
    #[error("the bottleneck's rate of {0} bit/s is out of range: use 8000 to 100000000000 bit/s")]
    Rate(u64),
    /// The bottleneck's queue is shorter than one full frame.
    #[error("a queue of {0} bytes holds no full frame: use 1514 bytes or more")]
    Queue(u32),
    /// The name cannot be the name of a namespace.
    #[error("`{0}` cannot name a namespace: use letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// `tc` printed something else than its statistics.
    #[error("cannot read the statistics of `tc` for {what}: {reason}")]
    Statistics {
        /// Whose statistics.
        what: &'static str,
        /// What is wrong with them.
        reason: String,
    },
}

impl From<NetnsError> for LabError {
    fn from(error: NetnsError) -> Self {
        match error {
            NetnsError::System { doing, cause } => Self::System { doing, cause },
            NetnsError::NotFound(name) => Self::NoSuchNetns(name),
            NetnsError::InvalidName(name) => Self::Name(name),
        }
    }
}

impl LabError {
    /// Wraps a failed system call with what it was for.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        |cause| Self::System { doing, cause }
    }
}

/// The next step where the kernel's answer alone does not say it.
fn hint(cause: &io::Error) -> String {
    if cause.kind() == io::ErrorKind::PermissionDenied {
        format!("; {}", privilege::how_to_get())
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn a_refusal_is_told_once_and_says_which_capabilities_to_grant() {
        let denied = io::Error::from_raw_os_error(libc::EPERM);
        let error = LabError::system("cannot make a network namespace")(denied);
        let line = error.to_string();
        assert!(error.source().is_none(), "the cause is in the message");
        assert!(line.contains("not permitted") && line.contains("cap_net_admin"), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}
