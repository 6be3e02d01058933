//! The figures of the experiment.

use super::findings::InterarrivalResult;
use super::stamps::Stamps;
use crate::overhead::paper::Traffic;
use wirestamp_report::figures::Figure;
use wirestamp_report::figures::density::{Density, middle, spanning};

/// At most one value of a source in this many lies beyond each end of the axis, so that outliers do not squeeze the others.
const ONE_BEYOND_IN: usize = 200;

/// The place of a pattern's figure in the paper, and the pattern in words.
pub(super) const fn place(pattern: Traffic) -> [&'static str; 2] {
    match pattern {
        Traffic::Call => ["Figure 3", "pattern 1, 140-byte packets every 20 ms"],
        Traffic::Video => ["Figure 5", "pattern 2, 1368-byte packets every 1.37 ms"],
    }
}

/// Quantity on the axis of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The times between arrivals, as the paper has them.
    Gaps,
    /// The times between arrivals minus the times between send times.
    Errors,
}

/// Density points of several sources for one pattern; none if nothing was measured.
pub(super) fn density(
    findings: &InterarrivalResult,
    stamps: &[&Stamps],
    shown: Shown,
    size: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let (what, of): (_, fn(&Stamps) -> &[f64]) = match shown {
        Shown::Gaps => ("time between arrivals", |stamps| &stamps.gaps),
        Shown::Errors => ("time between arrivals, less the sender’s", |stamps| &stamps.errors),
    };
    let [_, pattern] = place(stamps.first()?.pattern);
    let series: Vec<_> = stamps.iter().map(|stamps| of(stamps)).collect();
    let ends = series.iter().filter_map(|series| middle(series, ONE_BEYOND_IN, ONE_BEYOND_IN));
    let on_the_axis = ends.reduce(spanning)?;
    let title = format!("Density points of the {what}, {pattern}");
    let step = findings.step_ns;
    Some(Density { what, title, unit: "times", series, shown: on_the_axis, step }.draw(size, id))
}
