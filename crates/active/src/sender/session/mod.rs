//! A sender's session: writes packets and evaluates answers. Has no socket and no clock.

use std::collections::VecDeque;
use std::net::SocketAddr;

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_metrics::{Reply, ReplyKind, TwoWayCounts, TwoWayTest};
use wirestamp_packet::FlowKey;
use wirestamp_packet::stamp::{
    ClassOfService, ErrorEstimate, Extension, ExtensionFlags, FollowUp, Format, Key, Mode,
    NotStamp, Reflected, Sent, Stamped, TimestampInformation, Value, extensions,
};

use super::follow_up::{AnswerContext, FollowUpQueue, FollowUpSupport, WaitingAnswer};
use super::report::{ReflectorInfo, TestReport};
use super::{PacketFormat, TestConfig};
use crate::system_clock::ClockState;
use crate::{low_half, nearest, on_wire};

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

/// A sender's session.
pub struct Session {
    format: PacketFormat,
    to: SocketAddr,
    /// Bytes of the last packet.
    length: usize,
    /// State of the sender's clock.
    own: ClockState,
    same_clock: bool,
    timeout: Span,
    test: TwoWayTest,
    next: u64,
    expected_number: u64,
    waiting: FollowUpQueue,
    follow_ups: FollowUpSupport,
    /// Whether the reflector copies the sender's numbers instead of counting.
    copies: bool,
    /// Number of the first closing packet; closing packets are not counted.
    closing: Option<u64>,
    /// Whether a closing packet was answered.
    is_closed: bool,
    answers: VecDeque<ReceivedAnswer>,
    peer: ReflectorInfo,
    forged: u64,
    not_stamp: u64,
    strange: u64,
    stamped_by_kernel: u64,
    returned_by_kernel: u64,
}

impl Session {
    /// A session that has sent nothing.
    #[must_use]
    pub fn new(test: &TestConfig, own: ClockState) -> Self {
        let flow = FlowKey { source: test.from, destination: test.to, protocol: 17 };
        Self {
            format: test.format.clone(),
            to: test.to,
            length: 0,
            own,
            same_clock: test.same_clock,
            timeout: test.timeout,
            test: TwoWayTest::new(flow, test.timeout),
            next: 0,
            expected_number: 0,
            waiting: FollowUpQueue::default(),
            follow_ups: FollowUpSupport::default(),
            copies: false,
            closing: None,
            is_closed: false,
            answers: VecDeque::new(),
            peer: ReflectorInfo::default(),
            forged: 0,
            not_stamp: 0,
            strange: 0,
            stamped_by_kernel: 0,
            returned_by_kernel: 0,
        }
    }

