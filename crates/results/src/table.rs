//! Tables: columns of values.

use std::borrow::Cow;

/// One column of rows of type `R`.
pub struct Field<R> {
    name: Cow<'static, str>,
    get: Get<R>,
}

enum Get<R> {
    Whole(fn(&R) -> Option<i64>),
    WholeAt(fn(&R, usize) -> Option<i64>, usize),
    Real(fn(&R) -> Option<f64>),
    Text(fn(&R) -> Option<String>),
    Time(fn(&R) -> Option<i64>),
    TimeAt(fn(&R, usize) -> Option<i64>, usize),
}

impl<R> Clone for Field<R> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), get: self.get.clone() }
    }
}

impl<R> Clone for Get<R> {
    fn clone(&self) -> Self {
        match *self {
            Self::Whole(get) => Self::Whole(get),
            Self::WholeAt(get, index) => Self::WholeAt(get, index),
            Self::Real(get) => Self::Real(get),
            Self::Text(get) => Self::Text(get),
            Self::Time(get) => Self::Time(get),
            Self::TimeAt(get, index) => Self::TimeAt(get, index),
        }
    }
}

impl<R> Field<R> {
    /// A column of integers.
    pub const fn whole(name: &'static str, get: fn(&R) -> Option<i64>) -> Self {
        Self { name: Cow::Borrowed(name), get: Get::Whole(get) }
    }

    /// A column of real numbers.
    pub const fn real(name: &'static str, get: fn(&R) -> Option<f64>) -> Self {
        Self { name: Cow::Borrowed(name), get: Get::Real(get) }
    }

    /// A column of text.
    pub const fn text(name: &'static str, get: fn(&R) -> Option<String>) -> Self {
        Self { name: Cow::Borrowed(name), get: Get::Text(get) }
    }

    /// A column of times, in nanoseconds since 1970 (UTC): a timestamp in Parquet, and RFC 3339 in CSV.
    pub const fn time(name: &'static str, get: fn(&R) -> Option<i64>) -> Self {
        Self { name: Cow::Borrowed(name), get: Get::Time(get) }
    }

    /// A column of integers, one of several of a row: `get` returns that with this index.
    pub fn whole_at(name: String, index: usize, get: fn(&R, usize) -> Option<i64>) -> Self {
        Self { name: Cow::Owned(name), get: Get::WholeAt(get, index) }
    }

    /// A column of times as [`Self::time`], one of several of a row: `get` returns that with this index.
    pub fn time_at(name: String, index: usize, get: fn(&R, usize) -> Option<i64>) -> Self {
        Self { name: Cow::Owned(name), get: Get::TimeAt(get, index) }
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
    pub(crate) name: Cow<'static, str>,
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
            Get::WholeAt(get, index) => {
                Values::Whole(rows.iter().map(|row| get(row, *index)).collect())
            }
            Get::Real(get) => Values::Real(rows.iter().map(get).collect()),
            Get::Text(get) => Values::Text(rows.iter().map(get).collect()),
            Get::Time(get) => Values::Time(rows.iter().map(get).collect()),
            Get::TimeAt(get, index) => {
                Values::Time(rows.iter().map(|row| get(row, *index)).collect())
            }
        };
        let column =
            |field: &Field<R>| Column { name: field.name.clone(), values: values(&field.get) };
        Self { rows: rows.len(), columns: fields.iter().map(column).collect() }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }
}
