//! The figures of the experiment.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::findings::TimersResult;
use super::measured::{Measured, Moment};
use super::paper::{Published, PublishedCost, Timer};
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::{Drawn, FIRST_SERIES, Figure, Frame, SERIES, letters, ticks};
use wirestamp_report::format::{duration, real};

/// Pixels of width for each slice of the course: its longest read is a dot of this size.
const SLICE_PIXELS: u32 = 6;

/// The cost of each of the paper's timers in the course of the experiment, as Figures 2 and 3; none
/// if nothing was measured.
pub(super) fn course(findings: &TimersResult, size: (u32, u32), id: &str) -> Option<Figure> {
    let measured: Vec<&Measured> = shown(findings).collect();
    let all = || measured.iter().flat_map(|way| &way.course);
    let end = all().map(|moment| moment.at).reduce(f64::max)?;
    let least = all().map(|moment| moment.usual).reduce(f64::min)?;
    let most = all().map(|moment| moment.longest).reduce(f64::max)?;

    let x = Axis::of_durations("time spent on reads", 0.0..(end * 1e9).max(1e3), ticks(size));
    let y = Axis::of_durations_by_decade("cost of a read", least..most);
    let caption = "Lines: the mean cost of a read without the peaks. Dots: the longest read in \
                   each slice of time."
        .to_owned();
    let title = "Cost of a read of each time source in the course of the experiment".to_owned();
    let slices = usize::try_from(size.0 / SLICE_PIXELS).unwrap_or(1);
    Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        for (way, colour) in measured.iter().zip(SERIES.iter().skip(FIRST_SERIES)) {
            let course = thinned(&way.course, slices);
            let longest = |moment: &Moment| (x.at(moment.at * 1e9), Axis::decade(moment.longest));
            let dot = colour.mix(0.45).filled();
            chart.draw_series(course.iter().map(|m| Circle::new(longest(m), 2, dot)))?;
            let usual = course.iter().map(|m| (x.at(m.at * 1e9), Axis::decade(m.usual)));
            chart.draw_series(LineSeries::new(usual, colour.stroke_width(2)))?;
        }
        Ok(())
    }))
}

/// The ways that [`course`] draws, in its order.
pub(super) fn shown(findings: &TimersResult) -> impl Iterator<Item = &Measured> {
    findings.ways.iter().filter(|way| way.timer.is_some() && !way.course.is_empty())
}

/// Reduces the course to at most `slices` moments, each from the same number of moments: mean of `usual`, and
/// longest read.
fn thinned(course: &[Moment], slices: usize) -> Vec<Moment> {
    let together = course.len().div_ceil(slices.max(1)).max(1);
    let of_slice = |moments: &[Moment]| {
        let count = real(u64::try_from(moments.len()).unwrap_or(u64::MAX));
        let mean = |of: fn(&Moment) -> f64| moments.iter().map(of).sum::<f64>() / count;
        let longest = moments.iter().map(|moment| moment.longest).fold(0.0, f64::max);
        Moment { at: mean(|moment| moment.at), usual: mean(|moment| moment.usual), longest }
    };
    course.chunks(together).map(of_slice).collect()
}

/// Mean and standard deviation of each timer here and in the paper's tables.
pub(super) fn beside_the_paper(findings: &TimersResult, size: (u32, u32), id: &str) -> Figure {
    let places = places(findings);
    let costs = || places.iter().flatten();
    let least = costs().map(|cost| cost.mean - cost.stddev).fold(f64::INFINITY, f64::min);
    let most = costs().map(|cost| cost.mean + cost.stddev).fold(0.0, f64::max);
    let x = Axis::of_names(Timer::ALL.iter().map(|timer| timer.name()));
    let y = Axis::of_durations_by_decade("cost of a read", least..most);
    let caption =
        "Dots: the mean without peaks. Bars: one standard deviation to either side.".to_owned();
    let title = "Cost of a read of each time source here and in the paper".to_owned();
    Frame { id, size, title, caption }.draw(&x, &y, |chart| {
        for (place, (costs, colour)) in
            (0_i32..).zip(places.iter().zip(SERIES.iter().skip(FIRST_SERIES)))
        {
            for (timer, cost) in Timer::ALL.into_iter().enumerate().filter_map(|(row, timer)| {
                Some((row, costs.iter().find(|cost| cost.timer == timer)?))
            }) {
                let middle = x.ticks.get(timer).map_or(0.0, |(at, _)| *at);
                let at = middle + 0.24 * f64::from(place - 1) - 0.06;
                dot_and_bar(chart, at, *cost, *colour)?;
            }
        }
        Ok(())
    })
}

/// The costs here, and of each table.
fn places(findings: &TimersResult) -> [Vec<PublishedCost>; 3] {
    let here = Timer::ALL.into_iter().filter_map(|timer| {
        let cost = findings.cost(timer)?;
        Some(PublishedCost { timer, mean: cost.mean, stddev: cost.stddev })
    });
    let [via, athlon] = findings.published.map(|Published { costs, .. }| costs.to_vec());
    [here.collect(), via, athlon]
}

fn dot_and_bar(
    chart: &mut wirestamp_report::figures::Chart<'_, '_>,
    at: f64,
    cost: PublishedCost,
    colour: RGBColor,
) -> Drawn {
    let PublishedCost { mean, stddev, .. } = cost;
    let y = Axis::decade(mean);
    let ends = [mean - stddev, mean + stddev].map(|ns| (at, Axis::decade(ns)));
    chart.draw_series([PathElement::new(ends.to_vec(), colour.stroke_width(2))])?;
    let label =
        Text::new(duration(mean), (8, 0), letters().pos(Pos::new(HPos::Left, VPos::Center)));
    chart.draw_series([EmptyElement::at((at, y))
        + Circle::new((0, 0), 4, colour.filled())
        + label])?;
    Ok(())
}
