//! Usage errors (exit status 2), and errors that are none, such as a closed pipe.

use std::io;

use anyhow::anyhow;
use wirestamp_capture::{Error, events};
use wirestamp_clock::SourceError;
use wirestamp_traffic::PatternError;
use wirestamp_traffic::live::LiveError;

/// A usage error that clap cannot detect.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A usage error with this message.
pub(crate) fn usage(what: impl Into<String>) -> anyhow::Error {
    Usage(what.into()).into()
}

/// Whether the arguments caused the error: exit status 2.
pub(crate) fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<Usage>()
        || error.is::<PatternError>()
        || matches!(error.downcast_ref(), Some(SourceError::Unknown { .. }))
        || error.downcast_ref::<LiveError>().is_some_and(LiveError::is_usage)
        || error.downcast_ref::<Error>().is_some_and(Error::is_usage)
        || error.downcast_ref::<events::Error>().is_some_and(events::Error::is_usage)
}

/// Suggests `--partial` when a file is damaged. With `--partial`, damage is not an error.
pub(crate) fn suggest_partial<T>(result: anyhow::Result<T>) -> anyhow::Result<T> {
    result.map_err(|error| match error.downcast_ref() {
        Some(Error::Damaged { .. }) => {
            anyhow!("{error:#}; add --partial to measure the packets before that point")
        }
        _ => error,
    })
}

/// Whether the error only means that the reader of our output has closed it.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        || error.downcast_ref::<Error>().is_some_and(Error::is_broken_pipe)
}
