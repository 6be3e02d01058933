//! Figures as SVG: lines against rate, and spans of stamps' errors.

use anyhow::anyhow;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::statistics::Spread;

const SIZE: (u32, u32) = (1000, 460);
/// Abscissa of the legend.
const KEY_AT: i32 = 800;
/// Distance between two lines of the legend.
const KEY_STEP: i32 = 24;
const LETTERS: f64 = 15.5;
const INK: RGBColor = RGBColor(0x33, 0x3d, 0x4a);
const GRID: RGBColor = RGBColor(0xe3, 0xe7, 0xec);
const IDLE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const BUSY: RGBColor = RGBColor(0xd5, 0x3e, 0x00);

/// Each tool's and each method's colour: the peers in grey and earth, ours after Okabe and Ito
/// ("Color universal design", 2008), darkened to stand out as lines on white, and two violets.
const COLOURS: [(&str, RGBColor); 12] = [
    ("tcpdump", RGBColor(0x77, 0x77, 0x77)),
    ("dumpcap", RGBColor(0x00, 0x00, 0x00)),
    ("netsniff-ng", RGBColor(0x8c, 0x56, 0x4b)),
    ("netring", RGBColor(0xd5, 0x3e, 0x00)),
    ("ring", RGBColor(0x00, 0x72, 0xb2)),
    ("recvmsg", RGBColor(0xc2, 0x6a, 0x00)),
    ("recvmmsg", RGBColor(0xd8, 0xa9, 0x00)),
    ("libpcap", RGBColor(0xa8, 0x4f, 0x86)),
    ("xdp", RGBColor(0x00, 0x8a, 0x66)),
    ("xdp-pass", RGBColor(0x56, 0xb4, 0xe9)),
    ("tc-pass", RGBColor(0x6a, 0x3d, 0x9a)),
    ("trace-pass", RGBColor(0xb0, 0x5f, 0xd0)),
];
/// The default pairs of methods without kernel stamps.
const BY_PROGRAM: [&str; 4] = ["xdp/xdp", "xdp-pass/xdp", "tc-pass/tc", "trace-pass/trace"];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Lines of several contenders on the same axes.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) lines: Vec<Line>,
}

/// The line of one contender: abscissas, and the values of its repetitions.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, Spread)>,
}

impl Chart {
    pub(crate) fn svg(&self) -> anyhow::Result<String> {
        drawing(|root| self.draw(root))
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let end =
            |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max).max(1e-3) * 1.05;
        let right = end(&mut points().map(|(at, _)| *at));
        let top = end(&mut points().map(|(_, spread)| spread.max));
        let (plot, _) = root.split_horizontally(KEY_AT);
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, letters())
            .margin(8)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..right, 0.0..top)?;
        mesh(chart.configure_mesh().x_desc(&self.x).y_desc(&self.y))?;
        for line in &self.lines {
            let style = colour(&line.name).stroke_width(2);
            let medians = line.points.iter().map(|(at, spread)| (*at, spread.median));
            if is_first_choice(&line.name) {
                chart.draw_series(LineSeries::new(medians, style))?;
            } else {
                chart.draw_series(DashedLineSeries::new(medians, 6, 4, style))?;
            }
            let bar = |(at, spread): &(f64, Spread)| {
                PathElement::new(vec![(*at, spread.min), (*at, spread.max)], style)
            };
            chart.draw_series(line.points.iter().map(bar))?;
            let dot =
                |(at, spread): &(f64, Spread)| Circle::new((*at, spread.median), 3, style.filled());
            chart.draw_series(line.points.iter().map(dot))?;
        }
        for (row, line) in (0..).zip(&self.lines) {
            key(root, row, &line.name, colour(&line.name), is_first_choice(&line.name))?;
        }
        Ok(())
    }
}

/// The errors of stamps by method, each from its median to its 99th percentile.
pub(crate) struct Spans {
    pub(crate) title: String,
    pub(crate) rows: Vec<SpanRow>,
}

/// The errors of one method, in microseconds: median and 99th percentile.
pub(crate) struct SpanRow {
    pub(crate) name: String,
    pub(crate) idle: Option<(f64, f64)>,
    pub(crate) busy: Option<(f64, f64)>,
}

