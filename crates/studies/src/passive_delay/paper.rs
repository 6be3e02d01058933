//! Results of the report.

use serde::Serialize;
use strum::Display;

/// Source of the numbers.
pub(crate) const PAPER: &str =
    "6QM, \"D4.2: Final System Test Report\" (IST-2001-37611, 2007), sections 3.3 to 3.6";

/// A section of the report, and what is varied there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Question {
    /// 3.3: nothing, the same test five times.
    Precision,
    /// 3.4 and 3.5: the frame size, the load and the number of measurement tasks.
    Frames,
    /// 3.6: the duration.
    Duration,
}

impl Question {
    /// All of them, in the order of the report.
    pub(super) const ALL: [Self; 3] = [Self::Precision, Self::Frames, Self::Duration];
}
