//! What becomes of what the points of a task deliver: that depends on what the task measures.

use std::ops::RangeInclusive;
use std::time::SystemTime;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Config, Point};
use wirestamp_protocol::{Counts, Seen};

use super::{Counting, Delivered, Delivery, Pair, Progress, Settled, Timing, WINDOW, side};
use crate::task::Measure;

/// How far a probe's clock may be ahead: the other point waits until its own has come as far.
const AHEAD: Span = Span::from_secs(3600);
const AHEAD_OF_TIME: &str = "the clock of its probe is more than an hour ahead";

fn timing() -> Timing {
    Timing { window: WINDOW, matching: Config::default() }
}

/// Results that are being made.
pub(super) enum Making {
    /// Of what two points saw.
    Pair(Box<Pair>),
    /// Of what one has counted.
    Counting(Counting),
}

impl Making {
    /// Goes on from what is stored.
    pub(super) fn new(measure: &Measure, progress: &Progress) -> Self {
        let Progress { settled_until, delivered } = *progress;
        let acknowledged = delivered.map(|it| it.acknowledged);
        match measure {
            Measure::Volume { .. } | Measure::Traffic { .. } | Measure::Flows { .. } => {
                Self::Counting(Counting::new(settled_until, acknowledged[0]))
            }
            Measure::PassiveDelay(_) | Measure::ActiveDelay(_) => {
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
            Self::Pair(pair) => Seen::decode(message)
                .map_err(|why| why.to_string())
                .and_then(|seen| can_be(seen.complete_until).map(|()| seen))
                .map(|seen| pair.take(point, number, &seen)),
            Self::Counting(counting) => Counts::decode(message)
                .map_err(|why| why.to_string())
                .and_then(|counts| can_be(counts.complete_until).map(|()| counts))
                .map(|counts| counting.take(number, &counts)),
        };
        match taken {
            Ok(delivery) => (delivery, None),
            Err(why) => (self.leave_out(point, number), Some(why)),
        }
    }

    fn leave_out(&mut self, point: Point, number: u64) -> Delivery {
        match self {
            Self::Pair(pair) => pair.leave_out(point, number),
            Self::Counting(counting) => counting.leave_out(number),
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
            Self::Counting(counting) => counting.give_up(numbers, until, packets),
        }
    }

    /// What comes next of a point is the batch behind this number, whatever came before.
    pub(super) fn number_anew(&mut self, point: Point, behind: u64) {
        match self {
            Self::Pair(pair) => pair.number_anew(point, behind),
            Self::Counting(counting) => counting.number_anew(behind),
        }
    }

    /// Whether batches of a point had better wait until the other has caught up.
    pub(super) fn is_ahead(&self, point: Point) -> bool {
        match self {
            Self::Pair(pair) => pair.is_ahead(point),
            Self::Counting(_) => false,
        }
    }

    /// What is newly settled, if there is anything.
    pub(super) fn settle(&mut self) -> Option<Settled> {
        match self {
            Self::Pair(pair) => pair.settle(),
            Self::Counting(counting) => counting.settle(),
        }
    }
}

/// Whether a point can have told of everything until a time.
fn can_be(complete_until: Time<Utc>) -> Result<(), String> {
    if complete_until <= latest() { Ok(()) } else { Err(AHEAD_OF_TIME.to_owned()) }
}

fn latest() -> Time<Utc> {
    let now = Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(0));
    now + AHEAD
}
