//! A sender's session: writes packets and evaluates answers. Has no socket and no clock.

mod answers;

use std::collections::VecDeque;
use std::net::SocketAddr;

use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_metrics::{TwoWayCounts, TwoWayTest};
use wirestamp_packet::FlowKey;
use wirestamp_packet::stamp::{
    ClassOfService, Extension, ExtensionFlags, FollowUp, Format, Key, Mode, Sent, Stamped,
    TimestampInformation, Value,
};

pub use self::answers::ReceivedAnswer;
use super::follow_up::{FollowUpQueue, FollowUpSupport};
use super::report::{ReflectorInfo, TestReport};
use super::{PacketFormat, TestConfig};
use crate::system_clock::ClockState;
use crate::{low_half, on_wire};

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
