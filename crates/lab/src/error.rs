//! Errors of test beds.

use std::io;

use thiserror::Error;
use wirestamp_sys::netns::NetnsError;

use crate::privilege;

/// A test bed cannot be built, named, removed or read.
///
/// The message includes the kernel's error. So it is not the `source`: a report that prints the chain
/// would repeat it.
#[derive(Debug, Error)]
pub enum LabError {
    /// A system call failed.
    #[error("{doing}: {cause}{}", hint(cause))]
    System {
        /// The failed action: "cannot ...".
        doing: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// No namespace has this name.
    #[error("cannot open network namespace `{0}`: no such name; list names with `ip netns list`")]
    NoSuchNetns(String),
    /// A program of iproute2 is not installed.
    #[error("cannot run `{program}`: not found; install it with `apt-get install iproute2`")]
    MissingProgram {
        /// `ip` or `tc`.
        program: &'static str,
    },
    /// A program of iproute2 failed at a line of its batch.
    #[error("`{program} {line}` failed: {message}")]
    Command {
        /// `ip` or `tc`.
        program: &'static str,
        /// The failed line, or the program's arguments.
        line: String,
        /// The program's error message.
        message: String,
    },
    /// The bottleneck's rate is out of range.
    #[error("the bottleneck's rate of {0} bit/s is out of range; use 8000 to 100000000000 bit/s")]
    Rate(u64),
    /// The bottleneck's queue is shorter than one full frame.
    #[error("a queue of {0} bytes holds no full frame; use 1514 bytes or more")]
    Queue(u32),
    /// Not a valid name of a namespace.
    #[error("`{0}` is not a valid namespace name; use letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// Unexpected output of `tc`.
    #[error("cannot read the statistics of `tc` for {what}: {reason}")]
    Statistics {
        /// Object of the statistics.
        what: &'static str,
        /// The parser's error.
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
    /// Adds the failed action to the error of a system call.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        |cause| Self::System { doing, cause }
    }
}

/// The next step for missing privileges; empty for other errors.
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
    fn missing_privilege_names_the_capabilities() {
        let denied = io::Error::from_raw_os_error(libc::EPERM);
        let error = LabError::system("cannot make a network namespace")(denied);
        let line = error.to_string();
        assert!(error.source().is_none(), "the cause is in the message");
        assert!(line.contains("not permitted") && line.contains("cap_net_admin"), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}
