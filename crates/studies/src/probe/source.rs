//! Capture method and stamp source under test.

use std::fmt::{self, Display};

use wirestamp_capture::{Method, StampSource};

/// A way to receive packets, with the clock that stamps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) method: Method,
    pub(crate) stamp: StampSource,
}

impl Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.method, self.stamp)
    }
}
