//! Files of the archive that are not complete, for example after a failure of the disk or a copy that was cut off.

use std::fs;
use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tracing::warn;
use wirestamp_clock::{Time, Utc};
use wirestamp_results::is_complete_parquet;

use super::observations::observation_files;
use super::{Archive, ArchiveError, Archived, DAMAGED, about, files, write_table};
use crate::task::Tasks;

impl Archive {
    /// Writes files again that are not complete, as long as their results are stored. Others are renamed to `.damaged`: one
    /// of them would end every query over the whole archive.
    pub(super) fn replace_damaged(&self, tasks: &Tasks) {
        let all = files(&self.folder).and_then(|mut all| {
            all.extend(observation_files(&self.folder)?);
            Ok(all)
        });
        let all = all.unwrap_or_else(|error| {
            self.failed(format_args!("cannot check the archive: {error}"));
            Vec::new()
        });
        for file in all {
            if let Err(error) = self.replace_if_damaged(&file, tasks) {
                self.failed(format_args!("cannot check a file of the archive: {error}"));
            }
        }
    }

    fn replace_if_damaged(&self, file: &Archived, tasks: &Tasks) -> Result<(), ArchiveError> {
        let path = &file.path;
        if file.is_damaged || is_complete_parquet(path).map_err(about(path))? {
            return Ok(());
        }
        let task = file.number().and_then(|number| Some((number, &tasks.get(&number)?.task)));
        // Of older hours, a part of the results may be deleted.
        let begin = file.begin().filter(|begin| *begin >= self.oldest());
        if let Some(((number, task), begin)) = task.zip(begin) {
            let table = self.table(number, task, begin)?;
            let rows = table.rows();
            if rows > 0 {
                // Beyond their limit, the oldest flows are deleted.
                if self.collector.results().has_most_flows(number)? {
                    put_aside(path)?;
                }
                warn!("{} was not complete: {rows} results written again", path.display());
                return write_table(&table, path);
            }
        }
        put_aside(path)
    }
}

/// Renames a file to `.damaged`.
fn put_aside(path: &Path) -> Result<(), ArchiveError> {
    let aside = path.with_extension(DAMAGED);
    warn!(
        "{} is not complete, and some of its results are deleted: renamed to {}",
        path.display(),
        aside.display()
    );
    fs::rename(path, &aside).map_err(about(path))
}

impl Archived {
    /// Number of its task.
    fn number(&self) -> Option<u64> {
        self.path.file_stem()?.to_str()?.parse().ok()
    }

    /// Begin of its hour.
    fn begin(&self) -> Option<Time<Utc>> {
        let begin: DateTime = format!("{}:00", self.hour).parse().ok()?;
        let begin = begin.to_zoned(TimeZone::UTC).ok()?.timestamp();
        Some(Time::from_nanos(i64::try_from(begin.as_nanosecond()).ok()?))
    }
}
