//! Tables of text, for the page and for the terminal alike, from data.
//!
//! A study declares a table as its caption, its rows and its columns: [`Table::of`]. A [`Column`] is a head with its unit and
//! the text of a row's cell. Values that may be missing are written by [`optional`](crate::format::optional),
//! estimates with their interval by [`Estimate::text`](crate::estimate::Estimate::text). Main effects have one table for
//! all studies, `experiment::effects_table`. To convert a study, replace each `row` closure and its array of heads by
//! columns, and leave captions and heads as they are: reports must not change.

use maud::{Markup, html};

use super::sheet::table;

/// Column of a table: head with unit, and text of a row's cell.
pub type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

/// A table of text. Numbers are written as in the report ([`crate::format`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Caption.
    pub caption: String,
    /// The heads of its columns, with units.
    pub heads: Vec<String>,
    /// Its rows, the first cell of each its name.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these rows.
    #[must_use]
    pub fn new(caption: &str, heads: &[&str], rows: Vec<Vec<String>>) -> Self {
        let heads = heads.iter().map(|&head| head.to_owned()).collect();
        Self { caption: caption.to_owned(), heads, rows }
    }

    /// Table with a row for each of `rows`, and a cell for each column.
    pub fn of<T>(
        caption: &str,
        rows: impl IntoIterator<Item = T>,
        columns: &[Column<'_, T>],
    ) -> Self {
        let heads: Vec<_> = columns.iter().map(|(head, _)| *head).collect();
        let cells = |row: T| columns.iter().map(|(_, text)| text(&row)).collect();
        Self::new(caption, &heads, rows.into_iter().map(cells).collect())
    }

    /// The table below its caption.
    pub fn html(&self) -> Markup {
        let Self { caption, heads, rows } = self;
        html! { h3 { (caption) } (table("costs", caption, heads, rows)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_make_heads_and_cells() {
        let table = Table::of(
            "Squares",
            [2, 3],
            &[("", &|n: &i32| n.to_string()), ("square", &|n| (n * n).to_string())],
        );
        assert_eq!(table.heads, ["", "square"]);
        assert_eq!(table.rows, [["2", "4"], ["3", "9"]]);
    }
}
