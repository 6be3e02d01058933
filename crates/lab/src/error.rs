//! What can go wrong while a bed is built or asked.

use std::io;

use thiserror::Error;

/// A bed could not be built, named, removed or read.
#[derive(Debug, Error)]
pub enum LabError {
    /// A system call failed.
    #[error("{doing}: {source}{}", hint(source))]
    System {
        /// What was being done, to what.
        doing: String,
        /// The kernel's answer.
        source: io::Error,
    },
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

impl LabError {
    /// Wraps a failed system call with what it was for.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        |source| Self::System { doing, source }
    }
}

/// The next step where the kernel's answer alone does not say it.
fn hint(source: &io::Error) -> &'static str {
    if source.kind() == io::ErrorKind::PermissionDenied {
        " (run it with sudo, or grant it the capabilities)"
    } else {
        ""
    }
}
