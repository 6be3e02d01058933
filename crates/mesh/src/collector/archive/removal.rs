//! Removal of tasks with all their results.

use std::fs;

use tracing::info;

use super::{Archive, ArchiveError, DAMAGED, about, entries};

/// Extensions of files: complete ones, those being written, and damaged ones.
const EXTENSIONS: [&str; 3] = ["parquet", "new", DAMAGED];

impl Archive {
    /// Deletes the results of removed tasks that are still stored.
    pub(super) fn remove_tasks(&self) {
        let removed = self.collector.removed().borrow().clone();
        for task in removed.iter() {
            match self.remove_task(*task) {
                Ok(true) => info!("deleted the results of task {task}, which was removed"),
                Ok(false) => {}
                Err(error) => {
                    self.failed(format_args!("cannot delete the results of task {task}: {error}"));
                }
            }
        }
    }

    /// Deletes the results of a removed task; false if none were stored.
    ///
    /// The database at last: if a file cannot be deleted, the removal is repeated.
    fn remove_task(&self, task: u64) -> Result<bool, ArchiveError> {
        if !self.collector.is_stored(task)? {
            return Ok(false);
        }
        self.remove_files(task)?;
        self.remove_observations(task)?;
        self.collector.remove(task)?;
        Ok(true)
    }

    /// Deletes the files of a task, also incomplete ones, and their folders, unless these contain something else.
    fn remove_files(&self, task: u64) -> Result<(), ArchiveError> {
        let names = EXTENSIONS.map(|extension| format!("{task}.{extension}"));
        for of_name in entries(&self.folder)? {
            for of_hour in entries(&of_name)? {
                let its = names.each_ref().map(|name| of_hour.join(name));
                for path in its.iter().filter(|path| path.is_file()) {
                    fs::remove_file(path).map_err(about(path))?;
                    drop(fs::remove_dir(&of_hour));
                    drop(fs::remove_dir(&of_name));
                }
            }
        }
        Ok(())
    }
}
