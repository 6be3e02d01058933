//! Tables of text, for the page and for the terminal alike.

use super::format::Escaped;
use super::sheet::table;

/// A table of text. Numbers are written as in the report ([`crate::report::format`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
    pub caption: &'static str,
    /// The heads of its columns, with units.
    pub heads: &'static [&'static str],
    /// Its rows, the first cell of each its name.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The table in a page, below what it shows.
    pub(crate) fn html(&self) -> String {
        let escaped = |row: &Vec<String>| row.iter().map(|c| Escaped(c).to_string()).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(escaped).collect();
        let table = table("costs", self.caption, self.heads, &rows);
        format!("<h3>{}</h3>\n{table}", self.caption)
    }
}
