//! Processing of a task's batches, by kind of measurement.

use std::ops::RangeInclusive;
use std::time::SystemTime;

use crate::protocol::{Count, Counts, Flows, ObservationBatch};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Config, Point};

use super::{
    Delivered, Delivery, Flow, Pair, PointResults, Progress, Settled, SinglePoint, Timing, WINDOW,
    side,
};
use crate::task::{Measure, VOLUME, interval};

/// Max time that a probe's clock may be ahead: the other point waits until its own clock catches up.
const MAX_CLOCK_LEAD: Span = Span::from_secs(3600);
const AHEAD_OF_TIME: &str = "the clock of the probe is more than an hour ahead";

/// Max distance of counts from the end of their batch, even if a clock was set.
const MAX_COUNT_DISTANCE: Span = Span::from_secs(24 * 3600);

fn timing() -> Timing {
    Timing { window: WINDOW, matching: Config::default() }
}

/// Processing state of a task.
pub(super) enum Processor {
    /// Observations of two points.
    Pair(Box<Pair>),
    /// Counts of one point, per interval.
    Counts(SinglePoint, Span),
    /// Flows of one point.
    Flows(SinglePoint),
}

impl Processor {
    /// Continues from the stored progress.
    pub(super) fn new(measure: &Measure, progress: &Progress) -> Self {
        let Progress { settled_until, delivered, .. } = *progress;
        let acknowledged = delivered.map(|it| it.acknowledged);
        match measure {
            Measure::Volume { .. } => {
                Self::Counts(SinglePoint::new(settled_until, acknowledged[0]), VOLUME)
            }
            Measure::Traffic { every, .. } => {
                Self::Counts(SinglePoint::new(settled_until, acknowledged[0]), interval(*every))
            }
            Measure::Flows { .. } => Self::Flows(SinglePoint::new(settled_until, acknowledged[0])),
            Measure::PassiveDelay(_) | Measure::ReportedDelay(_) | Measure::ActiveDelay(_) => {
                let mut pair = Pair::new(timing(), settled_until, acknowledged);
                if matches!(measure, Measure::ActiveDelay(_)) {
                    pair = pair.with_answers();
                }
                for point in [Point::A, Point::B] {
                    let Delivered { acknowledged, is_unknown, .. } = delivered[side(point)];
                    if is_unknown {
                        pair.number_anew(point, acknowledged);
                    }
                }
                Self::Pair(Box::new(pair))
            }
        }
    }

    /// Takes the next batch of a point. A malformed batch is skipped, its time counts as not observed, and the reason
    /// is returned.
    pub(super) fn take(
        &mut self,
        point: Point,
        number: u64,
        message: &[u8],
    ) -> (Delivery, Option<String>) {
        let taken = match self {
            Self::Pair(pair) => seen(message).map(|seen| pair.take(point, number, &seen)),
            Self::Counts(single, interval) => counts(message, *interval)
                .map(|(until, point_results)| single.take(number, until, point_results)),
            Self::Flows(single) => flows(message)
                .map(|(until, point_results)| single.take(number, until, point_results)),
        };
        match taken {
            Ok(delivery) => (delivery, None),
            Err(why) => (self.leave_out(point, number), Some(why)),
        }
    }

    fn leave_out(&mut self, point: Point, number: u64) -> Delivery {
        match self {
            Self::Pair(pair) => pair.leave_out(point, number),
            Self::Counts(single, _) | Self::Flows(single) => single.leave_out(number),
        }
    }

    /// Skips batches that the probe dropped, with `packets` packets before `until`.
    pub(super) fn give_up(
        &mut self,
        point: Point,
        numbers: &RangeInclusive<u64>,
        until: Time<Utc>,
        packets: u64,
    ) -> Delivery {
        // A later time would block the other point forever.
        let until = until.min(latest());
        match self {
            Self::Pair(pair) => pair.give_up(point, numbers, until, packets),
            Self::Counts(single, _) | Self::Flows(single) => {
                single.give_up(numbers, until, packets)
            }
        }
    }

    /// The next batch of a point follows number `behind`, whatever came before.
    pub(super) fn number_anew(&mut self, point: Point, behind: u64) {
        match self {
            Self::Pair(pair) => pair.number_anew(point, behind),
            Self::Counts(single, _) | Self::Flows(single) => single.number_anew(behind),
        }
    }

