//! Journeys, added up.

use std::collections::BTreeMap;

use serde::Serialize;
use wirestamp_capture::layers::{End, Facts, Journey, Point, Reasons};
use wirestamp_clock::Span;
use wirestamp_metrics::Distribution;

/// The time between two points.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Segment {
    pub(super) from: Point,
    pub(super) to: Point,
    /// Packets that came to both.
    pub(super) count: u64,
    /// The part of all time that was spent here, by the packets that came to the last point; 0 to 1.
    pub(super) share: Option<f64>,
    #[serde(rename = "owd_ns")]
    pub(super) delay: Distribution,
    /// The sum of these times, of the packets that came to the last point.
    #[serde(skip)]
    spent: u64,
}

/// What became of packets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Fate {
    pub(super) end: End,
    /// The last point where they were seen.
    pub(super) point: Option<Point>,
    /// Why they were dropped, by the kernel's name for it.
    pub(super) reason: Option<String>,
}

/// All journeys.
#[derive(Debug)]
pub(super) struct Tally {
    /// Between each point and the next.
    segments: Vec<Segment>,
    /// From each point to the last, the first one's first: packets that were sent on from another
    /// interface come to no socket.
    wholes: Vec<Segment>,
    fates: BTreeMap<Fate, u64>,
    /// Packets that the network card had stamped.
    pub(super) stamped_by_card: u64,
}

impl Tally {
    /// Of nothing, at the points that are seen.
    pub(super) fn new(facts: &Facts) -> Self {
        let points: Vec<_> = facts.points.iter().map(|seen| seen.point).collect();
        let segments = points.windows(2).map(|ends| Segment::between(ends[0], ends[1])).collect();
        let wholes = match points[..] {
            [ref before @ .., last] => {
                before.iter().map(|&from| Segment::between(from, last)).collect()
            }
            [] => Vec::new(),
        };
        Self { segments, wholes, fates: BTreeMap::new(), stamped_by_card: 0 }
    }

    pub(super) fn record(&mut self, journey: &Journey, reasons: &Reasons) {
        let is_whole = self.wholes.last().is_some_and(|last| last.of(journey).is_some());
        for segment in &mut self.segments {
            segment.record(journey, is_whole);
        }
        self.wholes.iter_mut().for_each(|whole| whole.record(journey, is_whole));
        *self.fates.entry(Fate::of(journey, reasons)).or_default() += 1;
        self.stamped_by_card += u64::from(journey.card.is_some());
    }

    /// Between each point and the next, and then from the first to the last: from the first one at which
    /// there were packets that came to the last.
    pub(super) fn segments(&self) -> Vec<Segment> {
        let spent = self.segments.iter().map(|segment| segment.spent).sum();
        let share_of = |part: &Segment| share(part.spent, spent).filter(|_| part.count > 0);
        let parts = self.segments.iter().map(|part| part.with_share(share_of(part)));
        let whole = self.wholes.iter().find(|whole| whole.count > 0).or(self.wholes.first());
        parts.chain(whole.map(|whole| whole.with_share((spent > 0).then_some(1.0)))).collect()
    }

    /// What became of how many packets, most first.
    pub(super) fn fates(&self) -> Vec<(&Fate, u64)> {
        let mut fates: Vec<_> = self.fates.iter().map(|(fate, &packets)| (fate, packets)).collect();
        fates.sort_by_key(|&(_, packets)| std::cmp::Reverse(packets));
        fates
    }
}

impl Segment {
    fn between(from: Point, to: Point) -> Self {
        Self { from, to, count: 0, share: None, delay: Distribution::new(), spent: 0 }
    }

    fn with_share(&self, share: Option<f64>) -> Self {
        Self { share, ..self.clone() }
    }

    pub(super) fn name(&self) -> String {
        format!("{} to {}", self.from.name(), self.to.name())
    }

    /// The nanoseconds that a packet was in it, if it was seen at both ends.
    fn of(&self, journey: &Journey) -> Option<u64> {
        journey.between(self.from, self.to)
    }

