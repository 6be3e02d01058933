//! The figure of the experiment.

use plotters::prelude::*;

use super::cells::{is_raised, of};
use super::findings::Data;
use super::paper::STEP_NS;
use crate::experiment::mean;
use crate::replicas::Block;
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::{FIRST_SERIES, Figure, Frame, INK, SERIES, ticks};
use wirestamp_report::format::real;

/// The techniques that are drawn: the paper's, and stamps of the softIRQ.
pub(super) const SERIES_OF: [&str; 2] = ["ring:kernel", "xdp-pass:xdp"];

/// Blocks that a moving mean is taken over: every point a fifteenth of the packets.
const WINDOW: usize = 10;

/// The moving mean of the measured delay over the packets with the paper's step, as Figure 3; none if
/// nothing was measured.
pub(super) fn step(data: Data<'_>, size: (u32, u32), id: &str) -> Option<Figure> {
    let series = SERIES_OF.map(|technique| moving(&means(data, technique)));
    let values = || series.iter().flatten().map(|(_, value)| *value);
    let step = f64::from(STEP_NS);
    let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let room = 0.05 * step;
    let packets = f64::from(data.packets);
    let x = Axis::of_numbers("packets", 0.0..packets, ticks(size));
    let y = Axis::of_durations(
        "delay, above that without a step",
        least.min(0.0) - room..most.max(step) + room,
        5.0,
    );
    let caption = format!(
        "Moving means over a fifteenth of the packets, of the medians of packets in a row, of all runs with \
         a step of {STEP_NS} ns. The thin line is the step that the sender made."
    );
    let title = format!("A delay that is raised by {STEP_NS} ns for a third of the packets");
    Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        let (begin, end) = (packets / 3.0, packets * 2.0 / 3.0);
        let truth =
            [(0.0, 0.0), (begin, 0.0), (begin, step), (end, step), (end, 0.0), (packets, 0.0)];
        let truth = truth.map(|(packet, delay)| (packet, y.at(delay))).to_vec();
        chart.draw_series([PathElement::new(truth, INK)])?;
        for (points, colour) in series.iter().zip(SERIES.iter().skip(FIRST_SERIES)) {
            let points = points.iter().map(|(packet, delay)| (*packet, y.at(*delay)));
            chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
        }
        Ok(())
    }))
}

/// The measured delay in each block of a technique with the paper's step, minus the delay around the step:
/// begin of the block, and mean of all runs.
fn means(data: Data<'_>, technique: &str) -> Vec<(f64, f64)> {
    let design = &data.runs.design;
    let wanted = Some((technique.to_owned(), STEP_NS));
    let cell = design.cells().iter().position(|cell| of(design, cell) == wanted);
    let runs = cell.into_iter().flat_map(|cell| data.runs.of_cell(cell));
    let runs: Vec<_> = runs.filter_map(|run| above(run, data.packets.into())).collect();
    let blocks = runs.iter().map(Vec::len).min().unwrap_or(0);
    let block = |place: usize| {
        let all: Vec<_> = runs.iter().map(|run| run[place].1).collect();
        Some((runs.first()?[place].0, mean(&all)?))
    };
    (0..blocks).filter_map(block).collect()
}

/// The measured delays of a run, above their mean around the step.
fn above(run: &[Block], packets: u64) -> Option<Vec<(f64, f64)>> {
    let around = run.iter().filter(|block| !is_raised(block.first, packets));
    let base = mean(&around.filter_map(|block| block.delay_median_ns).collect::<Vec<_>>())?;
    let point = |block: &Block| Some((real(block.first), block.delay_median_ns? - base));
    Some(run.iter().filter_map(point).collect())
}

/// Means over [`WINDOW`] blocks, each where the middle of them begins.
fn moving(blocks: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let point = |window: &[(f64, f64)]| {
        let values: Vec<_> = window.iter().map(|(_, value)| *value).collect();
        Some((window[WINDOW / 2].0, mean(&values)?))
    };
    blocks.windows(WINDOW).filter_map(point).collect()
}
