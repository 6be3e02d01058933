//! The figures of the experiment.

use plotters::prelude::*;

use super::findings::{CellFindings, PassiveDelayResult};
use super::measurements::TASKS;
use super::paper::{Published, Question};
use crate::experiment::Estimate;
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::{FIRST_SERIES, Figure, Frame, SERIES, ticks};
use wirestamp_report::format::{length, real};

/// Errors in nanoseconds over what is varied.
type Points = Vec<(f64, f64)>;

/// The delay of which a figure shows the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delay {
    Least,
    Mean,
    Longest,
}

impl Delay {
    /// In a word, as it follows "error of the ... delay".
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Least => "least",
            Self::Mean => "mean",
            Self::Longest => "longest",
        }
    }

    /// Among the three.
    const fn place(self) -> usize {
        match self {
            Self::Least => 0,
            Self::Mean => 1,
            Self::Longest => 2,
        }
    }

    const fn here(self, cell: &CellFindings) -> Option<Estimate> {
        match self {
            Self::Least => cell.min_error_ns,
            Self::Mean => cell.mean_error_ns,
            Self::Longest => cell.max_error_ns,
        }
    }

    /// In microseconds.
    const fn published(self, row: &Published) -> Option<f64> {
        match self {
            Self::Least => row.min_error_us,
            Self::Mean => Some(row.mean_error_us),
            Self::Longest => Some(row.max_error_us),
        }
    }
}

/// Figures of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) question: Question,
    /// Of the second section, in thousandths.
    pub(super) load: u32,
    pub(super) delay: Delay,
}

/// The names of the series, in the order of their colours.
pub(super) const NAMES: [&str; 3] = ["here, 1 task", "here, 4 tasks", "the paper"];

impl View {
    /// The view of a figure's identity: question, load and delay.
    pub(super) fn named(id: &str) -> Option<Self> {
        let [question, load, delay] = id.split('-').collect::<Vec<_>>().try_into().ok()?;
        Some(Self {
            question: Question::ALL.into_iter().find(|it| it.name() == question)?,
            load: load.parse().ok()?,
            delay: [Delay::Least, Delay::Mean, Delay::Longest]
                .into_iter()
                .find(|it| it.name() == delay)?,
        })
    }

    /// The errors over what the section varies, as Figures 3-18 to 3-20, 3-26, 3-32 and 3-38; none if
    /// nothing was measured.
    pub(super) fn draw(
        self,
        findings: &PassiveDelayResult,
        size: (u32, u32),
        id: &str,
    ) -> Option<Figure> {
        let series = self.series(findings);
        series[..TASKS.len()].iter().flatten().next()?;
        let points = || series.iter().flatten();
        let most = points().map(|(_, error)| *error).fold(1.0, f64::max);
        let least = points().map(|(_, error)| *error).fold(most, f64::min);
        let end = points().map(|(at, _)| *at).fold(1.0, f64::max);
        let ticks = if self.question == Question::Precision { end } else { ticks(size) };
        let x = Axis::of_numbers(self.varied(), 0.0..end * 1.04, ticks);
        let what = format!("error of the {} delay", self.delay.name());
        let y = Axis::of_durations_by_decade(&what, least..most);
        let title = format!("{what} over the {}", self.varied());
        let caption = match self.question {
            Question::Precision => "Each dot is a test.".to_owned(),
            _ => "Each dot here is the mean of the runs, whatever their signs.".to_owned(),
        };
        Some(Frame { id, size, title, caption }.draw(&x, &y, |chart| {
            for (points, colour) in series.iter().zip(SERIES.iter().skip(FIRST_SERIES)) {
                let at = points.iter().map(|(at, error)| (x.at(*at), Axis::decade(*error)));
                chart.draw_series(LineSeries::new(at.clone(), colour.stroke_width(2)))?;
                chart.draw_series(at.map(|at| Circle::new(at, 4, colour.filled())))?;
            }
            Ok(())
        }))
    }

    /// Ours with one task and with four, and the paper's.
    fn series(self, findings: &PassiveDelayResult) -> [Points; 3] {
        let [one, four] = TASKS.map(|tasks| self.here(findings, tasks));
        [one, four, self.published(findings)]
    }

    fn here(self, findings: &PassiveDelayResult, tasks: u32) -> Points {
        let cells = findings.of_question(self.question).filter(|cell| cell.tasks == tasks);
        cells.filter(|cell| self.has(cell.load)).flat_map(|cell| self.points(cell)).collect()
    }

    /// A point for the cell; where only one cell is repeated, one for each run.
    fn points(self, cell: &CellFindings) -> Points {
        let mean =
            |at: f64| self.delay.here(cell).map(|error| (at, error.mean)).into_iter().collect();
        match self.question {
            Question::Precision => {
                let errors = cell.errors_ns.iter().map(|errors| errors[self.delay.place()]);
                (1..).map(f64::from as fn(u32) -> f64).zip(errors).collect()
            }
            Question::Frames => mean(cell.frame.into()),
            Question::Duration => mean(cell.seconds),
        }
    }

    fn published(self, findings: &PassiveDelayResult) -> Points {
        let rows = findings.published.iter().filter(|row| row.question == self.question);
        let rows: Vec<_> = rows.filter(|row| self.has(row.load)).collect();
        let point = |(index, row): (usize, &&Published)| {
            let at = match self.question {
                // The tests in their order.
                Question::Precision => real(length(&rows[..=index])),
                Question::Frames => f64::from(row.frame),
                Question::Duration => f64::from(row.seconds),
            };
            Some((at, self.delay.published(row)? * 1e3))
        };
        rows.iter().enumerate().filter_map(point).collect()
    }

    fn has(self, load: u32) -> bool {
        self.question != Question::Frames || load == self.load
    }

    const fn varied(self) -> &'static str {
        match self.question {
            Question::Precision => "number of the test",
            Question::Frames => "frame size (bytes)",
            Question::Duration => "duration (s)",
        }
    }
}
