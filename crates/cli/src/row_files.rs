//! Rows of `--csv` and `--parquet`, written in batches during a measurement.

use std::borrow::Cow;
use std::path::Path;

use wirestamp_results::{Error, Field, Table, TableFile, TableFormat};

/// Rows that are written together.
const BATCH: usize = 32_768;

/// The files of `--csv` and `--parquet`, and the rows that are not written yet.
pub(crate) struct RowFiles<R: 'static> {
    columns: Cow<'static, [Field<R>]>,
    files: Vec<TableFile>,
    rows: Vec<R>,
    failed: Option<Error>,
}

impl<R: 'static> RowFiles<R> {
    /// Creates the requested files.
    pub(crate) fn create(
        columns: impl Into<Cow<'static, [Field<R>]>>,
        csv: Option<&Path>,
        parquet: Option<&Path>,
    ) -> Result<Self, Error> {
        let columns = columns.into();
        let create = |(path, format): (&Path, _)| TableFile::create_as(path, format, &columns);
        let csv = csv.map(|path| (path, TableFormat::Csv));
        let parquet = parquet.map(|path| (path, TableFormat::Parquet));
        let files = csv.into_iter().chain(parquet).map(create).collect::<Result<_, _>>()?;
        Ok(Self { columns, files, rows: Vec::new(), failed: None })
    }

    /// Whether no file is requested, or writing failed.
    pub(crate) fn are_done(&self) -> bool {
        self.files.is_empty() || self.failed.is_some()
    }

    /// Adds a row. After an error no more is written; [`Self::finish`] returns it.
    pub(crate) fn record(&mut self, row: R) {
        if self.are_done() {
            return;
        }
        self.rows.push(row);
        if self.rows.len() >= BATCH {
            self.failed = self.write().err();
        }
    }

    /// Writes the last rows, and completes the files.
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        match self.failed.take() {
            Some(error) => return Err(error),
            None => self.write()?,
        }
        self.files.into_iter().try_for_each(TableFile::finish)
    }

    fn write(&mut self) -> Result<(), Error> {
        let rows = Table::of(&self.rows, &self.columns);
        self.rows.clear();
        self.files.iter_mut().try_for_each(|file| file.append(&rows))
    }
}
