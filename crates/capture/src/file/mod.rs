//! Capture files: pcapng in nanoseconds and classic pcap, out and in; compressed too.
//!
//! Beside what every tool reads, our interface block carries a [`Provenance`] as a comment: which
//! clock made the stamps, and how wrong they can be; a packet that can be more wrong says so. The
//! statistics at the end carry the [`Ledger`](crate::Ledger) in the same way. If the anchors are
//! kept beside the file ([`AnchorLog`]), each packet carries its [`RawValue`], and [`Restamp`]
//! converts all of them again later.

mod account;
mod anchors;
mod buffer;
mod comment;
mod destination;
mod format;
mod growing;
mod interface;
mod local_time;
mod pcap;
mod pcapng;
mod pipe;
mod provenance;
mod raw;
mod reader;
mod restamp;
mod set;
mod source;
mod times;
mod writer;

pub use anchors::{AnchorLog, read_anchors};
pub use destination::{Destination, Rotation};
pub use format::Format;
pub use interface::Interface;
pub use provenance::Provenance;
pub use raw::RawValue;
pub use reader::{Packet, Reader};
pub use restamp::{Conversion, Restamp, Restamped, Watch};
pub use writer::Writer;
