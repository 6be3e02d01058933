//! Frame that all figures share: size, colours, text and axes.

use maud::{Markup, PreEscaped, html};
use plotters::chart::ChartContext;
use plotters::prelude::*;

use crate::axis::Axis;

/// Text and axes.
pub const INK: RGBColor = RGBColor(0x33, 0x3d, 0x4a);
/// Lines behind the data.
pub(super) const GRID: RGBColor = RGBColor(0xe3, 0xe7, 0xec);
/// Colour of lost packets: vermilion, distinct from blue also with colour blindness.
pub(super) const LOST: RGBColor = RGBColor(0xd5, 0x3e, 0x00);
/// Series in the order they are drawn: blue, orange, green and purple, after the palette of Okabe
/// and Ito ("Color universal design", 2008), darkened to stand out as lines on white; then grey and violet.
pub const SERIES: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xc2, 0x6a, 0x00),
    RGBColor(0x00, 0x8a, 0x66),
    RGBColor(0xa8, 0x4f, 0x86),
    RGBColor(0x5a, 0x5a, 0x5a),
    RGBColor(0x6a, 0x3f, 0xb5),
];

/// Index of the colour of the first series with lines or points: the colour before it is for areas.
pub const FIRST_SERIES: usize = 1;

/// Size of letters in pixels of the figure (the SVG backend divides by 1.24).
const LETTERS: f64 = 15.5;

/// A figure ready to be put into a page.
#[derive(Debug)]
pub struct Figure {
    /// The `svg` element.
    pub svg: Markup,
    /// Caption in whole sentences; plain text.
    pub caption: String,
}

/// Identifier, size and texts of a figure.
pub struct Frame<'a> {
    /// Prefix of the identifiers in the page.
    pub id: &'a str,
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// Short text for readers who do not see the figure.
    pub title: String,
    /// Long text, shown below the figure too.
    pub caption: String,
}

/// The axes to draw on.
pub type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;
/// Result of drawing.
pub type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

impl Frame<'_> {
    /// Draws axes, and within them `data`.
    pub fn draw<F>(self, x: &Axis, y: &Axis, data: F) -> Figure
    where
        F: for<'a, 'b> FnOnce(&mut Chart<'a, 'b>) -> Drawn,
    {
        let mut drawing = String::new();
        let drawn = draw(&mut drawing, self.size, x, y, data);
        // Drawing into memory does not fail. If it does, the page contains a note.
        let svg = match (drawn, drawing.split_once('>')) {
            (Ok(()), Some((_, body))) => self.element(body.trim_end().trim_end_matches("</svg>")),
            _ => html! { p.empty { "This figure could not be drawn." } },
        };
        Figure { svg, caption: self.caption }
    }

    /// The `svg` element around `body`, scaled by the page, with a title and a description for screen readers.
    fn element(&self, body: &str) -> Markup {
        let Self { id, size: (width, height), title, caption } = self;
        html! {
            svg viewBox={ "0 0 " (width) " " (height) } role="img"
                aria-labelledby={ (id) "-title " (id) "-text" } {
                title id={ (id) "-title" } { (title) }
                desc id={ (id) "-text" } { (caption) }
                (PreEscaped(body))
            }
        }
    }
}

/// Draws the axes and the data into `drawing`.
fn draw<'b, F>(drawing: &'b mut String, size: (u32, u32), x: &Axis, y: &Axis, data: F) -> Drawn
where
    F: for<'a> FnOnce(&mut Chart<'a, 'b>) -> Drawn,
{
    let root = SVGBackend::with_string(drawing, size).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(8)
        .margin_right(26)
        .x_label_area_size(44)
        .y_label_area_size(76)
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(letters())
        .axis_desc_style(letters())
        .x_desc(x.label.as_str())
        .y_desc(y.label.as_str())
        .draw()?;
    data(&mut chart)?;
    root.present()
}

/// Style of text in figures.
pub fn letters() -> TextStyle<'static> {
    ("sans-serif", LETTERS).into_font().color(&INK)
}

/// Number of ticks for the width of a figure.
pub fn ticks((width, _): (u32, u32)) -> f64 {
    f64::from(width / 90).max(4.0)
}
