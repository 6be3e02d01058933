//! Options that every study takes.

use std::path::PathBuf;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to measure only a small part, in less than two minutes on two cores.
    pub quick: bool,
    /// Seed of the random order of the runs.
    pub seed: u64,
    /// Folder of raw results and of the report, if any. Created if it does not exist. Results of an earlier run in it
    /// are used and not measured again.
    pub folder: Option<PathBuf>,
}