    fn record(&mut self, journey: &Journey, is_whole: bool) {
        let Some(nanos) = self.of(journey) else { return };
        self.count += 1;
        self.delay.record(Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX)));
        if is_whole {
            self.spent += nanos;
        }
    }
}

impl Fate {
    pub(super) fn of(journey: &Journey, reasons: &Reasons) -> Self {
        let reason = (journey.end == End::Dropped).then(|| reasons.name(journey.reason));
        Self { end: journey.end, point: journey.last(), reason }
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 ns, which is 104 days")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use wirestamp_capture::layers::{Direction, Seen};

    use super::*;

    fn facts(points: &[Point]) -> Facts {
        Facts {
            interface: "eth0".into(),
            direction: Direction::In,
            filter: None,
            clock: "CLOCK_MONOTONIC",
            granularity_ns: 1,
            points: points.iter().map(|&point| Seen { point, places: Vec::new() }).collect(),
            notes: Vec::new(),
        }
    }

    fn journey(times: [Option<u64>; 4], end: End) -> Journey {
        let (direction, own) = (Direction::In, [0; 4]);
        Journey { direction, times, own, card: None, length: 60, end, reason: 2, head: Vec::new() }
    }

    fn counts(tally: &Tally) -> Vec<(String, u64, Option<f64>)> {
        let segments = tally.segments().into_iter();
        segments.map(|segment| (segment.name(), segment.count, segment.share)).collect()
    }

    #[test]
    fn shares_are_those_of_packets_that_came_to_their_application() {
        let mut tally = Tally::new(&facts(&Direction::In.points()));
        let reasons = Reasons::default();
        tally.record(&journey([Some(100), Some(110), Some(130), Some(200)], End::Read), &reasons);
        tally.record(&journey([Some(100), Some(900), Some(950), None], End::Dropped), &reasons);
        tally.record(&journey([None, Some(900), None, None], End::Consumed), &reasons);
        let expected = [
            ("driver to stack", 2, 0.1),
            ("stack to socket", 2, 0.2),
            ("socket to application", 1, 0.7),
            ("driver to application", 1, 1.0),
        ];
        let expected = expected.map(|(name, count, share)| (name.to_owned(), count, Some(share)));
        assert_eq!(counts(&tally), expected);
        assert_eq!(tally.segments()[0].delay.summary().unwrap().max, 800);
        let dropped =
            Fate { end: End::Dropped, point: Some(Point::Socket), reason: Some("0x2".to_owned()) };
        assert!(tally.fates().contains(&(&dropped, 1)), "{:?}", tally.fates());
        assert_eq!(tally.fates().len(), 3);
    }

    #[test]
    fn where_no_packet_came_to_the_first_point_the_whole_begins_at_the_second() {
        let mut tally = Tally::new(&facts(&Direction::Out.points()));
        let sent = Journey {
            direction: Direction::Out,
            ..journey([None, Some(100), Some(190), Some(200)], End::Sent)
        };
        tally.record(&sent, &Reasons::default());
        let [none, queued, _, whole] = &counts(&tally)[..] else { panic!("{tally:?}") };
        assert_eq!(none, &("socket to queue".to_owned(), 0, None));
        assert_eq!(queued, &("queue to driver".to_owned(), 1, Some(0.9)));
        assert_eq!(whole, &("queue to sent".to_owned(), 1, Some(1.0)));
    }

    #[test]
    fn a_point_that_is_not_seen_here_is_left_out() {
        let mut tally = Tally::new(&facts(&[Point::Driver, Point::Stack, Point::Application]));
        tally.record(&journey([Some(1), Some(2), None, Some(4)], End::Read), &Reasons::default());
        let names: Vec<_> = tally.segments().iter().map(Segment::name).collect();
        assert_eq!(names, ["driver to stack", "stack to application", "driver to application"]);
        assert!(Tally::new(&facts(&[Point::Stack])).segments().is_empty());
    }
}
