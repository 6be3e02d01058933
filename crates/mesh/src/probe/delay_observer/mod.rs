//! Observer of a task that compares two points: turns packets into batches of observations.

use crate::protocol::{MachineClock, ObservationBatch};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation, Sampling};
use wirestamp_packet::Segmentation;

use super::answer_log::{AnswerEvent, AnswerLog};
use super::observer::{ObservedPacket, Observer};
use crate::spool::Batch;

/// A batch covers at least this time (more with many observers), and has at most this number of packets.
const INTERVAL: Span = Span::from_millis(200);
const PACKETS: usize = 16_384;

/// How far the closing batch reaches beyond the last one. The collector can then settle all earlier packets of both
/// points.
const CLOSING: Span = Span::from_secs(30);

/// How far stamps may go back. Beyond that, the clock was set.
const TOLERANCE: Span = Span::from_millis(100);

/// The same for answered packets: the timeout of answers, with a margin for a stalled thread.
const ANSWER_TOLERANCE: Span = Span::from_secs(10);

/// Observes packets at a point: a sample, or all of an end of an active test.
pub(super) struct DelayObserver {
    /// None for all packets.
    sampling: Option<Sampling>,
    /// Start of the observation.
    begin: Time<Utc>,
    seen: Vec<Observation>,
    /// Division of TCP segments that are longer than the network carries.
    segmentation: Segmentation,
    missed: Vec<CaptureLoss>,
    /// Answers of an active test; none for other packets.
    answers: Option<AnswerLog>,
    /// All packets before this time are in batches.
    reported_until: Option<Time<Utc>>,
    /// Packets arrived for a time that is reported already.
    is_set_back: bool,
}

impl DelayObserver {
    /// Observes a sample from `begin` on.
    pub(super) fn new(sampling: Sampling, begin: Time<Utc>) -> Self {
        Self::with(Some(sampling), None, begin)
    }

    /// Observes all packets and answers of an end of an active test from `begin` on.
    pub(super) fn of_test(begin: Time<Utc>) -> Self {
        Self::with(None, Some(AnswerLog::default()), begin)
    }

    fn with(sampling: Option<Sampling>, answers: Option<AnswerLog>, begin: Time<Utc>) -> Self {
        Self {
            sampling,
            begin,
            seen: Vec::new(),
            segmentation: Segmentation::default(),
            missed: Vec::new(),
            answers,
            reported_until: None,
            is_set_back: false,
        }
    }

    /// Adds an observation.
    pub(super) fn see(&mut self, observation: &Observation) {
        let time = observation.stamp.utc;
        if self.reported_until.is_some_and(|reported_until| time < reported_until - TOLERANCE) {
            self.is_set_back = true;
        } else if time >= self.begin
            && self.sampling.as_ref().is_none_or(|sampling| sampling.chooses(observation))
        {
            self.seen.push(*observation);
        }
    }

    fn take(&mut self, until: Time<Utc>, clock: MachineClock) -> Vec<Batch> {
        let mut from = self.reported_until.replace(until).unwrap_or(self.begin);
        let (mut observations, later): (Vec<_>, _) =
            self.seen.drain(..).partition(|it| it.stamp.utc < until);
        self.seen = later;
        // Also those that end later: the point is not complete behind their beginning.
        let (mut missed, later): (Vec<_>, _) =
            self.missed.drain(..).partition(|it| it.from < until);
        self.missed = later;
        let mut answers = self.answers.as_mut().map(|answers| answers.take(until));
        let mut begin = (from == self.begin).then_some(self.begin);
        if std::mem::take(&mut self.is_set_back) {
            // The clock was set back: the times of these packets are unknown.
            (observations, missed, begin) = (Vec::new(), Vec::new(), Some(until));
            answers = answers.map(|_| AnswerLog::none());
        }
        let mut batches = Vec::new();
        if observations.len() > PACKETS {
            observations.sort_by_key(|it| it.stamp.utc);
        }
        while observations.len() > PACKETS {
            let rest = observations.split_off(PACKETS);
            let complete_until = rest[0].stamp.utc.max(from);
            let observations = std::mem::replace(&mut observations, rest);
            // A batch has only losses that begin before its end.
            let (own, later): (Vec<_>, _) =
                missed.into_iter().partition(|it: &CaptureLoss| it.from < complete_until);
            missed = later;
            let (begin, missed) = (begin.take(), own);
            let answers = answers.as_ref().map(|_| AnswerLog::none());
            let seen =
                ObservationBatch { observations, missed, complete_until, begin, clock, answers };
            batches.push(batch(from, &seen));
            from = complete_until;
        }
        let complete_until = until;
        let seen = ObservationBatch { observations, missed, complete_until, begin, clock, answers };
        batches.push(batch(from, &seen));
        batches
    }
}

