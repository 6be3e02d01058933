//! Those who want to know of each packet.

use std::net::SocketAddr;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::stamp::NotStamp;

use crate::sender::Heard;

/// A test packet that has left its sender, or has reached the reflector.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// What it is known by at both ends: the time that its sender has written into it, as it stands there.
    pub mark: u64,
    /// The number of its session.
    pub session: u16,
    /// When it passed, by the system clock.
    pub at: Time<Utc>,
    /// How far that can be off from what the clock said: nothing if the stamp is the kernel's.
    pub error: Span,
    /// Its bytes on the wire, with an Ethernet header, without the frame check sequence.
    pub length: u32,
    /// The sender's address, as it is known here.
    pub from: SocketAddr,
    /// The reflector's address, as it is known here.
    pub to: SocketAddr,
}

/// Is told what passes an end of a test. What is not wanted need not be heard.
pub trait Witness {
    /// A packet has left the sender, or has reached the reflector.
    fn passes(&mut self, _: &Passage) {}

    /// Everything has been told of that passed before this time.
    fn complete(&mut self, _: Time<Utc>) {}

    /// A datagram has come that is no packet of the test. How many did is told otherwise when the end has ended.
    fn refuses(&mut self, _: NotStamp) {}

    /// The sender has taken an answer.
    fn heard(&mut self, _: &Heard) {}
}

/// Nobody.
impl Witness for () {}

/// Hears answers only.
impl<F: FnMut(&Heard)> Witness for F {
    fn heard(&mut self, heard: &Heard) {
        self(heard);
    }
}
