//! Statistics over the journeys of packets.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_capture::layers::{End, Facts, Journey, Point, Reasons};
use wirestamp_clock::Span;
use wirestamp_metrics::Distribution;

/// The time between two points.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Segment {
    /// The point where it begins.
    pub(super) from: Point,
    /// The point where it ends.
    pub(super) to: Point,
    /// Packets that passed both.
    pub(super) count: u64,
    /// Share of the total time spent here by packets that reached the last point, 0 to 1. Null if no packet did.
    pub(super) share: Option<f64>,
    /// Time of the packets between the two points, in nanoseconds.
    #[serde(rename = "owd_ns")]
    pub(super) delay: Distribution,
    /// Sum of these times over packets that reached the last point, in nanoseconds.
    #[serde(skip)]
    spent: u64,
}

/// How a packet's journey ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(super) struct PacketOutcome {
    /// The end of its path.
    pub(super) end: End,
    /// The last point that it passed. Null if it passed none.
    pub(super) point: Option<Point>,
    /// The kernel's drop reason. Null for packets that were not dropped.
    pub(super) reason: Option<String>,
}

/// Statistics over all journeys.
#[derive(Debug)]
pub(super) struct LayerStatistics {
    /// Between each point and the next.
    segments: Vec<Segment>,
    /// From each point to the last, in order: forwarded packets pass no socket.
    totals: Vec<Segment>,
    outcomes: BTreeMap<PacketOutcome, u64>,
    /// Packets stamped by the network card.
    pub(super) stamped_by_card: u64,
}

impl LayerStatistics {
    /// Empty statistics of the observed points.
    pub(super) fn new(facts: &Facts) -> Self {
        let points: Vec<_> = facts.points.iter().map(|seen| seen.point).collect();
        let segments = points.windows(2).map(|ends| Segment::between(ends[0], ends[1])).collect();
        let totals = match points[..] {
            [ref before @ .., last] => {
                before.iter().map(|&from| Segment::between(from, last)).collect()
            }
            [] => Vec::new(),
        };
        Self { segments, totals, outcomes: BTreeMap::new(), stamped_by_card: 0 }
    }

    pub(super) fn record(&mut self, journey: &Journey, reasons: &Reasons) {
        let is_whole = self.totals.last().is_some_and(|last| last.of(journey).is_some());
        for segment in &mut self.segments {
            segment.record(journey, is_whole);
        }
        self.totals.iter_mut().for_each(|whole| whole.record(journey, is_whole));
        *self.outcomes.entry(PacketOutcome::of(journey, reasons)).or_default() += 1;
        self.stamped_by_card += u64::from(journey.card.is_some());
    }

    /// Between each point and the next, then the total: from the first point with packets that reached the
    /// last one.
    pub(super) fn segments(&self) -> Vec<Segment> {
        let spent = self.segments.iter().map(|segment| segment.spent).sum();
        let share_of = |part: &Segment| share(part.spent, spent).filter(|_| part.count > 0);
        let parts = self.segments.iter().map(|part| part.with_share(share_of(part)));
        let whole = self.totals.iter().find(|whole| whole.count > 0).or(self.totals.first());
        parts.chain(whole.map(|whole| whole.with_share((spent > 0).then_some(1.0)))).collect()
    }

    /// Outcomes with their numbers of packets, most frequent first.
    pub(super) fn outcomes(&self) -> Vec<(&PacketOutcome, u64)> {
        let mut outcomes: Vec<_> =
            self.outcomes.iter().map(|(outcome, &packets)| (outcome, packets)).collect();
        outcomes.sort_by_key(|&(_, packets)| std::cmp::Reverse(packets));
        outcomes
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

    /// A packet's time in the segment in nanoseconds, if it passed both ends.
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

impl PacketOutcome {
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
    use wirestamp_capture::layers::{Direction, ObservedPoint};

    use super::*;

    fn facts(points: &[Point]) -> Facts {
        Facts {
            interface: "eth0".into(),
            direction: Direction::In,
            filter: None,
            clock: "CLOCK_MONOTONIC",
            granularity_ns: 1,
            points: points
                .iter()
                .map(|&point| ObservedPoint { point, places: Vec::new() })
                .collect(),
            notes: Vec::new(),
        }
    }

    fn journey(times: [Option<u64>; 4], end: End) -> Journey {
        let (direction, own) = (Direction::In, [0; 4]);
        Journey { direction, times, own, card: None, length: 60, end, reason: 2, head: Vec::new() }
    }

    fn counts(statistics: &LayerStatistics) -> Vec<(String, u64, Option<f64>)> {
        let segments = statistics.segments().into_iter();
        segments.map(|segment| (segment.name(), segment.count, segment.share)).collect()
    }

    #[test]
    fn shares_are_of_packets_that_reached_the_application() {
        let mut statistics = LayerStatistics::new(&facts(&Direction::In.points()));
        let reasons = Reasons::default();
        statistics
            .record(&journey([Some(100), Some(110), Some(130), Some(200)], End::Read), &reasons);
        statistics
            .record(&journey([Some(100), Some(900), Some(950), None], End::Dropped), &reasons);
        statistics.record(&journey([None, Some(900), None, None], End::Consumed), &reasons);
        let expected = [
            ("driver to stack", 2, 0.1),
            ("stack to socket", 2, 0.2),
            ("socket to application", 1, 0.7),
            ("driver to application", 1, 1.0),
        ];
        let expected = expected.map(|(name, count, share)| (name.to_owned(), count, Some(share)));
        assert_eq!(counts(&statistics), expected);
        assert_eq!(statistics.segments()[0].delay.summary().unwrap().max, 800);
        let dropped = PacketOutcome {
            end: End::Dropped,
            point: Some(Point::Socket),
            reason: Some("0x2".to_owned()),
        };
        assert!(statistics.outcomes().contains(&(&dropped, 1)), "{:?}", statistics.outcomes());
        assert_eq!(statistics.outcomes().len(), 3);
    }

    #[test]
    fn total_begins_at_the_first_point_with_packets() {
        let mut statistics = LayerStatistics::new(&facts(&Direction::Out.points()));
        let sent = Journey {
            direction: Direction::Out,
            ..journey([None, Some(100), Some(190), Some(200)], End::Sent)
        };
        statistics.record(&sent, &Reasons::default());
        let [none, queued, _, whole] = &counts(&statistics)[..] else { panic!("{statistics:?}") };
        assert_eq!(none, &("socket to queue".to_owned(), 0, None));
        assert_eq!(queued, &("queue to driver".to_owned(), 1, Some(0.9)));
        assert_eq!(whole, &("queue to sent".to_owned(), 1, Some(1.0)));
    }

    #[test]
    fn unobserved_point_is_left_out() {
        let mut statistics =
            LayerStatistics::new(&facts(&[Point::Driver, Point::Stack, Point::Application]));
        statistics
            .record(&journey([Some(1), Some(2), None, Some(4)], End::Read), &Reasons::default());
        let names: Vec<_> = statistics.segments().iter().map(Segment::name).collect();
        assert_eq!(names, ["driver to stack", "stack to application", "driver to application"]);
        assert!(LayerStatistics::new(&facts(&[Point::Stack])).segments().is_empty());
    }
}
