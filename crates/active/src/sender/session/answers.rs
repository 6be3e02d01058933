//! Evaluation of answers: a session matches them with its packets, and waits for their follow-ups.

use std::net::SocketAddr;

use wirestamp_clock::{Span, Stamp, Time, Utc};
use wirestamp_metrics::{Reply, ReplyKind};
use wirestamp_packet::stamp::{
    ClassOfService, ErrorEstimate, FollowUp, NotStamp, Reflected, Stamped, TimestampInformation,
    Value, extensions,
};

use super::{Session, stamp};
use crate::nearest;
use crate::sender::follow_up::{AnswerContext, WaitingAnswer};

/// A received answer, for observers.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedAnswer {
    /// Number of the answered packet.
    pub sequence: u64,
    /// Identity of the answered packet ([`TestPacket::mark`](crate::TestPacket::mark)).
    pub mark: u64,
    /// Send time of the answered packet, with its error: the kernel's stamp, or else the program's time; none for a
    /// very late duplicate.
    pub sent: Option<Stamp>,
    /// Receive time.
    pub at: Time<Utc>,
    /// Round-trip time without the time at the reflector; none for a very late duplicate.
    pub round_trip: Option<Span>,
    /// Delay from the sender to the reflector, by two clocks.
    pub there: Option<Span>,
    /// Delay from the reflector to the sender, by two clocks.
    pub back: Span,
    /// TTL or hop limit of the packet at the reflector.
    pub ttl: u8,
    /// Kind of the answer.
    pub taken: ReplyKind,
    /// Error bound of the sender's clock; none if it is not synchronized to UTC.
    pub own: Option<Span>,
    /// Error bound of the reflector's clock; none if it is not synchronized to UTC.
    pub theirs: Option<Span>,
}

impl Session {
    /// Processes a datagram received from this address at this time.
    ///
    /// # Errors
    /// [`NotStamp`] if it is not an answer.
    pub fn answer(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        back: Time<Utc>,
    ) -> Result<(), NotStamp> {
        let parsed = Reflected::parse(datagram, self.mode());
        let reflected = parsed.inspect_err(|error| match error {
            NotStamp::TooShort(..) | NotStamp::Answer => self.not_stamp += 1,
            NotStamp::Forged => self.forged += 1,
        })?;
        let Reflected { sequence: number, timestamp, error, received, sent, ttl } = reflected;
        let sequence = nearest(self.next.saturating_sub(1), sent.sequence);
        let is_ours = (from.ip(), from.port()) == (self.to.ip(), self.to.port())
            && [0, self.format.session].contains(&sent.session)
            && sequence < self.next;
        if !is_ours {
            self.strange += 1;
            return Ok(());
        }
        let number = nearest(self.expected_number, number);
        self.expected_number = self.expected_number.max(number + 1);
        let answer = Reply {
            sequence,
            number,
            received: self.theirs(received, error),
            returned: self.theirs(timestamp, error),
            back: self.stamp(back),
            length: self.on_wire(datagram.len()),
        };
        self.peer.add(error, self.own.tai);
        let behind = datagram.get(self.mode().length()..).unwrap_or_default();
        self.read_extensions(behind, &reflected);
        if self.is_closing(sequence) {
            self.test.end(number, answer.returned);
            self.is_closed = true;
            return Ok(());
        }
        let own = self.own.synchronised.then_some(self.own.error);
        let theirs = error.bound().filter(|_| error.is_synchronised());
        let context = AnswerContext { mark: sent.timestamp.0, ttl, own, theirs };
        if self.follow_ups.is_expected() {
            self.waiting.push(answer, context);
        } else {
            self.take(&answer, context, false);
        }
        Ok(())
    }

    /// Counts an answer whose data is complete.
    fn take(&mut self, answer: &Reply, context: AnswerContext, has_stamp: bool) {
        let sent = self.test.sent_at(answer.sequence);
        let there = sent.map(|sent| answer.received.utc - sent.utc);
        let back = answer.back.utc - answer.returned.utc;
        let taken = self.test.take(*answer);
        self.returned_by_kernel += u64::from(has_stamp && taken == ReplyKind::First);
        let round_trip = there.map(|there| there + back);
        let AnswerContext { mark, ttl, own, theirs } = context;
        self.answers.push_back(ReceivedAnswer {
            sequence: answer.sequence,
            mark,
            sent,
            at: answer.back.utc,
            round_trip,
            there,
            back,
            ttl,
            taken,
            own,
            theirs,
        });
    }

    /// Time that the oldest received answer has waited for its follow-up; zero if none waits.
    #[must_use]
    pub fn waited(&self, now: Time<Utc>) -> Span {
        self.waiting.waited(now)
    }

    /// Removes and returns the next counted answer.
    pub fn next_answer(&mut self) -> Option<ReceivedAnswer> {
        self.answers.pop_front()
    }

    /// A stamp of the reflector.
    fn theirs(&self, at: Stamped, error: ErrorEstimate) -> Stamp {
        let bound = if self.same_clock { Some(Span::ZERO) } else { error.bound() };
        let tai = self.own.tai.unwrap_or(Span::ZERO);
        stamp(at.time(error.format(), tai), bound.unwrap_or(Span::MAX))
    }

    fn read_extensions(&mut self, behind: &[u8], of: &Reflected) {
        let trusted = self.format.key.as_ref();
        let trusted = trusted.is_none_or(|key| key.verifies_extensions(of.sequence, behind));
        if !trusted || self.format.light {
            return;
        }
        for extension in extensions(behind) {
            if let Some(follow_up) = FollowUp::answered(&extension) {
                self.follow_up(follow_up, of);
            }
            if let Some(stamps) = TimestampInformation::answered(&extension) {
                self.peer.stamps = Some(stamps);
            }
            if let Some(class) = ClassOfService::answered(&extension) {
                self.peer.class = Some(class);
            }
        }
    }

    /// Processes the follow-up in an answer: the transmit stamp of an earlier answer, or none.
    fn follow_up(&mut self, follow_up: FollowUp, with: &Reflected) {
        let has_stamp = follow_up.left != Stamped(0);
        self.follow_ups.record(has_stamp);
        if has_stamp {
            // Only a reflector that counts should send follow-ups (RFC 8972 section 4.7). Some copy the
            // sender's numbers and send them too: then follow-ups skip numbers.
            let is_next = follow_up.number == with.sequence.wrapping_sub(1);
            self.copies |= !is_next && with.sequence == with.sent.sequence;
            self.test.set_counted(!self.copies);
            let number = nearest(self.expected_number, follow_up.number);
            self.waiting.set_stamp(number, self.theirs(follow_up.left, with.error));
        }
    }

    /// Processes timeouts at `now`.
    pub fn advance(&mut self, now: Time<Utc>) {
        // A follow-up may be lost, or never be sent.
        let until = if self.follow_ups.is_expected() { now - self.timeout } else { now };
        self.take_complete(Some(until));
        self.test.advance(now - self.waiting.waited(now));
    }

    pub(super) fn take_complete(&mut self, before: Option<Time<Utc>>) {
        while let Some(WaitingAnswer { answer, context, has_stamp }) = self.waiting.next(before) {
            self.take(&answer, context, has_stamp);
        }
    }
}
