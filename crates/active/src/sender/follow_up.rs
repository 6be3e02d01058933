//! Answers that wait for the follow-up with their transmit stamp at the reflector.

use std::collections::VecDeque;

use wirestamp_clock::{Span, Stamp, Time, Utc};
use wirestamp_metrics::Reply;

/// Max reordering of follow-ups, in answers. A follow-up later than that counts as lost.
const MAX_REORDERING: usize = 64;

/// Answers in the order of arrival, the oldest first. The reflector sends the transmit stamp of an answer
/// with the next answer.
#[derive(Debug, Default)]
pub(super) struct FollowUpQueue {
    waiting: VecDeque<WaitingAnswer>,
    /// The max answer number with a follow-up.
    latest: u64,
}

/// Identity of the answered packet, its TTL, and the clocks' error bounds at the arrival of the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerContext {
    /// The sender's timestamp in the answered packet.
    pub(super) mark: u64,
    /// TTL of the packet at the reflector.
    pub(super) ttl: u8,
    /// Error bound of the sender's clock; none if it is not synchronized to UTC.
    pub(super) own: Option<Span>,
    /// Error bound of the reflector's clock; none if it is not synchronized to UTC.
    pub(super) theirs: Option<Span>,
}

/// A waiting answer.
#[derive(Debug)]
pub(super) struct WaitingAnswer {
    pub(super) answer: Reply,
    pub(super) context: AnswerContext,
    /// Whether its transmit time is the stamp of a follow-up.
    pub(super) has_stamp: bool,
}

impl FollowUpQueue {
    /// Adds an answer.
    pub(super) fn push(&mut self, answer: Reply, context: AnswerContext) {
        self.waiting.push_back(WaitingAnswer { answer, context, has_stamp: false });
    }

    /// Sets the transmit stamp of the answer with this number.
    pub(super) fn set_stamp(&mut self, number: u64, left: Stamp) {
        self.latest = self.latest.max(number);
        let near = self.waiting.iter_mut().rev().take(MAX_REORDERING);
        // Duplicates have the same stamp.
        for waiting in near.filter(|waiting| waiting.answer.number == number) {
            waiting.answer.returned = left;
            waiting.has_stamp = true;
        }
    }

    /// Removes the oldest answer, unless it still waits. Answers that arrived before `before` no longer wait.
    pub(super) fn next(&mut self, before: Option<Time<Utc>>) -> Option<WaitingAnswer> {
        let oldest = self.waiting.front()?;
        let is_over = before.is_some_and(|before| oldest.answer.back.utc < before)
            || self.latest > oldest.answer.number + MAX_REORDERING as u64;
        if !oldest.has_stamp && !is_over {
            return None;
        }
        self.waiting.pop_front()
    }

    /// Number of answers.
    pub(super) fn len(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Whether any answer still waits for its follow-up.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.iter().any(|waiting| !waiting.has_stamp)
    }

    /// Waiting time of the oldest answer.
    pub(super) fn waited(&self, now: Time<Utc>) -> Span {
        self.waiting.front().map_or(Span::ZERO, |oldest| now - oldest.answer.back.utc)
    }
}

/// Whether the reflector sends follow-ups. One that supports the extension but has no stamp returns zeros,
/// as every reflector does in its first answer.
#[derive(Debug, Default)]
pub(super) struct FollowUpSupport {
    has_stamps: bool,
    received: u32,
}

/// Max follow-ups without a stamp; after them, no stamp is expected.
const MAX_EMPTY_FOLLOW_UPS: u32 = 16;

impl FollowUpSupport {
    pub(super) fn record(&mut self, has_stamp: bool) {
        self.has_stamps |= has_stamp;
        self.received = self.received.saturating_add(1);
    }

    /// Whether follow-ups with stamps are expected.
    pub(super) const fn is_expected(&self) -> bool {
        self.has_stamps || (self.received > 0 && self.received < MAX_EMPTY_FOLLOW_UPS)
    }
}
