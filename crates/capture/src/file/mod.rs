//! Writes and reads capture files: pcapng in nanoseconds and classic pcap, also compressed.
//!
//! The interface block has a [`Provenance`] as a comment: the clock of the stamps and their max error. A packet
//! with a larger error has a comment of its own. The statistics at the end have the [`Ledger`](crate::Ledger) as a
//! comment. If the anchors are stored in a second file ([`AnchorLog`]), each packet has its [`RawValue`], and
//! [`Restamp`] can convert all of them again.

mod anchors;
mod buffer;
mod comment;
mod copied;
mod destination;
mod filtered_copy;
mod folder;
mod format;
mod interface;
mod local_time;
mod merged;
mod output;
mod pcap;
mod pcapng;
mod pipe;
mod preallocated;
mod provenance;
mod raw;
mod read_ahead;
mod reader;
mod restamp;
mod selection;
mod set;
mod source;
mod times;
mod writer;

pub use anchors::{AnchorLog, read_anchors};
pub use destination::{Destination, Rotation};
pub use filtered_copy::FilteredCopy;
pub use format::Format;
pub use interface::Interface;
pub use merged::MergedFiles;
pub use provenance::Provenance;
pub use raw::RawValue;
pub use read_ahead::{Packets, ReadAhead, read_ahead};
pub use reader::{Packet, Reader};
pub use restamp::{Conversion, Restamp, Restamped, Watch};
pub use selection::split_interface;
pub use writer::Writer;