    fn mode(&self) -> Mode<'_> {
        self.format.key.as_ref().map_or(Mode::Open, Mode::Authenticated)
    }

    /// Updates the state of the sender's clock.
    pub fn set_clock(&mut self, own: ClockState) {
        self.own = own;
    }

    /// Writes the next packet, sent at `now`; returns its number.
    pub fn packet(&mut self, now: Time<Utc>, packet: &mut Vec<u8>) -> u64 {
        packet.clear();
        let sequence = self.next;
        self.next += 1;
        let fields = Sent {
            sequence: low_half(sequence),
            timestamp: mark(now),
            error: self.own.estimate(),
            session: self.format.session,
        };
        fields.write(self.mode(), packet);
        if self.format.light {
            packet.resize(packet.len().max(self.format.length), 0);
        } else {
            self.ask(low_half(sequence), packet);
        }
        self.length = packet.len();
        if self.closing.is_none() {
            self.test.send(self.stamp(now), self.on_wire(packet.len()));
        }
        sequence
    }

    /// Writes the extensions.
    fn ask(&self, sequence: u32, packet: &mut Vec<u8>) {
        let begin = packet.len();
        FollowUp::default().ask(packet);
        TimestampInformation::default().ask(packet);
        if let Some(requested) = self.format.dscp {
            ClassOfService { requested, ..ClassOfService::default() }.ask(packet);
        }
        let code = self.format.key.as_ref().map_or(0, |_| Extension::HEAD + Key::CODE_LENGTH);
        let flags = ExtensionFlags { unrecognised: true, ..ExtensionFlags::default() };
        let length = packet.len() + code;
        if self.format.length > length {
            let value = &vec![0; self.format.length.saturating_sub(length + Extension::HEAD)];
            Extension { flags, kind: Extension::PADDING, value }.write(packet);
        }
        if let Some(key) = &self.format.key {
            let code = key.code_of_extensions(sequence, &packet[begin..]);
            Extension { flags, kind: Extension::CODE, value: &code }.write(packet);
        }
    }

    fn on_wire(&self, payload: usize) -> u32 {
        on_wire(payload, self.to.is_ipv4())
    }

    fn stamp(&self, at: Time<Utc>) -> Stamp {
        stamp(at, if self.same_clock { Span::ZERO } else { self.own.error })
    }

    /// Sets the time at which the system call that sent a packet had returned. Without a transmit stamp, the packet
    /// left between its own time and this one.
    pub fn sent(&mut self, sequence: u64, until: Time<Utc>) {
        if let Some(made) = self.test.sent_at(sequence) {
            let error = made.error + (until - made.utc).max(Span::ZERO);
            self.test.restamp(sequence, Stamp { error, ..made });
        }
    }

    /// Sets the kernel's transmit stamp of a packet.
    pub fn left(&mut self, sequence: u64, at: Time<Utc>) {
        // A stamp before the packet's own time belongs to a previous packet with the same kernel number.
        let is_own = self.test.sent_at(sequence).is_some_and(|made| made.utc <= at);
        if is_own && self.test.restamp(sequence, self.stamp(at)) {
            self.stamped_by_kernel += 1;
        }
    }

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

    fn take_complete(&mut self, before: Option<Time<Utc>>) {
        while let Some(WaitingAnswer { answer, context, has_stamp }) = self.waiting.next(before) {
            self.take(&answer, context, has_stamp);
        }
    }

    /// Whether closing packets can add data: the transmit stamp of the last answer, and the direction of the
    /// last losses. Only a reflector that counts reports these.
    #[must_use]
    pub fn needs_closing(&self) -> bool {
        self.follow_ups.is_expected() && !self.is_complete()
    }

    /// Starts closing: later packets are not counted.
    pub fn close(&mut self) {
        self.closing.get_or_insert(self.next);
    }

    /// Whether a packet is a closing packet.
    #[must_use]
    pub fn is_closing(&self, sequence: u64) -> bool {
        self.closing.is_some_and(|first| sequence >= first)
    }

    /// Removes the last packet, which was not sent.
    pub fn not_sent(&mut self) {
        self.next -= 1;
        if self.closing.is_none() {
            self.test.unsend();
        }
    }

    /// Whether every packet has its answer; follow-ups may be missing.
    #[must_use]
    pub fn all_came(&self) -> bool {
        let TwoWayCounts { sent, answered, .. } = self.test.counts();
        sent <= answered + self.waiting.len()
    }

    /// Whether the data is complete: every packet has its answer and follow-up, or a closing packet was
    /// answered.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let TwoWayCounts { sent, answered, .. } = self.test.counts();
        self.is_closed || sent == answered && !self.waiting.is_waiting()
    }

    /// Counts the answers that wait for their follow-ups, without them.
    pub fn stop_waiting(&mut self) {
        self.take_complete(Some(Time::from_nanos(i64::MAX)));
    }

    /// Ends the session and returns the result.
    #[must_use]
    pub fn finish(mut self) -> TestReport {
        self.stop_waiting();
        let closing = self.closing.map_or(0, |first| self.next - first);
        let Self { own, same_clock, peer, forged, not_stamp, strange, length, .. } = self;
        let (stamped_by_kernel, returned_by_kernel) =
            (self.stamped_by_kernel, self.returned_by_kernel);
        let both = self.test.finish();
        TestReport {
            both,
            closing,
            own,
            same_clock,
            peer,
            forged,
            not_stamp,
            strange,
            length,
            failed: 0,
            first_error: None,
            answers_dropped: 0,
            stamped_by_kernel,
            returned_by_kernel,
        }
    }
}

/// The send time in a packet: its format on the wire.
pub(super) fn mark(made: Time<Utc>) -> Stamped {
    Stamped::of(made, Format::Ntp, Span::ZERO)
}

fn stamp(at: Time<Utc>, error: Span) -> Stamp {
    let value = u64::try_from(at.as_nanos()).unwrap_or(0);
    Stamp { raw: RawStamp { domain: Domain::Realtime, value }, utc: at, error }
}

#[cfg(test)]
mod tests;
