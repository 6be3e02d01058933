//! Parts of every page: document and style, sections, tables, figures.

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

use super::figures::{Figure, SERIES};

/// Sizes of a figure in pixels: across the page, and across a telephone.
const WIDE: (u32, u32) = (1000, 310);
const NARROW: (u32, u32) = (460, 300);

/// Opening of a page.
pub struct Heading<'a> {
    /// Headline, and title of the browser's window.
    pub title: &'a str,
    /// Creation time.
    pub generated_at: &'a str,
    /// Sentences of the opening paragraph.
    pub summary: &'a [String],
}

/// A complete page: heading, `outcome` below it, sections.
pub fn document(heading: &Heading<'_>, outcome: impl Render, sections: impl Render) -> String {
    let Heading { title, generated_at, summary } = heading;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                header {
                    h1 { (title) }
                    p.when { (generated_at) }
                    @if !summary.is_empty() { p.summary { (summary.join(" ")) } }
                    (outcome)
                }
                main { (sections) }
            }
        }
    };
    page.into_string()
}

/// A section.
pub fn section(id: &str, heading: impl Render, body: impl Render) -> Markup {
    html! { section id=(id) { h2 { (heading) } (body) } }
}

/// A section of terms: term, its source, and its meaning.
pub fn terms(id: &str, heading: &str, terms: &[(&str, &str, &str)]) -> Markup {
    let body = html! {
        dl.terms {
            @for (term, source, text) in terms {
                dt { (term) " " span.source { (source) } }
                dd { (text) }
            }
        }
    };
    section(id, heading, body)
}

/// Legend of series drawn in the colours from `first` on.
pub fn key<'a>(names: impl Iterator<Item = &'a str>, first: usize) -> Markup {
    html! {
        @for (number, name) in (first..).zip(names) {
            // The first colour is for areas. With more than five series, it is used again for a line.
            span class={ "key key-" (number % SERIES.len()) @if number >= SERIES.len() { " key-line" } } { (name) }
        }
    }
}

/// A figure in two sizes, each drawn by `draw(size, id)`. The style sheet shows the one that fits the screen: text in
/// a wide figure would not be readable on a phone. `None` if there is nothing to draw.
pub fn on_every_screen(
    heading: &str,
    key: &Markup,
    id: &str,
    draw: impl Fn((u32, u32), &str) -> Option<Figure>,
) -> Option<Markup> {
    let (wide, narrow) = (draw(WIDE, id)?, draw(NARROW, &format!("{id}-narrow"))?);
    Some(html! {
        div.wide { (figure(heading, key, &wide)) }
        div.narrow { (figure(heading, key, &narrow)) }
    })
}

/// A figure below its heading and its legend, above its caption.
pub(super) fn figure(heading: &str, key: &Markup, Figure { svg, caption }: &Figure) -> Markup {
    html! {
        figure {
            h3 { (heading) }
            @if !key.0.is_empty() { p.keys { (key) } }
            (svg)
            figcaption { (caption) }
        }
    }
}

/// Remark in place of a figure or a table without data.
pub fn absent(why: &str) -> Markup {
    html! { p.empty { (why) } }
}

/// Pairs of name and value; empty if there are none.
pub fn list(pairs: &[(String, String)]) -> Markup {
    html! {
        @if !pairs.is_empty() {
            dl.pairs {
                @for (name, value) in pairs { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// A section of pairs; empty if there are none.
pub fn pairs(id: &str, heading: &str, pairs: &[(String, String)]) -> Markup {
    html! { @if !pairs.is_empty() { (section(id, heading, list(pairs))) } }
}

/// A table in a box that scrolls if the table is wider; the first cell of each row is its header. The roles are explicit because the style sheet turns rows into
/// blocks on narrow screens, where a screen reader would otherwise not detect the table.
pub fn table(
    class: &str,
    caption: &str,
    heads: &[impl AsRef<str>],
    rows: &[Vec<impl Render>],
) -> Markup {
    html! {
        div.scrolls {
            table class={ (class) " stacks" } role="table" {
                caption { (caption) }
                thead role="rowgroup" {
                    tr role="row" {
                        @for head in heads { th scope="col" role="columnheader" { (head.as_ref()) } }
                    }
                }
                tbody role="rowgroup" {
                    @for row in rows {
                        tr role="row" {
                            @for (index, (head, cell)) in heads.iter().zip(row).enumerate() {
                                @if index == 0 {
                                    th scope="row" role="rowheader" { (cell) }
                                } @else {
                                    td role="cell" data-head=(head.as_ref()) { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
