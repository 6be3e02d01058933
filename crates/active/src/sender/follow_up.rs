//! Answers that wait for the word of when they left the reflector.

use std::collections::VecDeque;

use wirestamp_clock::{Span, Stamp, Time, Utc};
use wirestamp_metrics::Reply;

/// How far the word of an answer may come out of its turn. That of an answer further behind was lost.
const NEAR: usize = 64;

/// Answers in the order in which they came, the oldest first. The time at which an answer left is told with
/// the next one that the reflector returns.
#[derive(Debug, Default)]
pub(super) struct FollowedUp {
    waiting: VecDeque<Told>,
    /// The greatest number that there was a word of.
    latest: u64,
}

/// What an answer says besides, and the clocks claimed when it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// With which TTL its packet reached the reflector.
    pub(super) ttl: u8,
    /// How far our clock can be from UTC; none if it is not on UTC.
    pub(super) own: Option<Span>,
    /// The same of the reflector's.
    pub(super) theirs: Option<Span>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) answer: Reply,
    pub(super) beside: Beside,
    /// Whether the time at which it left is that of the word.
    pub(super) is_told: bool,
}

impl FollowedUp {
    /// One more answer came.
    pub(super) fn push(&mut self, answer: Reply, beside: Beside) {
        self.waiting.push_back(Told { answer, beside, is_told: false });
    }

    /// The answer with this number left at this time.
    pub(super) fn tell(&mut self, number: u64, left: Stamp) {
        self.latest = self.latest.max(number);
        let near = self.waiting.iter_mut().rev().take(NEAR);
        // A copy of an answer left when it did.
        for waiting in near.filter(|waiting| waiting.answer.number == number) {
            waiting.answer.returned = left;
            waiting.is_told = true;
        }
    }

    /// The oldest answer, if it waits no more. The word of what came before `before` is no longer waited for.
    pub(super) fn next(&mut self, before: Option<Time<Utc>>) -> Option<Told> {
        let oldest = self.waiting.front()?;
        let is_over = before.is_some_and(|before| oldest.answer.back.utc < before)
            || self.latest > oldest.answer.number + NEAR as u64;
        if !oldest.is_told && !is_over {
            return None;
        }
        self.waiting.pop_front()
    }

    /// How many answers there are.
    pub(super) fn len(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Whether the word of an answer is still waited for.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.iter().any(|waiting| !waiting.is_told)
    }

    /// How long the oldest has waited.
    pub(super) fn waited(&self, now: Time<Utc>) -> Span {
        self.waiting.front().map_or(Span::ZERO, |oldest| now - oldest.answer.back.utc)
    }
}
