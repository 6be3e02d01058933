//! Answers to the packets of an active test, by window of the packet's send time.
//!
//! The sender reports each answer after it has read it, and the time up to which all answers are reported. A packet
//! that reached the reflector, and of which no answer is reported, is lost on the way back only if its answer cannot be
//! missing for another reason: the packet was sent before that time, and outside of the gaps.

use std::collections::{BTreeMap, HashMap};

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Outcome};

use crate::collector::ReturnPath;
use crate::protocol::{ObservationBatch, TestAnswers};

/// Answers are kept for this time behind the windows, because the two send times of a packet may differ slightly.
const MAX_DISTANCE: Span = Span::from_secs(1);

/// Answers of a test.
pub(super) struct Answers {
    window: Span,
    /// Everything before this time was settled before a restart.
    begun_at: Time<Utc>,
    /// Windows with packets of a sender that reports answers.
    open: BTreeMap<Time<Utc>, ReturnPath>,
    /// Send times of the answered packets, by identity.
    received: HashMap<u64, Time<Utc>>,
    /// Packets that reached the reflector: send time and identity.
    reached: Vec<(Time<Utc>, u64)>,
    /// The answers of packets sent before this time are reported, except in gaps.
    complete_until: Time<Utc>,
    /// Times in which packets were sent whose answers may be missing, ends included.
    gaps: Vec<(Time<Utc>, Time<Utc>)>,
    /// Answers to packets of final windows.
    late: u64,
}

impl Answers {
    /// No answers; windows have this length, and those before `settled_until` are final.
    pub(super) fn new(window: Span, settled_until: Time<Utc>) -> Self {
        Self {
            window,
            begun_at: settled_until,
            open: BTreeMap::new(),
            received: HashMap::new(),
            reached: Vec::new(),
            complete_until: Time::from_nanos(i64::MIN),
            gaps: Vec::new(),
            late: 0,
        }
    }

    /// Opens the windows of the packets in a batch of the sender. `begin` is the end of the gap before the batch, if
    /// there is one. Windows before `settled_until` are final.
    pub(super) fn open_windows(
        &mut self,
        batch: &ObservationBatch,
        begin: Option<Time<Utc>>,
        settled_until: Time<Utc>,
    ) {
        if batch.answers.is_none() {
            // The probe is of an earlier version, or did not observe.
            self.leave_out(batch.complete_until);
            return;
        }
        if let Some(begin) = begin {
            self.leave_out(begin);
        }
        let mut newest = None;
        for observation in &batch.observations {
            let window = observation.stamp.utc.interval_begin(self.window);
            if newest != Some(window) && window >= settled_until {
                self.open.entry(window).or_default();
                newest = Some(window);
            }
        }
    }

    /// Records the answers in a batch of the sender, after its windows were opened.
    pub(super) fn take(&mut self, answers: &TestAnswers) {
        for answer in &answers.received {
            if self.received.insert(answer.identity.0, answer.sent).is_some() {
                continue;
            }
            match self.open.get_mut(&answer.sent.interval_begin(self.window)) {
                Some(window) => window.record(answer),
                None => self.late += u64::from(answer.sent >= self.begun_at),
            }
        }
        let gap = |missed: &CaptureLoss| (missed.from, missed.until);
        self.gaps.extend(answers.missed.iter().map(gap));
        let complete_until = answers.complete_until.unwrap_or(self.complete_until);
        self.complete_until = complete_until.max(self.complete_until);
    }

    /// Answers reported until this time may be lost: the probe did not observe, or its batches were dropped.
    pub(super) fn leave_out(&mut self, until: Time<Utc>) {
        if self.complete_until < until {
            self.gaps.push((self.complete_until, until));
        }
    }

    /// Records the outcome of a packet.
    pub(super) fn record(&mut self, outcome: &Outcome) {
        if let Outcome::Matched { sent, .. } = outcome {
            self.reached.push((sent.stamp.utc, sent.id.0));
        }
    }

    /// Closes the windows that begin before `until`.
    pub(super) fn settle(&mut self, until: Time<Utc>) -> BTreeMap<Time<Utc>, ReturnPath> {
        for (sent, identity) in self.reached.extract_if(.., |(sent, _)| *sent < until) {
            let Some(window) = self.open.get_mut(&sent.interval_begin(self.window)) else {
                continue;
            };
            let is_in_gap =
                || self.gaps.iter().any(|(from, until)| (*from..=*until).contains(&sent));
            if self.received.contains_key(&identity) {
                window.answered += 1;
            } else if sent < self.complete_until && !is_in_gap() {
                window.lost += 1;
            } else {
                window.undetermined += 1;
            }
        }
        self.received.retain(|_, sent| *sent >= until - MAX_DISTANCE);
        self.gaps.retain(|(_, end)| *end >= until);
        let open = self.open.split_off(&until);
        std::mem::replace(&mut self.open, open)
    }

    /// Returns and resets the number of answers that were too late for their windows.
    pub(super) fn take_late(&mut self) -> u64 {
        std::mem::take(&mut self.late)
    }
}
