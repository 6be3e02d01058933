//! Selection of results: resolution and time.

use wirestamp_clock::{Span, Time, Utc};

/// Time resolution of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// Windows of a second; intervals of the task.
    #[default]
    AsMeasured,
    /// Minutes: windows after the end of the minute, counts as they arrive. Counts of longer intervals belong to the
    /// minute in which the interval begins.
    Minute,
    /// Hours: windows after the end of the hour, counts as they arrive.
    Hour,
}

impl Step {
    /// In seconds; 0 as measured.
    pub(super) fn seconds(self) -> i64 {
        match self {
            Self::AsMeasured => 0,
            Self::Minute => 60,
            Self::Hour => 3600,
        }
    }

    /// Zero as measured.
    pub(crate) fn length(self) -> Span {
        Span::from_secs(self.seconds())
    }
}

/// Selection of results.
#[derive(Clone, Copy, Debug)]
pub struct ResultRange {
    /// Resolution.
    pub step: Step,
    /// Min begin, in nanoseconds since 1970 (UTC).
    pub from: i64,
    /// Begin limit, exclusive.
    pub until: i64,
    /// Max number of results.
    pub most: u32,
}

/// An hour of a task to archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hour {
    /// Begin.
    pub begin: Time<Utc>,
    /// Settled time of the task when the hour was read.
    pub(super) settled_until: Time<Utc>,
}

impl Hour {
    /// End.
    #[must_use]
    pub fn end(&self) -> Time<Utc> {
        self.begin + Step::Hour.length()
    }
}
