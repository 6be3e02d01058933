//! For how long a node keeps results.

use std::time::Duration;

use clap::Args;
use wirestamp_mesh::collector::Keep;

#[derive(Args)]
pub(super) struct Keeping {
    /// Keep results by the second for so many days; by the minute and the hour they stay
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    keep: u32,
    /// Keep so many gigabytes of files of hours (Parquet) at the most, the newest; all without it
    #[arg(long, value_name = "GB")]
    archive: Option<u64>,
}

impl Keeping {
    /// As collectors have it.
    pub(super) fn keep(&self) -> Keep {
        Keep {
            age: Duration::from_secs(u64::from(self.keep) * 86_400),
            bytes: self.archive.map(|gigabytes| gigabytes.saturating_mul(1_000_000_000)),
        }
    }
}
