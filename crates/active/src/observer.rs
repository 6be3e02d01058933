//! Notifications for each packet of a test.

use std::net::SocketAddr;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::CaptureLoss;
use wirestamp_packet::stamp::NotStamp;

use crate::sender::ReceivedAnswer;

/// A test packet that has left its sender, or has reached the reflector.
#[derive(Clone, Copy, Debug)]
pub struct TestPacket {
    /// Identity at both ends: the sender's timestamp in the packet, in its format on the wire.
    pub mark: u64,
    /// Number of the session.
    pub session: u16,
    /// Number of the packet at its sender, from 0; none at the reflector.
    pub sequence: Option<u64>,
    /// Send or receive time, by the system clock.
    pub at: Time<Utc>,
    /// Max error of `at` relative to the clock; zero if it is a kernel stamp.
    pub error: Span,
    /// Bytes on the wire, with an Ethernet header, without the frame check sequence.
    pub length: u32,
    /// The sender's address, as seen at this end.
    pub from: SocketAddr,
    /// The reflector's address, as seen at this end.
    pub to: SocketAddr,
}

/// Receives notifications from a sender or reflector. All methods are optional.
pub trait PacketObserver {
    /// A packet has left the sender, or has reached the reflector.
    fn packet(&mut self, _: &TestPacket) {}

    /// The kernel dropped datagrams at the reflector's socket, mostly because its buffer was full: test packets among them are
    /// not lost by the network. Datagrams with a wrong checksum are counted, too.
    fn missed(&mut self, _: &CaptureLoss) {}

    /// All packets before this time have been reported.
    fn complete(&mut self, _: Time<Utc>) {}

    /// A received datagram is not a packet of the test. The total is in the final counts.
    fn rejected(&mut self, _: NotStamp) {}

    /// The reflector does not answer a test packet, because its session exceeds the max rate. It has arrived all the same:
    /// `packet` was called for it.
    fn limited(&mut self) {}

    /// The sender has counted an answer.
    fn answer(&mut self, _: &ReceivedAnswer) {}

    /// The sender has reported all answers within the timeout to packets sent before this time, except those that the
    /// kernel dropped ([`Self::answers_missed`]).
    fn answered(&mut self, _: Time<Utc>) {}

    /// The kernel dropped datagrams at the sender's socket. Answers to packets sent in this interval may be among them.
    fn answers_missed(&mut self, _: &CaptureLoss) {}

    /// The reflector's answer in this session left later than the send time in it, by this; none if the kernel has not
    /// stamped it.
    fn returned(&mut self, _: u16, _: Option<Span>) {}
}

/// Ignores all notifications.
impl PacketObserver for () {}

/// Receives answers only.
impl<F: FnMut(&ReceivedAnswer)> PacketObserver for F {
    fn answer(&mut self, answer: &ReceivedAnswer) {
        self(answer);
    }
}
