//! What the archive counts.

/// Counts since the collector started. Rows that are written again, because more results of an hour arrived, count again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveCounts {
    /// Rows of results, written to files.
    pub results: u64,
    /// Rows of observations, written to files.
    pub observations: u64,
    /// Failed attempts to write, check or delete files.
    pub failures: u64,
}