    /// Whether batches of a point should wait until the other point catches up.
    pub(super) fn is_ahead(&self, point: Point) -> bool {
        match self {
            Self::Pair(pair) => pair.is_ahead(point),
            Self::Counts(..) | Self::Flows(_) => false,
        }
    }

    /// Whether the batches of a point before the next one are missing.
    pub(super) fn is_unknown(&self, point: Point) -> bool {
        match self {
            Self::Pair(pair) => pair.is_unknown(point),
            Self::Counts(..) | Self::Flows(_) => false,
        }
    }

    /// New final results, if any.
    pub(super) fn settle(&mut self) -> Option<Settled> {
        match self {
            Self::Pair(pair) => pair.settle(),
            Self::Counts(single, _) | Self::Flows(single) => single.settle(),
        }
    }
}

fn seen(message: &[u8]) -> Result<ObservationBatch, String> {
    let seen = ObservationBatch::decode(message).map_err(|why| why.to_string())?;
    can_be(seen.complete_until)?;
    // Missed packets delay the results of the other point until the end of the loss.
    seen.missed.iter().try_for_each(|it| can_be(it.until))?;
    let mut missed = seen.answers.iter().flat_map(|answers| &answers.missed);
    missed.try_for_each(|it| can_be(it.until))?;
    Ok(seen)
}

fn counts(message: &[u8], interval: Span) -> Result<(Time<Utc>, PointResults), String> {
    let Counts { counts, complete_until } =
        Counts::decode(message).map_err(|why| why.to_string())?;
    can_be(complete_until)?;
    let is_far = |it: &Count| (it.begin - complete_until).abs() > MAX_COUNT_DISTANCE;
    if let Some(count) = counts.iter().find(|count| is_far(count)) {
        return Err(format!("its count of {:?} is far from the end of the batch", count.begin));
    }
    // Other intervals could not be added to those of the task.
    let is_none = |it: &Count| it.begin.interval_begin(interval) != it.begin;
    if let Some(count) = counts.iter().find(|count| is_none(count)) {
        return Err(format!("no interval of the task begins at {:?}", count.begin));
    }
    Ok((complete_until, PointResults { counts, flows: Vec::new() }))
}

fn flows(message: &[u8]) -> Result<(Time<Utc>, PointResults), String> {
    let Flows { reports, complete_until } =
        Flows::decode(message).map_err(|why| format!("cannot read flows: {why}"))?;
    can_be(complete_until)?;
    let flows = reports.into_iter().map(Flow::read).collect::<Result<Vec<_>, _>>();
    let flows = flows.map_err(|why| why.to_string())?;
    flows.iter().try_for_each(|it| can_be(it.last))?;
    Ok((complete_until, PointResults { counts: Vec::new(), flows }))
}

/// Whether a time is not too far in the future.
fn can_be(complete_until: Time<Utc>) -> Result<(), String> {
    if complete_until <= latest() { Ok(()) } else { Err(AHEAD_OF_TIME.to_owned()) }
}

fn latest() -> Time<Utc> {
    let now = Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(0));
    now + MAX_CLOCK_LEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_in_the_future_are_rejected() {
        let decode = |last_ns: i64| {
            let report = format!(
                r#"{{"src":"192.0.2.1","dst":"192.0.2.2","sport":5,"dport":6,"protocol":17,
                    "first_ns":1,"last_ns":{last_ns},"packets":3}}"#
            );
            let complete_until = Time::from_nanos(2);
            flows(&Flows { reports: vec![report], complete_until }.encode())
        };
        assert_eq!(decode(3).unwrap().1.flows.len(), 1);
        assert_eq!(decode(i64::MAX).unwrap_err(), AHEAD_OF_TIME);
    }

    #[test]
    fn counts_match_intervals_of_the_task() {
        let at = |millis: i64| Time::from_nanos(millis * 1_000_000);
        let decode = |begin| {
            let (packets, bytes, missed, watched) = (3, 300, 0, Span::from_secs(1));
            let count = Count { begin, packets, bytes, missed, watched };
            let message = Counts { counts: vec![count], complete_until: at(20_000) }.encode();
            counts(&message, Span::from_secs(5))
        };
        for begin in [at(0), at(15_000), at(-5000)] {
            assert_eq!(decode(begin).unwrap().1.counts[0].begin, begin);
        }
        for begin in [at(1000), at(4999), at(-1)] {
            assert!(decode(begin).unwrap_err().starts_with("no interval of the task begins at"));
        }
        assert!(decode(at(-100_000_000)).unwrap_err().contains("far from the end of the batch"));
    }
}
