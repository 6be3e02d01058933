//! A sender's session: makes its packets, and takes what comes back. No socket and no clock of its own.

use std::collections::VecDeque;
use std::net::SocketAddr;

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_metrics::{Reply, ReplyKind, TwoWayCounts, TwoWayTest};
use wirestamp_packet::FlowKey;
use wirestamp_packet::stamp::{
    ClassOfService, ErrorEstimate, Extension, ExtensionFlags, FollowUp, Format, Key, Mode,
    NotStamp, Reflected, Sent, Stamped, TimestampInformation, Value, extensions,
};

use super::follow_up::{Beside, FollowedUp, Told};
use super::report::{Peer, Report};
use super::{Form, Test};
use crate::system_clock::ClockState;
use crate::{low_half, nearest, on_wire};

/// An answer, for those who want to see each.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Which packet it answers.
    pub sequence: u64,
    /// When it came back.
    pub at: Time<Utc>,
    /// From sending to coming back, without the time at the reflector; none of a copy that comes very late.
    pub round_trip: Option<Span>,
    /// From the sender to the reflector, by two clocks.
    pub there: Option<Span>,
    /// And back.
    pub back: Span,
    /// With which TTL or hop limit the packet reached the reflector.
    pub ttl: u8,
    /// What it was taken for.
    pub taken: ReplyKind,
    /// How far the sender's clock can be from UTC, as it says; none if it is not on UTC.
    pub own: Option<Span>,
    /// The same of the reflector's.
    pub theirs: Option<Span>,
}

/// A session.
pub struct Session {
    form: Form,
    to: SocketAddr,
    /// Bytes of the last packet.
    length: usize,
    /// How wrong a stamp of ours is said to be.
    own: ClockState,
    same_clock: bool,
    timeout: Span,
    test: TwoWayTest,
    next: u64,
    expected_number: u64,
    followed_up: FollowedUp,
    tells: Tells,
    /// Whether it was seen to copy our numbers.
    copies: bool,
    /// From which number on packets count for nothing: they only ask what became of the last answers.
    closing: Option<u64>,
    /// Whether one of those was answered.
    is_closed: bool,
    heard: VecDeque<Heard>,
    peer: Peer,
    forged: u64,
    not_stamp: u64,
    strange: u64,
    stamped_by_kernel: u64,
    returned_by_kernel: u64,
}

impl Session {
    /// A session that has sent nothing.
    #[must_use]
    pub fn new(test: &Test, own: ClockState) -> Self {
        let flow = FlowKey { source: test.from, destination: test.to, protocol: 17 };
        Self {
            form: test.form.clone(),
            to: test.to,
            length: 0,
            own,
            same_clock: test.same_clock,
            timeout: test.timeout,
            test: TwoWayTest::new(flow, test.timeout),
            next: 0,
            expected_number: 0,
            followed_up: FollowedUp::default(),
            tells: Tells::default(),
            copies: false,
            closing: None,
            is_closed: false,
            heard: VecDeque::new(),
            peer: Peer::default(),
            forged: 0,
            not_stamp: 0,
            strange: 0,
            stamped_by_kernel: 0,
            returned_by_kernel: 0,
        }
    }