impl Spans {
    pub(crate) fn svg(&self) -> anyhow::Result<String> {
        drawing(|root| self.draw(root))
    }

    fn draw(&self, root: &Area<'_>) -> Drawn {
        let ends = || self.rows.iter().flat_map(|row| row.idle.into_iter().chain(row.busy));
        let left = ends().map(|(p50, _)| p50).fold(f64::INFINITY, f64::min).clamp(0.05, 1e6);
        let right = ends().map(|(_, p99)| p99).fold(left * 2.0, f64::max);
        let (plot, _) = root.split_horizontally(KEY_AT);
        let bottom = self.rows.iter().fold(0.0, |rows, _| rows + 1.0);
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, letters())
            .margin(8)
            .x_label_area_size(44)
            .y_label_area_size(110)
            .build_cartesian_2d((left * 0.8..right * 1.3).log_scale(), bottom..0.0)?;
        mesh(
            chart.configure_mesh().disable_y_axis().y_labels(0).x_desc(
                "stamp - send time (µs, log scale): from the median to the 99th percentile",
            ),
        )?;
        for (row, SpanRow { name, idle, busy }) in (0_u32..).zip(&self.rows) {
            let middle = f64::from(row) + 0.5;
            let label = letters().pos(Pos::new(HPos::Right, VPos::Center));
            let at = EmptyElement::at((left * 0.8, middle));
            chart.draw_series([at + Text::new(name.clone(), (-8, 0), label)])?;
            for (span, shift, colour) in [(idle, -0.15, IDLE), (busy, 0.15, BUSY)] {
                let Some((p50, p99)) = span else { continue };
                let at = |error: &f64| (error.max(left), middle + shift);
                let bar = PathElement::new(vec![at(p50), at(p99)], colour.stroke_width(6));
                chart.draw_series([bar])?;
                chart.draw_series([Circle::new(at(p50), 5, colour.filled())])?;
            }
        }
        key(root, 0, "idle", IDLE, true)?;
        key(root, 1, "busy core", BUSY, true)
    }
}

/// An SVG of what `draw` draws.
fn drawing(draw: impl FnOnce(&Area<'_>) -> Drawn) -> anyhow::Result<String> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let drawn = root.fill(&WHITE).and_then(|()| draw(&root)).and_then(|()| root.present());
    drop(root);
    drawn.map_err(|error| anyhow!("cannot draw a figure: {error}"))?;
    Ok(svg)
}

/// The style that all axes share.
fn mesh<'a, 'b, 'c, X, Y, XT, YT>(
    mesh: &mut plotters::chart::MeshStyle<'a, 'b, X, Y, SVGBackend<'c>>,
) -> Drawn
where
    X: Ranged<ValueType = XT> + ValueFormatter<XT>,
    Y: Ranged<ValueType = YT> + ValueFormatter<YT>,
{
    mesh.bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .label_style(letters())
        .axis_desc_style(letters())
        .draw()
}

/// Draws a line of the legend.
fn key(root: &Area<'_>, row: i32, name: &str, colour: RGBColor, solid: bool) -> Drawn {
    let y = 40 + row * KEY_STEP;
    let parts: &[(i32, i32)] = if solid { &[(0, 28)] } else { &[(0, 8), (12, 18), (22, 28)] };
    for (from, to) in parts {
        let ends = vec![(KEY_AT + 10 + from, y), (KEY_AT + 10 + to, y)];
        root.draw(&PathElement::new(ends, colour.stroke_width(3)))?;
    }
    let style = letters().pos(Pos::new(HPos::Left, VPos::Center));
    root.draw(&Text::new(name.to_owned(), (KEY_AT + 46, y), style))
}

fn letters() -> TextStyle<'static> {
    ("sans-serif", LETTERS).into_font().color(&INK)
}

fn method(name: &str) -> &str {
    name.split_once('/').map_or(name, |(method, _)| method)
}

fn colour(name: &str) -> RGBColor {
    let is_it = |(known, _): &&(&str, RGBColor)| *known == method(name);
    COLOURS.iter().find(is_it).map_or(INK, |(_, colour)| *colour)
}

fn is_first_choice(name: &str) -> bool {
    match name.split_once('/') {
        None | Some((_, "kernel")) => true,
        Some(_) => BY_PROGRAM.contains(&name),
    }
}
