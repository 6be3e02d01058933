//! Why a packet of a capture file cannot be read.

use std::io;

use pcap_file::DataLink;
use wirestamp_packet::LinkType;

/// Why a packet cannot be read.
pub(super) enum Failure {
    Damaged(String),
    LinkType(DataLink),
    WithoutTime,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Damaged(reason)
    }
}

pub(super) fn link(link: DataLink) -> Result<LinkType, Failure> {
    LinkType::of_number(link.into()).ok_or(Failure::LinkType(link))
}

/// The name of a link type that is not supported, or its number.
pub(super) fn name(link: DataLink) -> String {
    match DataLink::from(u32::from(link) & 0xffff) {
        DataLink::Unknown(number) => number.to_string(),
        known => format!("{known:?} ({})", u32::from(known)),
    }
}

/// The reason as text; the library keeps the operating system's error as the source.
pub(in crate::file) fn reason(error: &dyn std::error::Error) -> String {
    match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        Some(error) => io_reason(error),
        None => error.to_string(),
    }
}

pub(super) fn io_reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        "it ends in the middle of a block".into()
    } else {
        error.to_string()
    }
}
