//! Capture files: pcapng in nanoseconds out; pcapng and classic pcap in.
//!
//! Beside what every tool reads, our interface block carries a [`Provenance`] as a comment: which
//! clock made the stamps, and how wrong they can be. If the anchors are kept beside the file
//! ([`AnchorLog`]), each packet carries its [`RawValue`] in the same way, and [`Restamp`] converts
//! all of them again later.

mod anchors;
mod buffer;
mod provenance;
mod raw;
mod reader;
mod restamp;
mod writer;

pub use anchors::{AnchorLog, read_anchors};
pub use provenance::Provenance;
pub use raw::RawValue;
pub use reader::{Packet, Reader};
pub use restamp::{Conversion, Restamp, Restamped, Watch};
pub use writer::Writer;
