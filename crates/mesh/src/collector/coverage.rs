//! When nobody looked: what one point saw then says nothing of the path.

use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

/// The stretches of time in which it is not known what passed a point: its probe did not run, or gave up what
/// it knew.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    gaps: [Vec<Gap>; 2],
}

/// From when on it is not known, and from when on it is again.
type Gap = (Time<Utc>, Time<Utc>);

impl Coverage {
    /// It is not known what passed a point in a stretch of time.
    pub(super) fn leave_out(&mut self, point: Point, from: Time<Utc>, until: Time<Utc>) {
        if from < until {
            self.gaps[super::side(point)].push((from, until));
        }
    }

    /// Whether all that passed a point from one time until another is known, both included.
    pub(super) fn covers(&self, point: Point, from: Time<Utc>, until: Time<Utc>) -> bool {
        let apart = |gap: &Gap| until < gap.0 || from >= gap.1;
        self.gaps[super::side(point)].iter().all(apart)
    }

    /// Lets go of what has to do only with what passed before a time.
    pub(super) fn forget(&mut self, before: Time<Utc>) {
        self.gaps.iter_mut().for_each(|gaps| gaps.retain(|(_, until)| *until > before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_at_one_point_and_ends_where_somebody_looks_again() {
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
