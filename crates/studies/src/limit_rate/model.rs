//! The report's model of a probe (Figure 2-11): CPU load grows with the rate along a line until the
//! saturation point; below it nothing is lost, about it some, above it much.

use serde::Serialize;

use super::paper::TOLERATED_PERCENT;
use super::trials::Trial;
use crate::experiment::mean;

/// Where "sporadic" loss ends and "big" loss begins, in percent; the report draws no line.
pub(super) const BIG_PERCENT: f64 = 1.0;

/// An area of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Area {
    NoLoss,
    Sporadic,
    Big,
}

/// The area of a trial with this loss.
pub(super) fn area(loss_percent: f64) -> Area {
    if loss_percent <= TOLERATED_PERCENT {
        Area::NoLoss
    } else if loss_percent <= BIG_PERCENT {
        Area::Sporadic
    } else {
        Area::Big
    }
}

/// The model of a probe, fitted to trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Model {
    /// CPU load without traffic, in percent of a core.
    pub(super) idle_percent: f64,
    /// Slope: CPU load per frame per second.
    pub(super) percent_per_pps: f64,
    /// The share of the variance of the load that the line explains, 0 to 1.
    pub(super) explained: f64,
    /// Highest rate at which nothing was lost, in frames a second.
    pub(super) highest_without_loss: f64,
    /// Lowest rate with sporadic or big loss; none if there was no such trial.
    pub(super) lowest_with_loss: Option<f64>,
    /// Lowest rate with big loss.
    pub(super) lowest_with_big_loss: Option<f64>,
    /// Rate at which the line reaches the probe's full share of the core.
    pub(super) line_is_full_at: f64,
}

impl Model {
    /// Fits the line to the trials without loss (least squares); none for fewer than three such trials. The probe
    /// has the fraction 1/`parts` of its core.
    pub(super) fn fit(trials: &[Trial], parts: u8) -> Option<Self> {
        let in_area = |is: fn(Area) -> bool| {
            let these = trials.iter().filter(move |trial| is(area(trial.loss_percent())));
            these.map(Trial::rate)
        };
        let without_loss = |trial: &&Trial| area(trial.loss_percent()) == Area::NoLoss;
        let points: Vec<_> =
            trials.iter().filter(without_loss).map(|it| (it.rate(), it.load_percent())).collect();
        let line = Line::through(&points)?;
        Some(Self {
            idle_percent: line.at_0,
            percent_per_pps: line.slope,
            explained: line.explained,
            highest_without_loss: in_area(|area| area == Area::NoLoss).reduce(f64::max)?,
            lowest_with_loss: in_area(|area| area != Area::NoLoss).reduce(f64::min),
            lowest_with_big_loss: in_area(|area| area == Area::Big).reduce(f64::min),
            line_is_full_at: (100.0 / f64::from(parts.max(1)) - line.at_0) / line.slope,
        })
    }

    /// The load at a rate, by the line.
    pub(super) fn load_percent(&self, rate: f64) -> f64 {
        self.idle_percent + self.percent_per_pps * rate
    }
}

/// A line by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) at_0: f64,
    pub(super) slope: f64,
    /// The share of the variance that it explains.
    pub(super) explained: f64,
}

impl Line {
    /// None for fewer than three points, equal abscissas, or equal ordinates.
    pub(super) fn through(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < 3 {
            return None;
        }
        let (xs, ys): (Vec<_>, Vec<_>) = points.iter().copied().unzip();
        let (x, y) = (mean(&xs)?, mean(&ys)?);
        let sum =
            |of: fn(f64, f64) -> f64| points.iter().map(|(a, b)| of(a - x, b - y)).sum::<f64>();
        let (xx, xy, yy) = (sum(|a, _| a * a), sum(|a, b| a * b), sum(|_, b| b * b));
        let slope = xy / xx;
        let line = Self { at_0: y - slope * x, slope, explained: xy * xy / (xx * yy) };
        (line.slope.is_finite() && line.explained.is_finite()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(rate: u64, loss_percent: u64, load_percent: u64) -> Trial {
        Trial {
            asked: Some(rate),
            sent: rate,
            elapsed_ns: 1_000_000_000,
            interface_dropped: 0,
            kernel_dropped: 0,
            captured: rate - rate * loss_percent / 100,
            cpu_ns: load_percent * 10_000_000,
        }
    }

    #[test]
    fn the_line_is_that_of_the_trials_without_loss() {
        let trials = [
            trial(100_000, 0, 12),
            trial(200_000, 0, 22),
            trial(300_000, 0, 32),
            trial(400_000, 1, 60),
            trial(500_000, 30, 99),
        ];
        let model = Model::fit(&trials, 2).unwrap();
        assert!((model.load_percent(0.0) - 2.0).abs() < 1e-9 && model.explained > 0.999);
        assert!((model.line_is_full_at - 480_000.0).abs() < 1.0, "{model:?}");
        let found =
            (model.highest_without_loss, model.lowest_with_loss, model.lowest_with_big_loss);
        assert_eq!(found, (300_000.0, Some(400_000.0), Some(500_000.0)));
    }

    #[test]
    fn too_few_points_or_points_without_a_line_fit_nothing() {
        assert_eq!(Line::through(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(Line::through(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]), None);
        assert_eq!(Model::fit(&[trial(100_000, 50, 90); 4], 1), None);
    }
}
