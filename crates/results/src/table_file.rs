//! Files of tables that are written in parts, because they may not fit in memory.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use parquet::file::writer::SerializedFileWriter;

use crate::parquet::into_io;
use crate::{Error, Field, Table};

/// A file that receives rows in parts.
pub struct TableFile {
    path: PathBuf,
    writer: Writer,
}

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Comma-separated values (RFC 4180), with a header.
    Csv,
    /// Apache Parquet.
    Parquet,
}

enum Writer {
    Csv(csv::Writer<File>),
    /// Each part is a row group.
    Parquet(SerializedFileWriter<File>),
}

impl TableFile {
    /// Creates or overwrites the file, with these columns, in the format that its name states.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create<R>(path: &Path, fields: &[Field<R>]) -> Result<Self, Error> {
        let is_parquet = path.extension().is_some_and(|it| it == "parquet");
        let format = if is_parquet { TableFormat::Parquet } else { TableFormat::Csv };
        Self::create_as(path, format, fields)
    }

    /// Creates or overwrites the file in this format, with these columns.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create_as<R>(
        path: &Path,
        format: TableFormat,
        fields: &[Field<R>],
    ) -> Result<Self, Error> {
        let columns = Table::of(&[], fields);
        let create = || {
            let file = File::create(path)?;
            if format == TableFormat::Parquet {
                return columns.parquet_writer(file).map(Writer::Parquet).map_err(into_io);
            }
            let mut writer = csv::Writer::from_writer(file);
            columns.write_csv_header(&mut writer)?;
            Ok(Writer::Csv(writer))
        };
        let writer = create().map_err(Error::write(path))?;
        Ok(Self { path: path.to_owned(), writer })
    }

    /// Appends rows. The table has the columns of the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn append(&mut self, rows: &Table) -> Result<(), Error> {
        let written = match &mut self.writer {
            Writer::Csv(writer) => rows.write_csv_rows(writer),
            Writer::Parquet(writer) => rows.write_row_group(writer).map_err(into_io),
        };
        written.map_err(Error::write(&self.path))
    }

    /// Completes the file. A Parquet file is not readable before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        let finished: io::Result<()> = match self.writer {
            Writer::Csv(mut writer) => writer.flush(),
            Writer::Parquet(writer) => writer.close().map(drop).map_err(into_io),
        };
        finished.map_err(Error::write(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    const FIELDS: [Field<i64>; 2] = [
        Field::whole("number", |row| Some(*row)),
        Field::text("parity", |row| (row % 2 == 0).then(|| "even".to_owned())),
    ];

    /// Writes three parts, of which one is empty, to a file of this name.
    fn written(name: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut file = TableFile::create(&path, &FIELDS).unwrap();
        for part in [&[1, 2][..], &[], &[3]] {
            file.append(&Table::of(part, &FIELDS)).unwrap();
        }
        file.finish().unwrap();
        (folder, path)
    }

    #[test]
    fn csv_has_one_header_and_all_parts() {
        let (_folder, path) = written("a.csv");
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text, "number,parity\n1,\n2,even\n3,\n");
    }

    #[test]
    fn parquet_has_all_parts() {
        let (_folder, path) = written("a.parquet");
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
        assert_eq!(rows.len(), 3);
        assert!(rows[1].contains("number: 2") && rows[1].contains("even"), "{rows:?}");
    }

    #[test]
    fn full_disk_is_an_error() {
        let mut file = TableFile::create(Path::new("/dev/full"), &FIELDS).unwrap();
        let rows: Vec<_> = (0..20_000).collect();
        let error = file.append(&Table::of(&rows, &FIELDS)).unwrap_err().to_string();
        assert!(error.contains("/dev/full"), "{error}");
    }
}
