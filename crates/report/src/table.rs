//! Table of text, for the page and for the terminal alike.

use maud::{Markup, html};

use super::sheet::table;

/// A table of text. Numbers are written as in the report ([`crate::format`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Caption.
    pub caption: String,
    /// Column headers, with units.
    pub heads: Vec<String>,
    /// Rows; the first cell of each is its name.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// The table below its caption.
    pub fn html(&self) -> Markup {
        let Self { caption, heads, rows } = self;
        html! { h3 { (caption) } (table("costs", caption, heads, rows)) }
    }
}
