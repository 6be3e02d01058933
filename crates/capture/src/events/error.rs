//! Errors of recording, with the next step for the user.

use std::io;

/// Error of starting or running a recorder. A message includes its cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system tracefs is not available.
    #[error("cannot open tracefs: {cause}; run as root, on a kernel with CONFIG_TRACING")]
    Tracefs {
        /// The kernel's error.
        cause: io::Error,
    },
    /// A step failed.
    #[error("cannot {what}: {cause}{}", next_step(cause))]
    System {
        /// The failed action.
        what: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// A file of tracefs has unknown contents.
    #[error("cannot record events: {0} of tracefs has an unknown form; report it with `uname -r`")]
    Layout(String),
    /// The kernel does not have this event.
    #[error("cannot record {event}: no such event; {choice}")]
    NoSuchEvent {
        /// The requested event.
        event: String,
        /// How to choose another one.
        choice: String,
    },
    /// No events were requested.
    #[error("cannot record events: none is requested, or this kernel has none of them")]
    NoEvents,
    /// The clock does not exist.
    #[error("cannot stamp events by {clock}: no such trace clock; choose one of {known}")]
    NoSuchClock {
        /// The requested clock.
        clock: String,
        /// The available clocks, as text.
        known: String,
    },
    /// The consumer of the events failed.
    #[error("{0}")]
    Sink(String),
}

impl Error {
    /// Whether the request is invalid.
    #[must_use]
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::NoSuchEvent { .. } | Self::NoSuchClock { .. } | Self::NoEvents)
    }

    /// The error of a failed action.
    pub(super) fn of(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |cause| Self::System { what, cause }
    }
}

fn next_step(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "; run as root",
        io::ErrorKind::OutOfMemory => "; use a smaller ring",
        _ => "",
    }
}
