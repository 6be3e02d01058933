//! Tables: columns of values.

/// One column of rows of type `R`.
pub struct Field<R> {
    name: &'static str,
    get: Get<R>,
}

enum Get<R> {
    Whole(fn(&R) -> Option<i64>),
    Real(fn(&R) -> Option<f64>),
    Text(fn(&R) -> Option<String>),
    Time(fn(&R) -> Option<i64>),
}

impl<R> Field<R> {
    /// A column of integers.
    pub const fn whole(name: &'static str, get: fn(&R) -> Option<i64>) -> Self {
        Self { name, get: Get::Whole(get) }
    }

    /// A column of real numbers.
    pub const fn real(name: &'static str, get: fn(&R) -> Option<f64>) -> Self {
        Self { name, get: Get::Real(get) }
    }

    /// A column of text.
    pub const fn text(name: &'static str, get: fn(&R) -> Option<String>) -> Self {
        Self { name, get: Get::Text(get) }
    }

    /// A column of times, in nanoseconds since 1970 (UTC): a timestamp in Parquet, and RFC 3339 in CSV.
    pub const fn time(name: &'static str, get: fn(&R) -> Option<i64>) -> Self {
        Self { name, get: Get::Time(get) }
    }
}

/// A table in columns with optional values.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Column>,
}

/// A column: its name, and an optional value for each row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) values: Values,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    Whole(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
    /// Nanoseconds since 1970 (UTC).
    Time(Vec<Option<i64>>),
}

impl Table {
    /// The table of these rows.
    #[must_use]
    pub fn of<R>(rows: &[R], fields: &[Field<R>]) -> Self {
        let values = |get: &Get<R>| match get {
            Get::Whole(get) => Values::Whole(rows.iter().map(get).collect()),
            Get::Real(get) => Values::Real(rows.iter().map(get).collect()),
            Get::Text(get) => Values::Text(rows.iter().map(get).collect()),
            Get::Time(get) => Values::Time(rows.iter().map(get).collect()),
        };
        let column = |field: &Field<R>| Column { name: field.name, values: values(&field.get) };
        Self { rows: rows.len(), columns: fields.iter().map(column).collect() }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }
}
