//! Two capture files of the same packets, at two points.

mod chain;
mod clocks;
mod correction;
mod file;
mod pipe;
mod survey;
mod terms;

use std::cell::Cell;

use wirestamp_capture::Error;
use wirestamp_capture::file::Reader;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{
    CaptureLoss, ClockSkew, Correlator, Observation, Outcome, Point, SkewEstimate,
};

pub use chain::{ChainCorrections, ChainPacket, Fate, HopDelay, PointStamp, compare_chain};
pub use correction::Correction;
pub(crate) use file::passes;
pub use pipe::PipeReport;
pub use survey::{Survey, survey};
pub use terms::Terms;

use clocks::clock_error;
use file::File;

use crate::point_state::PointState;

/// Result of the comparison of two files, apart from the outcomes.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Max clock error of a delay, or the reason why it is unknown.
    pub clock_error: Result<Span, String>,
    /// Clock skew that remains in the delays; `None` if both files use one clock, or if too few packets matched.
    pub skew: Option<SkewEstimate>,
    /// States of the points A and B, each on its own.
    pub states: [PointState; 2],
    /// Packets dropped by the capturing systems at A and at B; none if they do not report it.
    pub capture_lost: [Option<u64>; 2],
    /// Drops of unknown time. Up to this number of packets that are counted as lost, or as
    /// unexpected at B, may be such drops.
    pub undated: [u64; 2],
    /// Packets at A and at B that stand in the file after packets with later stamps.
    pub stamped_earlier: [u64; 2],
    /// Warnings: position of damage if only the part before it was used (`partial`), and packets out of
    /// order.
    pub remarks: Vec<String>,
}

/// Correlates the packets of file `a` with those of file `b`.
///
/// Calls `record` with each outcome, and whether its packet was observed by one point before the first or after the last
/// packet of the other one: a file does not contain when its capture ran.
///
/// # Errors
/// When a file is damaged and `partial` is not set.
pub fn compare(
    a: Reader,
    b: Reader,
    terms: &Terms<'_>,
    record: &mut impl FnMut(Outcome, bool),
) -> Result<Comparison, Error> {
    let Terms { correlation, partial, filter, correction, state } = *terms;
    let mut correlator = Correlator::new(correlation);
    let state = || state.cloned().unwrap_or_default();
    let mut files = [a, b].map(|file| File::new(file, partial, filter, state()));
    let mut ahead = [files[0].next()?, files[1].next()?];
    let mut skew = ClockSkew::default();
    let spans = Cell::new([Captured::default(); 2]);
    let mut record = |outcome: Outcome| {
        if let Outcome::Matched { sent, delay, .. } = &outcome {
            skew.record(sent.stamp.utc, *delay);
        }
        let [a, b] = spans.get();
        // When it is decided, the other file was read past it, or has ended.
        let is_outside = match &outcome {
            Outcome::Lost { sent, .. } => !b.contains(sent),
            Outcome::Unexpected { received } => !a.contains(received),
            _ => false,
        };
        record(outcome, is_outside);
    };
    loop {
        for missed in files[0].take_missed() {
            correlator.missed(Point::A, missed);
        }
        for missed in files[1].take_missed() {
            let [from, until] = [missed.from, missed.until].map(|time| correction.of_b(time));
            correlator.missed(Point::B, CaptureLoss { from, until, ..missed });
        }
        let Some(point) = first(&ahead, &correction) else { break };
        let of = usize::from(point == Point::B);
        let next = files[of].next()?;
        if let Some(mut observation) = std::mem::replace(&mut ahead[of], next) {
            if point == Point::B {
                observation.stamp = file::stamp(correction.of_b(observation.stamp.utc));
            }
            let mut now = spans.get();
            now[of].extend(&observation);
            spans.set(now);
            correlator.observe(point, observation, &mut record);
        }
    }
    correlator.finish(&mut record);
    let [a, b] = files;
    let clock_error = clock_error(&a.used(), &b.used());
    Ok(Comparison {
        skew: skew.estimate().filter(|_| clock_error.is_err()),
        clock_error,
        undated: [a.undated(), b.undated()],
        capture_lost: [a.reader.capture_lost(), b.reader.capture_lost()],
        stamped_earlier: [a.stamped_earlier(), b.stamped_earlier()],
        remarks: a.remarks().chain(b.remarks()).collect(),
        states: [a.state, b.state],
    })
}

/// The time from the first packet of a file until the last one read.
#[derive(Clone, Copy, Default)]
struct Captured(Option<(Time<Utc>, Time<Utc>)>);

impl Captured {
    fn extend(&mut self, observation: &Observation) {
        let time = observation.stamp.utc;
        let (first, last) = self.0.unwrap_or((time, time));
        self.0 = Some((first.min(time), last.max(time)));
    }

    fn contains(self, observation: &Observation) -> bool {
        let time = observation.stamp.utc;
        self.0.is_some_and(|(first, last)| first <= time && time <= last)
    }
}

/// The point whose next packet is earlier, so that both files are read in the order of time. `None` at
/// the end of both.
fn first([a, b]: &[Option<Observation>; 2], correction: &Correction) -> Option<Point> {
    match (a, b) {
        (None, None) => None,
        (Some(a), Some(b)) if correction.of_b(b.stamp.utc) < a.stamp.utc => Some(Point::B),
        (Some(_), _) => Some(Point::A),
        (None, Some(_)) => Some(Point::B),
    }
}
