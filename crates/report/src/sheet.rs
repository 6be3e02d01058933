//! The sheet that every report is written on: the page and its style, sections, tables, figures.
//!
//! What is called HTML here goes into the page as it is. Everything else is escaped.

use super::figures::Figure;
use super::format::Escaped;

/// Sizes of a figure in pixels: across the page, and across a telephone.
const WIDE: (u32, u32) = (1000, 310);
const NARROW: (u32, u32) = (460, 300);

/// What a page opens with.
pub struct Heading<'a> {
    /// The headline, and the title of the browser's window.
    pub title: &'a str,
    /// When it was made.
    pub generated_at: &'a str,
    /// Sentences that become the opening paragraph.
    pub summary: &'a [String],
}

/// A complete page: its heading, the HTML `outcome` below it, and the HTML of its sections.
pub fn document(heading: &Heading<'_>, outcome: &str, sections: &str) -> String {
    let title = Escaped(heading.title);
    let summary = match heading.summary.join(" ") {
        text if text.is_empty() => String::new(),
        text => format!("<p class=\"summary\">{}</p>\n", Escaped(&text)),
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"when\">{}</p>\n{summary}{outcome}</header>\n<main>\n{sections}</main>\n\
         </body>\n</html>\n",
        include_str!("style.css"),
        Escaped(heading.generated_at),
    )
}

/// A section with the HTML `body`.
pub fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{body}</section>\n")
}

/// A section of terms: what, where that comes from, and the text about it.
pub fn terms(id: &str, heading: &str, terms: &[(&str, &str, &str)]) -> String {
    let entry = |(term, source, text): &(&str, &str, &str)| {
        let [term, source, text] = [term, source, text].map(|part| Escaped(part));
        format!("<dt>{term} <span class=\"source\">{source}</span></dt><dd>{text}</dd>\n")
    };
    let entries: String = terms.iter().map(entry).collect();
    format!(
        "<section id=\"{id}\">\n<h2>{heading}</h2>\n<dl class=\"terms\">\n{entries}</dl>\n\
         </section>\n"
    )
}

/// The key to series that are drawn in the colours from the `first` on.
pub fn key<'a>(names: impl Iterator<Item = &'a str>, first: usize) -> String {
    let entry = |(number, name): (usize, &str)| {
        // The first colour is of areas; its second turn, with more than three series, of a line.
        let line = if number > 3 { " key-line" } else { "" };
        format!("<span class=\"key key-{}{line}\">{}</span>", number % 4, Escaped(name))
    };
    (first..).zip(names).map(entry).collect()
}

/// A figure drawn twice, by a function of its size and its identity: the style sheet shows the one
/// that fits the screen, since a wide figure scaled down to a telephone has no readable letters.
/// Nothing if there is nothing to draw.
pub fn on_every_screen(
    heading: &str,
    key: &str,
    id: &str,
    draw: impl Fn((u32, u32), &str) -> Option<Figure>,
) -> Option<String> {
    let (wide, narrow) = (draw(WIDE, id)?, draw(NARROW, &format!("{id}-narrow"))?);
    Some(format!(
        "<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n",
        figure(heading, key, &wide),
        figure(heading, key, &narrow)
    ))
}

/// A figure below its heading and its key (HTML), above its caption.
pub(super) fn figure(heading: &str, key: &str, figure: &Figure) -> String {
    let Figure { svg, caption } = figure;
    let key = if key.is_empty() { String::new() } else { format!("<p class=\"keys\">{key}</p>\n") };
    format!(
        "<figure>\n<h3>{heading}</h3>\n{key}{svg}<figcaption>{}</figcaption>\n</figure>\n",
        Escaped(caption)
    )
}

/// A section of pairs with `more` after them; nothing if both are empty.
pub fn pairs(id: &str, heading: &str, pairs: &[(String, String)], more: &str) -> String {
    if pairs.is_empty() && more.is_empty() {
        return String::new();
    }
    let row = |(name, value): &(String, String)| {
        format!("<dt>{}</dt><dd>{}</dd>\n", Escaped(name), Escaped(value))
    };
    let rows: String = pairs.iter().map(row).collect();
    let list = if rows.is_empty() { rows } else { format!("<dl class=\"pairs\">\n{rows}</dl>\n") };
    format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{list}{more}</section>\n")
}

/// A table of HTML cells, the first of each row its head. The roles are spelled out because the
/// style sheet turns rows into blocks on narrow screens, which would otherwise undo the table for
/// those who have it read to them.
pub fn table(class: &str, caption: &str, heads: &[&str], rows: &[Vec<String>]) -> String {
    let head: String = heads
        .iter()
        .map(|head| format!("<th scope=\"col\" role=\"columnheader\">{head}</th>"))
        .collect();
    let row = |cells: &Vec<String>| {
        let cell = |(index, (head, cell)): (usize, (&&str, &String))| match index {
            0 => format!("<th scope=\"row\" role=\"rowheader\">{cell}</th>"),
            _ => format!("<td role=\"cell\" data-head=\"{head}\">{cell}</td>"),
        };
        let cells: String = heads.iter().zip(cells).enumerate().map(cell).collect();
        format!("<tr role=\"row\">{cells}</tr>\n")
    };
    let body: String = rows.iter().map(row).collect();
    format!(
        "<table class=\"{class} stacks\" role=\"table\">\n<caption>{caption}</caption>\n\
         <thead role=\"rowgroup\"><tr role=\"row\">{head}</tr></thead>\n\
         <tbody role=\"rowgroup\">\n{body}</tbody>\n</table>\n"
    )
}
