//! Parquet, with the low-level writer: Arrow would add many times the code for the same file.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::SerializedFileReader;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use crate::table::{Column, Values};
use crate::{Error, Table};

impl Table {
    /// Writes the table to a file, which is created or overwritten, compressed with Snappy.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_parquet(&self, path: &Path) -> std::result::Result<(), Error> {
        File::create(path)
            .and_then(|file| self.try_write_parquet(file).map_err(into_io))
            .map_err(Error::write(path))
    }

    fn try_write_parquet(&self, file: File) -> Result<()> {
        let mut writer = self.parquet_writer(file)?;
        self.write_row_group(&mut writer)?;
        writer.close().map(drop)
    }

    /// A writer for tables with the columns of this one.
    pub(crate) fn parquet_writer(&self, file: File) -> Result<SerializedFileWriter<File>> {
        let fields: Result<Vec<_>> =
            self.columns.iter().map(|it| it.schema().map(Arc::new)).collect();
        let schema = Type::group_type_builder("schema").with_fields(fields?).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
    }

    pub(crate) fn write_row_group(&self, writer: &mut SerializedFileWriter<File>) -> Result<()> {
        let mut rows = writer.next_row_group()?;
        for column in &self.columns {
            if let Some(mut to) = rows.next_column()? {
                column.values.write(&mut to)?;
                to.close()?;
            }
        }
        rows.close().map(drop)
    }
}

/// Whether a file is complete: the description at its end, which is written last, can be read.
///
/// # Errors
/// If the file cannot be read.
pub fn is_complete_parquet(path: &Path) -> io::Result<bool> {
    match SerializedFileReader::new(File::open(path)?) {
        Ok(_) => Ok(true),
        Err(ParquetError::External(cause)) => match cause.downcast::<io::Error>() {
            Ok(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(*error),
            _ => Ok(false),
        },
        Err(_) => Ok(false),
    }
}

/// The error of the system, if it is one.
pub(crate) fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast() {
            Ok(io) => *io,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

impl Column {
    fn schema(&self) -> Result<Type> {
        let (physical, logical) = match self.values {
            Values::Whole(_) => (Physical::INT64, None),
            Values::Real(_) => (Physical::DOUBLE, None),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Time(_) => {
                (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS)))
            }
        };
        Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
    }
}

impl Values {
    fn write(&self, to: &mut SerializedColumnWriter<'_>) -> Result<()> {
        match self {
            Self::Whole(values) | Self::Time(values) => {
                let (present, levels) = present(values, |value| *value);
                to.typed::<Int64Type>().write_batch(&present, Some(&levels), None)?;
            }
            Self::Real(values) => {
                let (present, levels) = present(values, |value| *value);
                to.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?;
            }
            Self::Text(values) => {
                let (present, levels) = present(values, |value| ByteArray::from(value.as_str()));
                to.typed::<ByteArrayType>().write_batch(&present, Some(&levels), None)?;
            }
        }
        Ok(())
    }
}

/// The present values, and the definition level of each row: 1 with a value, 0 without.
fn present<T, U>(values: &[Option<T>], convert: impl Fn(&T) -> U) -> (Vec<U>, Vec<i16>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (values.iter().flatten().map(convert).collect(), levels)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::FileReader;
    use parquet::record::{Field as Cell, Row as Record};
    use proptest::prelude::*;

    use super::*;
    use crate::Field;

    type Row = (Option<i64>, Option<f64>, Option<String>);

    const FIELDS: [Field<Row>; 3] = [
        Field::whole("whole", |row| row.0),
        Field::real("real", |row| row.1),
        Field::text("text", |row| row.2.clone()),
    ];

    fn cells(record: &Record) -> Vec<(String, Cell)> {
        record.get_column_iter().map(|(name, cell)| (name.clone(), cell.clone())).collect()
    }

    fn expected(row: &Row) -> Vec<(String, Cell)> {
        let (whole, real, text) = row.clone();
        vec![
            ("whole".into(), whole.map_or(Cell::Null, Cell::Long)),
            ("real".into(), real.map_or(Cell::Null, Cell::Double)),
            ("text".into(), text.map_or(Cell::Null, Cell::Str)),
        ]
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            rows in prop::collection::vec((any::<Option<i64>>(), any::<Option<f64>>(), any::<Option<String>>()), 0..50),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("table.parquet");
            Table::of(&rows, &FIELDS).write_parquet(&path).unwrap();
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            let read: Vec<_> = reader.get_row_iter(None).unwrap().map(|it| cells(&it.unwrap())).collect();
            let expected: Vec<_> = rows.iter().map(expected).collect();
            // NaN is not equal to itself.
            prop_assert_eq!(format!("{:?}", read), format!("{:?}", expected));
        }
    }

    #[test]
    fn times_are_timestamps_in_utc() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.parquet");
        let begin = [Field::<i64>::time("begin_time", |it| Some(*it))];
        Table::of(&[1_000_000_010], &begin).write_parquet(&path).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let column = reader.metadata().file_metadata().schema_descr().column(0);
        let expected = LogicalType::timestamp(true, TimeUnit::NANOS);
        assert_eq!(column.logical_type_ref(), Some(&expected));
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
        assert_eq!(cells(&row), [("begin_time".into(), Cell::Long(1_000_000_010))]);
    }

    #[test]
    fn full_disk_is_an_error() {
        let rows: Vec<Row> = (0..20_000).map(|it| (Some(it * 7919 % 10_007), None, None)).collect();
        let error = Table::of(&rows, &FIELDS).write_parquet(Path::new("/dev/full")).unwrap_err();
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }
}
