//! Times in which a point was not observed: the other point's packets are then undetermined.

use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

/// Gaps of both points: the probe did not run, or dropped its observations.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    gaps: [Vec<Gap>; 2],
}

/// Begin and end of a gap.
type Gap = (Time<Utc>, Time<Utc>);

impl Coverage {
    /// Adds a gap.
    pub(super) fn leave_out(&mut self, point: Point, from: Time<Utc>, until: Time<Utc>) {
        if from < until {
            self.gaps[super::side(point)].push((from, until));
        }
    }

    /// Whether a point was observed during all of a time range, ends included.
    pub(super) fn covers(&self, point: Point, from: Time<Utc>, until: Time<Utc>) -> bool {
        let apart = |gap: &Gap| until < gap.0 || from >= gap.1;
        self.gaps[super::side(point)].iter().all(apart)
    }

    /// Removes gaps that ended before a time.
    pub(super) fn forget(&mut self, before: Time<Utc>) {
        self.gaps.iter_mut().for_each(|gaps| gaps.retain(|(_, until)| *until > before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_affects_one_point_until_its_end() {
        let at = Time::from_nanos;
        let mut coverage = Coverage::default();
        coverage.leave_out(Point::B, at(10), at(20));
        coverage.leave_out(Point::B, at(30), at(30));
        let covers = |point, from, until| coverage.covers(point, at(from), at(until));
        assert!(covers(Point::B, 0, 9) && covers(Point::B, 20, 40) && covers(Point::A, 0, 40));
        assert!(!covers(Point::B, 0, 10) && !covers(Point::B, 19, 40) && !covers(Point::B, 0, 40));
        coverage.forget(at(19));
        assert!(!coverage.covers(Point::B, at(12), at(13)));
        coverage.forget(at(20));
        assert!(coverage.covers(Point::B, at(0), at(40)));
    }
}
