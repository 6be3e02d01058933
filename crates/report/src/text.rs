//! Tables of text, for the page and for the terminal alike.

use super::format::Escaped;
use super::sheet::table;

/// A table of text. Numbers are written as in the report ([`crate::format`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it shows.
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

    /// The table in a page, below what it shows.
    pub fn html(&self) -> String {
        let escaped = |row: &Vec<String>| row.iter().map(|c| Escaped(c).to_string()).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(escaped).collect();
        let heads: Vec<_> = self.heads.iter().map(|head| Escaped(head).to_string()).collect();
        let heads: Vec<_> = heads.iter().map(String::as_str).collect();
        let caption = Escaped(&self.caption).to_string();
        let table = table("costs", &caption, &heads, &rows);
        format!("<h3>{caption}</h3>\n{table}")
    }
}