    fn mode(&self) -> Mode<'_> {
        self.form.key.as_ref().map_or(Mode::Open, Mode::Authenticated)
    }

    /// What is known of our clock now.
    pub fn set_clock(&mut self, own: ClockState) {
        self.own = own;
    }

    /// Writes the next packet, which is sent at `now`; returns its number.
    pub fn packet(&mut self, now: Time<Utc>, packet: &mut Vec<u8>) -> u64 {
        packet.clear();
        let sequence = self.next;
        self.next += 1;
        let fields = Sent {
            sequence: low_half(sequence),
            timestamp: mark(now),
            error: self.own.estimate(),
            session: self.form.session,
        };
        fields.write(self.mode(), packet);
        if self.form.light {
            packet.resize(packet.len().max(self.form.length), 0);
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
        if let Some(wanted) = self.form.dscp {
            ClassOfService { wanted, ..ClassOfService::default() }.ask(packet);
        }
        let code = self.form.key.as_ref().map_or(0, |_| Extension::HEAD + Key::CODE_LENGTH);
        let flags = ExtensionFlags { unrecognised: true, ..ExtensionFlags::default() };
        let length = packet.len() + code;
        if self.form.length > length {
            let value = &vec![0; self.form.length.saturating_sub(length + Extension::HEAD)];
            Extension { flags, kind: Extension::PADDING, value }.write(packet);
        }
        if let Some(key) = &self.form.key {
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

    /// The kernel says that a packet left at this time.
    pub fn left(&mut self, sequence: u64, at: Time<Utc>) {
        // What is earlier than the packet was made is of another that had the kernel's number before.
        let is_of_it = self.test.sent_at(sequence).is_some_and(|made| made.utc <= at);
        if is_of_it && self.test.restamp(sequence, self.stamp(at)) {
            self.stamped_by_kernel += 1;
        }
    }

    /// Takes a datagram that came from this address at this time.
    ///
    /// # Errors
    /// Why it is no answer.
    pub fn answer(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        back: Time<Utc>,
    ) -> Result<(), NotStamp> {
        let parsed = Reflected::parse(datagram, self.mode());
        let reflected = parsed.inspect_err(|error| match error {
            NotStamp::TooShort(..) => self.not_stamp += 1,
            NotStamp::Forged => self.forged += 1,
        })?;
        let Reflected { sequence: number, timestamp, error, received, sent, ttl } = reflected;
        let sequence = nearest(self.next.saturating_sub(1), sent.sequence);
        let is_ours = (from.ip(), from.port()) == (self.to.ip(), self.to.port())
            && [0, self.form.session].contains(&sent.session)
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
        self.peer.hear(error, self.own.tai);
        let behind = datagram.get(self.mode().length()..).unwrap_or_default();
        self.read_extensions(behind, &reflected);
        if self.is_closing(sequence) {
            self.test.end(number, answer.returned);
            self.is_closed = true;
            return Ok(());
        }
        let own = self.own.synchronised.then_some(self.own.error);
        let theirs = error.bound().filter(|_| error.is_synchronised());
        let beside = Beside { ttl, own, theirs };
        if self.tells.is_expected() {
            self.followed_up.push(answer, beside);
        } else {
            self.take(&answer, beside, false);
        }
        Ok(())
    }

    /// Takes an answer of which all is known that will be.
    fn take(&mut self, answer: &Reply, beside: Beside, is_told: bool) {
        let there = self.test.sent_at(answer.sequence).map(|sent| answer.received.utc - sent.utc);
        let back = answer.back.utc - answer.returned.utc;
        let taken = self.test.take(*answer);
        self.returned_by_kernel += u64::from(is_told && taken == ReplyKind::First);
        let round_trip = there.map(|there| there + back);
        let Beside { ttl, own, theirs } = beside;
        self.heard.push_back(Heard {
            sequence: answer.sequence,
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

    /// The next of the answers that have been taken.
    pub fn heard(&mut self) -> Option<Heard> {
        self.heard.pop_front()
    }

    /// A stamp of the reflector's.
    fn theirs(&self, at: Stamped, error: ErrorEstimate) -> Stamp {
        let bound = if self.same_clock { Some(Span::ZERO) } else { error.bound() };
        let tai = self.own.tai.unwrap_or(Span::ZERO);
        stamp(at.time(error.format(), tai), bound.unwrap_or(Span::MAX))
    }

    fn read_extensions(&mut self, behind: &[u8], of: &Reflected) {
        let trusted = self.form.key.as_ref();
        let trusted = trusted.is_none_or(|key| key.verifies_extensions(of.sequence, behind));
        if !trusted || self.form.light {
            return;
        }
        for extension in extensions(behind) {
            if let Some(said) = FollowUp::answered(&extension) {
                self.follow_up(said, of);
            }
            if let Some(said) = TimestampInformation::answered(&extension) {
                self.peer.stamps = Some(said);
            }
            if let Some(said) = ClassOfService::answered(&extension) {
                self.peer.class = Some(said);
            }
        }
    }

    /// The reflector says with an answer when an earlier one left, or could say it.
    fn follow_up(&mut self, said: FollowUp, with: &Reflected) {
        let is_word = said.left != Stamped(0);
        self.tells.hear(is_word);
        if is_word {
            // Only one that counts should tell of an earlier answer (RFC 8972 section 4.7). Some copy our
            // numbers and do too: then not every answer is told of with the next number.
            let is_next = said.number == with.sequence.wrapping_sub(1);
            self.copies |= !is_next && with.sequence == with.sent.sequence;
            self.test.set_counted(!self.copies);
            let number = nearest(self.expected_number, said.number);
            self.followed_up.tell(number, self.theirs(said.left, with.error));
        }
    }

    /// Settles what can be settled at `now`.
    pub fn advance(&mut self, now: Time<Utc>) {
        // Its word may be lost, or never have been meant to come.
        let until = if self.tells.is_expected() { now - self.timeout } else { now };
        self.take_followed_up(Some(until));
        self.test.advance(now - self.followed_up.waited(now));
    }

    fn take_followed_up(&mut self, before: Option<Time<Utc>>) {
        while let Some(Told { answer, beside, is_told }) = self.followed_up.next(before) {
            self.take(&answer, beside, is_told);
        }
    }

    /// Whether more is to be learnt from packets behind the end: when the last answer left, and in which
    /// direction the last losses were. Only a reflector that counts can tell.
    #[must_use]
    pub fn wants_closing(&self) -> bool {
        self.tells.is_expected() && !self.is_complete()
    }

    /// What is sent from now on counts for nothing.
    pub fn close(&mut self) {
        self.closing.get_or_insert(self.next);
    }

    /// Whether a packet counts for nothing.
    #[must_use]
    pub fn is_closing(&self, sequence: u64) -> bool {
        self.closing.is_some_and(|first| sequence >= first)
    }

    /// The packet made last was not sent after all.
    pub fn not_sent(&mut self) {
        self.next -= 1;
        if self.closing.is_none() {
            self.test.unsend();
        }
    }

    /// Whether every packet has its answer, though it may not be known when each left.
    #[must_use]
    pub fn all_came(&self) -> bool {
        let TwoWayCounts { sent, answered, .. } = self.test.counts();
        sent <= answered + self.followed_up.len()
    }

    /// Whether all is known that can be: every packet has its answer and it is known when each left, or the end
    /// was answered.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let TwoWayCounts { sent, answered, .. } = self.test.counts();
        self.is_closed || sent == answered && !self.followed_up.is_waiting()
    }

    /// How often each thing has happened so far.
    #[must_use]
    pub fn counts(&self) -> TwoWayCounts {
        self.test.counts()
    }

    /// What came of it: nothing more is waited for.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.take_followed_up(Some(Time::from_nanos(i64::MAX)));
        let closing = self.closing.map_or(0, |first| self.next - first);
        let Self { own, same_clock, peer, forged, not_stamp, strange, length, .. } = self;
        let (stamped_by_kernel, returned_by_kernel) =
            (self.stamped_by_kernel, self.returned_by_kernel);
        let both = self.test.finish();
        Report {
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
            stamped_by_kernel,
            returned_by_kernel,
        }
    }
}

/// When a packet was made, as it is written.
pub(super) fn mark(made: Time<Utc>) -> Stamped {
    Stamped::of(made, Format::Ntp, Span::ZERO)
}

fn stamp(at: Time<Utc>, error: Span) -> Stamp {
    let value = u64::try_from(at.as_nanos()).unwrap_or(0);
    Stamp { raw: RawStamp { domain: Domain::Realtime, value }, utc: at, error }
}

/// Whether the reflector tells when its packets really left. One that knows the extension and no time gives
/// back zeros, as every one does with its first answer.
#[derive(Debug, Default)]
struct Tells {
    has_told: bool,
    in_vain: u32,
}

/// Answers without a word after which no more is expected.
const IN_VAIN: u32 = 16;

impl Tells {
    fn hear(&mut self, is_word: bool) {
        self.has_told |= is_word;
        self.in_vain = self.in_vain.saturating_add(1);
    }

    /// Whether it has answered to the extension at all, and not always in vain.
    const fn is_expected(&self) -> bool {
        self.has_told || (self.in_vain > 0 && self.in_vain < IN_VAIN)
    }
}

#[cfg(test)]
mod tests;
