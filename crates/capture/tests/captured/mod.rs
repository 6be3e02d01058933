//! A capture without an interface: its facts, its packets, and reading the file back.

use std::path::Path;

use wirestamp_capture::file::{Destination, Interface, Provenance, Reader, Writer};
use wirestamp_capture::{CapturedPacket, Error, Facts, Sink};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};

pub(crate) const FIRST_NS: i64 = 1_795_269_909_123_456_789;

pub(crate) fn facts() -> Facts {
    Facts {
        link: wirestamp_packet::LinkType::Ethernet,
        interface: "tap-a".into(),
        method: "ring",
        stamp: "raw",
        taken: "by the acquisition thread",
        clock: "tsc".into(),
        granularity_ns: 10,
        snaplen: 262_144,
        cores: Vec::new(),
        filter: Some("udp or vlan".into()),
        notes: Vec::new(),
    }
}

/// A writer whose interface block has a max error of 64 ns.
pub(crate) fn writer(destination: &Destination) -> Result<Writer, Error> {
    Writer::to(destination, &facts(), Provenance::of(&facts(), 20))
}

/// A stamp at a time after the first.
pub(crate) fn stamp(after_ns: i64, error_ns: i64) -> Stamp {
    let raw = RawStamp { domain: Domain::Counter, value: 0 };
    let utc = Time::from_nanos(FIRST_NS + after_ns);
    Stamp { raw, utc, error: Span::from_nanos(error_ns) }
}

pub(crate) fn give(writer: &mut Writer, stamp: Stamp, bytes: &[u8]) -> Result<(), Error> {
    writer.packet(&CapturedPacket { stamp, kernel: None, bytes, length: 300_000 })
}

/// A packet read back: time, error and bytes.
pub(crate) type Read = (i64, Option<i64>, Vec<u8>);

/// Content of a file up to the end or the first error.
pub(crate) struct Content {
    pub(crate) packets: Vec<Read>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) end: Result<(), Error>,
}

pub(crate) fn read(path: &Path) -> Content {
    let mut packets = Vec::new();
    let mut reader = match Reader::open(path) {
        Ok(reader) => reader,
        Err(error) => return Content { packets, interfaces: Vec::new(), end: Err(error) },
    };
    let end = loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                let error = packet.error.map(Span::as_nanos);
                packets.push((packet.time.as_nanos(), error, packet.bytes.into_owned()));
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    Content { packets, interfaces: reader.interfaces().to_vec(), end }
}
