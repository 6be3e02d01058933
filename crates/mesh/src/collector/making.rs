//! What becomes of what the points of a task deliver: that depends on what the task measures.

use std::ops::RangeInclusive;
use std::time::SystemTime;

use crate::protocol::{Count, Counts, Flows, ObservationBatch};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Config, Point};

use super::{
    Delivered, Delivery, Flow, News, Pair, Progress, Settled, Single, Timing, WINDOW, side,
};
use crate::task::{Measure, VOLUME, interval};

/// How far a probe's clock may be ahead: the other point waits until its own has come as far.
const AHEAD: Span = Span::from_secs(3600);
const AHEAD_OF_TIME: &str = "the clock of its probe is more than an hour ahead";

/// Counts are told of within seconds, also where a clock was set.
const FARTHEST: Span = Span::from_secs(24 * 3600);

fn timing() -> Timing {
    Timing { window: WINDOW, matching: Config::default() }
}

/// Results that are being made.
pub(super) enum Making {
    /// Of what two points saw.
    Pair(Box<Pair>),
    /// Of what one has counted, by intervals of this length.
    Counts(Single, Span),
    /// Of the flows that one has followed.
    Flows(Single),
}

impl Making {
    /// Goes on from what is stored.
    pub(super) fn new(measure: &Measure, progress: &Progress) -> Self {
        let Progress { settled_until, delivered } = *progress;
        let acknowledged = delivered.map(|it| it.acknowledged);
        match measure {
            Measure::Volume { .. } => {
                Self::Counts(Single::new(settled_until, acknowledged[0]), VOLUME)
            }
            Measure::Traffic { every, .. } => {
                Self::Counts(Single::new(settled_until, acknowledged[0]), interval(*every))
            }
            Measure::Flows { .. } => Self::Flows(Single::new(settled_until, acknowledged[0])),
            Measure::PassiveDelay(_) | Measure::ReportedDelay(_) | Measure::ActiveDelay(_) => {
                let mut pair = Pair::new(timing(), settled_until, acknowledged);
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

    /// Takes the next batch of a point, of this number. One that makes no sense is left out, and nothing is known
    /// of what it told of: why is told, too.
    pub(super) fn take(
        &mut self,
        point: Point,
        number: u64,
        message: &[u8],
    ) -> (Delivery, Option<String>) {
        let taken = match self {
            Self::Pair(pair) => seen(message).map(|seen| pair.take(point, number, &seen)),
            Self::Counts(single, interval) => {
                counts(message, *interval).map(|(until, news)| single.take(number, until, news))
            }
            Self::Flows(single) => {
                flows(message).map(|(until, news)| single.take(number, until, news))
            }
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

    /// Takes note that batches of these numbers will not come, which told of so many packets until a time.
    pub(super) fn give_up(
        &mut self,
        point: Point,
        numbers: &RangeInclusive<u64>,
        until: Time<Utc>,
        packets: u64,
    ) -> Delivery {
        // Later than any can be, it would keep the other point waiting for ever.
        let until = until.min(latest());
        match self {
            Self::Pair(pair) => pair.give_up(point, numbers, until, packets),
            Self::Counts(single, _) | Self::Flows(single) => {
                single.give_up(numbers, until, packets)
            }
        }
    }

    /// What comes next of a point is the batch behind this number, whatever came before.
    pub(super) fn number_anew(&mut self, point: Point, behind: u64) {
        match self {
            Self::Pair(pair) => pair.number_anew(point, behind),
            Self::Counts(single, _) | Self::Flows(single) => single.number_anew(behind),
        }
    }

    /// Whether batches of a point had better wait until the other has caught up.
    pub(super) fn is_ahead(&self, point: Point) -> bool {
        match self {
            Self::Pair(pair) => pair.is_ahead(point),
            Self::Counts(..) | Self::Flows(_) => false,
        }
    }

    /// What is newly settled, if there is anything.
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
    // What was missed until a time keeps waiting what the other point saw until then.
    seen.missed.iter().try_for_each(|it| can_be(it.until))?;
    Ok(seen)
}

fn counts(message: &[u8], interval: Span) -> Result<(Time<Utc>, News), String> {
    let Counts { counts, complete_until } =
        Counts::decode(message).map_err(|why| why.to_string())?;
    can_be(complete_until)?;
    let is_far = |it: &Count| (it.begin - complete_until).abs() > FARTHEST;
    if let Some(count) = counts.iter().find(|count| is_far(count)) {
        return Err(format!(
            "it counts what passed at {:?}, far from when it was told",
            count.begin
        ));
    }
    // Others would stand between the intervals of the task, and be added up with none.
    let is_none = |it: &Count| it.begin.interval_begin(interval) != it.begin;
    if let Some(count) = counts.iter().find(|count| is_none(count)) {
        return Err(format!(
            "no interval of the task begins at {:?}, which it counts",
            count.begin
        ));
    }
    Ok((complete_until, News { counts, flows: Vec::new() }))
}

fn flows(message: &[u8]) -> Result<(Time<Utc>, News), String> {
    let Flows { reports, complete_until } =
        Flows::decode(message).map_err(|why| format!("flows cannot be read: {why}"))?;
    can_be(complete_until)?;
    let flows = reports.into_iter().map(Flow::read).collect::<Result<Vec<_>, _>>();
    let flows = flows.map_err(|why| why.to_string())?;
    flows.iter().try_for_each(|it| can_be(it.last))?;
    Ok((complete_until, News { counts: Vec::new(), flows }))
}

/// Whether a point can have told of everything until a time.
fn can_be(complete_until: Time<Utc>) -> Result<(), String> {
    if complete_until <= latest() { Ok(()) } else { Err(AHEAD_OF_TIME.to_owned()) }
}

fn latest() -> Time<Utc> {
    let now = Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(0));
    now + AHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flow_has_packets_in_an_hour() {
        let told = |last_ns: i64| {
            let report = format!(
                r#"{{"src":"192.0.2.1","dst":"192.0.2.2","sport":5,"dport":6,"protocol":17,
                    "first_ns":1,"last_ns":{last_ns},"packets":3}}"#
            );
            let complete_until = Time::from_nanos(2);
            flows(&Flows { reports: vec![report], complete_until }.encode())
        };
        assert_eq!(told(3).unwrap().1.flows.len(), 1);
        assert_eq!(told(i64::MAX).unwrap_err(), AHEAD_OF_TIME);
    }

    #[test]
    fn what_is_counted_is_of_the_intervals_of_the_task() {
        let at = |millis: i64| Time::from_nanos(millis * 1_000_000);
        let told = |begin| {
            let (packets, bytes, missed, watched) = (3, 300, 0, Span::from_secs(1));
            let count = Count { begin, packets, bytes, missed, watched };
            let message = Counts { counts: vec![count], complete_until: at(20_000) }.encode();
            counts(&message, Span::from_secs(5))
        };
        for begin in [at(0), at(15_000), at(-5000)] {
            assert_eq!(told(begin).unwrap().1.counts[0].begin, begin);
        }
        for begin in [at(1000), at(4999), at(-1)] {
            assert!(told(begin).unwrap_err().starts_with("no interval of the task begins at"));
        }
        assert!(told(at(-100_000_000)).unwrap_err().contains("far from when it was told"));
    }
}
