//! Answers to the packets of an active test, until they are in a batch.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::CaptureLoss;

use crate::protocol::{TestAnswer, TestAnswers};

/// Max answers in a batch, like its packets.
const MAX_ANSWERS: usize = 16_384;

/// News of the answers of an active test.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnswerEvent {
    /// The sender has received the first answer to a packet.
    Received(TestAnswer),
    /// The sender has received all other answers within the timeout to packets sent before this time.
    CompleteUntil(Time<Utc>),
    /// Answers to packets sent in this interval may be missing.
    Missed(CaptureLoss),
    /// An answer of the reflector left later than it states, by this; none if it is not known.
    Returned(Option<Span>),
}

/// Answers that are in no batch yet.
#[derive(Debug, Default)]
pub(super) struct AnswerLog {
    received: Vec<TestAnswer>,
    missed: Vec<CaptureLoss>,
    complete_until: Option<Time<Utc>>,
    /// Max time from the stated send time of an answer until it left.
    sending: Span,
    /// The time is not known of an answer.
    is_sending_unknown: bool,
}

impl AnswerLog {
    /// Records an event of an end that is observed from `begin` on.
    pub(super) fn record(&mut self, event: AnswerEvent, begin: Time<Utc>) {
        match event {
            // Earlier packets are not observed.
            AnswerEvent::Received(answer) if answer.sent < begin => {}
            AnswerEvent::Received(answer) => self.received.push(answer),
            AnswerEvent::CompleteUntil(time) => {
                self.complete_until = self.complete_until.max(Some(time));
            }
            AnswerEvent::Missed(missed) => self.missed.push(missed),
            AnswerEvent::Returned(Some(sending)) => self.sending = self.sending.max(sending),
            AnswerEvent::Returned(None) => self.is_sending_unknown = true,
        }
    }

    /// The answers for a batch of the packets before `until`.
    pub(super) fn take(&mut self, until: Time<Utc>) -> TestAnswers {
        let is_before = |it: &mut TestAnswer| it.sent < until;
        let mut received: Vec<_> = self.received.extract_if(.., is_before).collect();
        let rest = received.split_off(received.len().min(MAX_ANSWERS));
        // The rest is in a later batch, and so is the time up to which they are complete.
        let complete_until = self.complete_until.filter(|_| rest.is_empty());
        let complete_until = complete_until.map(|it| it.min(until));
        self.received.splice(0..0, rest);
        let sending = (!self.is_sending_unknown).then_some(self.sending);
        (self.sending, self.is_sending_unknown) = (Span::ZERO, false);
        TestAnswers { received, missed: std::mem::take(&mut self.missed), complete_until, sending }
    }

    /// The answers for a batch before the last one of a time range: none.
    pub(super) fn none() -> TestAnswers {
        TestAnswers { sending: Some(Span::ZERO), ..TestAnswers::default() }
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_packet::PacketId;

    use super::*;

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    fn received(millis: i64) -> AnswerEvent {
        AnswerEvent::Received(TestAnswer {
            identity: PacketId(millis.unsigned_abs()),
            sent: at(millis),
            round_trip: Span::from_millis(5),
            back: Span::from_millis(2),
            error: Span::ZERO,
        })
    }

    fn sent(answers: &TestAnswers) -> Vec<u64> {
        answers.received.iter().map(|it| it.identity.0).collect()
    }

    #[test]
    fn answers_are_in_the_batch_of_their_packets_or_later() {
        let mut log = AnswerLog::default();
        for millis in [99, 100, 250, 310] {
            log.record(received(millis), at(100));
        }
        log.record(AnswerEvent::CompleteUntil(at(90)), at(100));
        let first = log.take(at(300));
        assert_eq!((sent(&first), first.complete_until), (vec![100, 250], Some(at(90))));
        log.record(received(260), at(100));
        // Complete beyond the batch, which has no packets after its end.
        log.record(AnswerEvent::CompleteUntil(at(700)), at(100));
        let second = log.take(at(500));
        assert_eq!((sent(&second), second.complete_until), (vec![310, 260], Some(at(500))));
    }

    #[test]
    fn large_batch_leaves_answers_and_their_completeness_for_the_next() {
        let mut log = AnswerLog::default();
        for millis in (0..).take(MAX_ANSWERS + 2) {
            log.record(received(millis), at(0));
        }
        log.record(AnswerEvent::CompleteUntil(at(90)), at(0));
        let first = log.take(at(1_000_000));
        assert_eq!((first.received.len(), first.complete_until), (MAX_ANSWERS, None));
        let second = log.take(at(1_000_000));
        assert_eq!((second.received.len(), second.complete_until), (2, Some(at(90))));
    }

    #[test]
    fn sending_time_is_the_max_or_unknown() {
        let mut log = AnswerLog::default();
        let ms = Span::from_millis;
        assert_eq!(log.take(at(1)).sending, Some(Span::ZERO));
        for returned in [Some(ms(3)), Some(ms(9)), Some(ms(1))] {
            log.record(AnswerEvent::Returned(returned), at(0));
        }
        assert_eq!(log.take(at(1)).sending, Some(ms(9)));
        log.record(AnswerEvent::Returned(Some(ms(3))), at(0));
        log.record(AnswerEvent::Returned(None), at(0));
        assert_eq!(log.take(at(1)).sending, None);
        assert_eq!(log.take(at(1)).sending, Some(Span::ZERO));
    }
}