impl Observer for DelayObserver {
    fn packet(&mut self, packet: &ObservedPacket<'_>) {
        let mut parts = Vec::new();
        let is_divided = packet.packet().is_some_and(|whole| {
            self.segmentation.divide(whole, packet.length, |part, length| {
                parts.extend(Observation::of(part, length, packet.stamp));
            })
        });
        let whole = packet.observation().filter(|_| !is_divided);
        parts.iter().chain(whole).for_each(|observation| self.see(observation));
    }

    fn missed(&mut self, missed: CaptureLoss) {
        if missed.until >= self.begin {
            self.missed.push(CaptureLoss { from: missed.from.max(self.begin), ..missed });
        }
    }

    fn answers(&mut self, event: AnswerEvent) {
        let Self { answers, begin, reported_until, .. } = self;
        let oldest = reported_until.map(|it| it - ANSWER_TOLERANCE);
        match (answers, event) {
            // The next batch is after the clock has caught up, which may take days.
            (Some(_), AnswerEvent::Received(answer)) if Some(answer.sent) < oldest => {
                self.is_set_back = true;
            }
            (Some(answers), _) => answers.record(event, *begin),
            (None, _) => {}
        }
    }

    fn batches(&mut self, until: Time<Utc>, clock: MachineClock) -> Vec<Batch> {
        let from = self.reported_until.unwrap_or(self.begin);
        let is_due = until - from >= INTERVAL || (self.seen.len() >= PACKETS && until > from);
        if is_due { self.take(until, clock) } else { Vec::new() }
    }

    fn end(mut self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> Vec<Batch> {
        let from = self.reported_until.unwrap_or(self.begin);
        if until > from { self.take(until, clock) } else { Vec::new() }
    }

    /// Adds a closing batch: the point is no longer observed.
    fn close(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> (Vec<Batch>, Time<Utc>) {
        if self.reported_until.is_none() && until <= self.begin {
            // The observation has not begun, so its end is not reported.
            return (Vec::new(), self.begin);
        }
        let last = self.reported_until.unwrap_or(self.begin).max(until);
        let mut batches = self.end(until, clock);
        let end = last + CLOSING;
        batches.push(absence(last, end, clock));
        (batches, end)
    }
}

/// A batch for a time in which the point was not observed.
pub(super) fn absence(from: Time<Utc>, until: Time<Utc>, clock: MachineClock) -> Batch {
    let (observations, missed) = (Vec::new(), Vec::new());
    batch(
        from,
        &ObservationBatch {
            observations,
            missed,
            complete_until: until,
            begin: Some(until),
            clock,
            answers: None,
        },
    )
}

fn batch(from: Time<Utc>, seen: &ObservationBatch) -> Batch {
    let missed: u64 = seen.missed.iter().map(|it| it.packets).sum();
    Batch {
        items: missed.saturating_add(seen.observations.len() as u64),
        times: from.as_nanos()..=seen.complete_until.as_nanos(),
        body: seen.encode(),
    }
}

#[cfg(test)]
mod tests;
