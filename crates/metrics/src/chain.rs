//! Correlation of more than two points in a row.

use wirestamp_clock::{DifferenceClock, Time, Utc};

use crate::{CaptureLoss, Config, Correlator, Observation, Outcome, Point};

/// Segment of a [`Chain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// From the point with this number to the next.
    Hop(usize),
    /// From the first point to the last.
    Whole,
}

/// Points that packets pass one after the other, with a correlator for each two neighbours, and one for the first and
/// the last.
///
/// For each packet this gives the delay of each hop, or the hop that lost it. The hops of a packet that passed all
/// points add up to the whole, within the clock errors. Outcomes of one packet have the same identity.
///
/// Two points are a chain of one hop, which is not reported again as the whole.
pub struct Chain {
    hops: Vec<Correlator>,
    whole: Option<Correlator>,
}

impl Chain {
    /// A chain of `points` points, at least two. Its correlators share the memory equally.
    #[must_use]
    pub fn new(points: usize, config: Config) -> Self {
        let hops = points.max(2) - 1;
        let correlators = if hops > 1 { hops + 1 } else { 1 };
        let config = Config { memory: config.memory / correlators, ..config };
        Self {
            hops: (0..hops).map(|_| Correlator::new(config)).collect(),
            whole: (hops > 1).then(|| Correlator::new(config)),
        }
    }

    /// [`Correlator::set_difference_clock`], for points that are all on one host.
    pub fn set_difference_clock(&mut self, clock: DifferenceClock) {
        for correlator in self.hops.iter_mut().chain(&mut self.whole) {
            correlator.set_difference_clock(clock);
        }
    }

    /// Records the next observation of the point with this number, from 0 ([`Correlator::observe`]).
    ///
    /// # Panics
    ///
    /// There is no such point.
    pub fn observe(
        &mut self,
        point: usize,
        observation: Observation,
        sink: &mut impl FnMut(Segment, Outcome),
    ) {
        self.each_at(point, |segment, point, correlator| {
            correlator.observe(point, observation, &mut |outcome| sink(segment, outcome));
        });
    }

    /// Records a capture loss at this point ([`Correlator::missed`]).
    ///
    /// # Panics
    ///
    /// There is no such point.
    pub fn missed(&mut self, point: usize, missed: CaptureLoss) {
        self.each_at(point, |_, point, correlator| correlator.missed(point, missed));
    }

    /// Records that the point has delivered all observations before `time` ([`Correlator::advance`]).
    ///
    /// # Panics
    ///
    /// There is no such point.
    pub fn advance(
        &mut self,
        point: usize,
        time: Time<Utc>,
        sink: &mut impl FnMut(Segment, Outcome),
    ) {
        self.each_at(point, |segment, point, correlator| {
            correlator.advance(point, time, &mut |outcome| sink(segment, outcome));
        });
    }

    /// Decides all open observations.
    pub fn finish(self, sink: &mut impl FnMut(Segment, Outcome)) {
        for (hop, correlator) in self.hops.into_iter().enumerate() {
            correlator.finish(&mut |outcome| sink(Segment::Hop(hop), outcome));
        }
        if let Some(whole) = self.whole {
            whole.finish(&mut |outcome| sink(Segment::Whole, outcome));
        }
    }

    /// Calls each correlator of a point, with its side.
    fn each_at(&mut self, point: usize, mut call: impl FnMut(Segment, Point, &mut Correlator)) {
        let last = self.hops.len();
        assert!(point <= last, "a chain of {} points has no point {point}", last + 1);
        if let Some(before) = point.checked_sub(1) {
            call(Segment::Hop(before), Point::B, &mut self.hops[before]);
        }
        if point < last {
            call(Segment::Hop(point), Point::A, &mut self.hops[point]);
        }
        if let Some(whole) = &mut self.whole {
            if point == 0 {
                call(Segment::Whole, Point::A, whole);
            } else if point == last {
                call(Segment::Whole, Point::B, whole);
            }
        }
    }
}
