//! A packet of a capture file.

use std::borrow::Cow;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::LinkType;

use crate::CaptureLoss;

/// A packet of a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Index of the interface in [`Reader::interfaces`](super::Reader::interfaces).
    pub interface: usize,
    /// The stamp in the file.
    pub time: Time<Utc>,
    /// Max error of that time, if the file has it.
    pub error: Option<Span>,
    /// Link type of the bytes.
    pub link: LinkType,
    /// Captured bytes.
    pub bytes: Cow<'a, [u8]>,
    /// Packet length on the wire.
    pub length: u32,
    /// Losses of the capture, as far as the file has them between the previous packet and this one. In wirestamp's
    /// files they precede the first packet stamped after them. If a file has statistics only at its end, as those
    /// of dumpcap, the time of losses is unknown: then only
    /// [`Reader::capture_lost`](super::Reader::capture_lost) is available.
    pub missed: Vec<CaptureLoss>,
}

impl Packet<'static> {
    /// A packet without content.
    pub(in crate::file) const fn empty() -> Self {
        Packet {
            interface: 0,
            time: Time::from_nanos(0),
            error: None,
            link: LinkType::Ethernet,
            bytes: Cow::Borrowed(&[]),
            length: 0,
            missed: Vec::new(),
        }
    }
}

impl Packet<'_> {
    /// The packet without its captured bytes, whose place is free then.
    pub(in crate::file) fn without_bytes(self) -> Packet<'static> {
        let Self { interface, time, error, link, length, missed, .. } = self;
        Packet { interface, time, error, link, bytes: Cow::Borrowed(&[]), length, missed }
    }
}
