//! Comma-separated values (RFC 4180), with a header. Missing values are empty.

use std::fs::File;
use std::io;
use std::path::Path;

use jiff::Timestamp;

use crate::table::Values;
use crate::{Error, Table};

impl Table {
    /// Writes the table to a file, which is created or overwritten.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_csv(&self, path: &Path) -> Result<(), Error> {
        self.try_write_csv(path).map_err(Error::write(path))
    }

    fn try_write_csv(&self, path: &Path) -> io::Result<()> {
        let mut writer = csv::Writer::from_path(path)?;
        self.write_csv_header(&mut writer)?;
        self.write_csv_rows(&mut writer)?;
        writer.flush()
    }

    pub(crate) fn write_csv_header(&self, writer: &mut csv::Writer<File>) -> io::Result<()> {
        Ok(writer.write_record(self.columns.iter().map(|column| column.name.as_bytes()))?)
    }

    pub(crate) fn write_csv_rows(&self, writer: &mut csv::Writer<File>) -> io::Result<()> {
        for row in 0..self.rows {
            writer.write_record(self.columns.iter().map(|column| column.values.cell(row)))?;
        }
        Ok(())
    }
}

impl Values {
    fn cell(&self, row: usize) -> String {
        let cell = match self {
            Self::Whole(values) => values[row].map(|value| value.to_string()),
            Self::Real(values) => values[row].map(|value| value.to_string()),
            Self::Text(values) => values[row].clone(),
            Self::Time(values) => values[row].and_then(time),
        };
        cell.unwrap_or_default()
    }
}

/// A time as in RFC 3339, with all nine digits of the second.
fn time(nanos: i64) -> Option<String> {
    let time = Timestamp::from_nanosecond(nanos.into()).ok()?;
    Some(format!("{time:.9}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;

    #[test]
    fn missing_values_are_empty_cells() {
        type Row = (Option<i64>, Option<f64>, &'static str);
        let fields: [Field<Row>; 3] = [
            Field::whole("a", |row| row.0),
            Field::real("b", |row| row.1),
            Field::text("c", |row| Some(row.2.to_owned())),
        ];
        let table = Table::of(&[(Some(-1), None, "x, \"y\""), (None, Some(0.1), "")], &fields);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        table.write_csv(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "a,b,c\n-1,,\"x, \"\"y\"\"\"\n,0.1,\n");
        let begin = [Field::<i64>::time("begin_time", |it| Some(*it))];
        Table::of(&[1_000_000_010, -1], &begin).write_csv(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected =
            "begin_time\n1970-01-01T00:00:01.000000010Z\n1969-12-31T23:59:59.999999999Z\n";
        assert_eq!(text, expected);
        let nowhere = table.write_csv(&folder.path().join("no/where")).unwrap_err().to_string();
        assert!(nowhere.contains("check that the folder exists"), "{nowhere}");
    }
}
