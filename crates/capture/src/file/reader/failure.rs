//! Why a packet of a capture file cannot be read.

use std::io;

use pcap_file::DataLink;
use pcap_file::pcapng::{
    BlockContentParseError, BlockConversionError, ContentValidationError, OptionEntryError,
    OptionParseError, PcapNgReadError, StateUpdateError,
};
use wirestamp_packet::LinkType;

/// Why a packet cannot be read.
pub(super) enum Failure {
    Damaged(String),
    NotSupported(&'static str),
    LinkType(DataLink),
    WithoutTime,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Damaged(reason)
    }
}

impl From<PcapNgReadError> for Failure {
    fn from(error: PcapNgReadError) -> Self {
        let unsupported = match &error {
            PcapNgReadError::BlockConversion(error)
            | PcapNgReadError::StateUpdate(StateUpdateError::BlockConversion(error)) => {
                unsupported(error)
            }
            _ => None,
        };
        unsupported.map_or_else(|| Self::Damaged(reason(&error)), Self::NotSupported)
    }
}

impl From<BlockConversionError> for Failure {
    fn from(error: BlockConversionError) -> Self {
        unsupported(&error).map_or_else(|| Self::Damaged(reason(&error)), Self::NotSupported)
    }
}

/// What a valid block has that is not supported; none for a damaged block.
fn unsupported(error: &BlockConversionError) -> Option<&'static str> {
    let invalid = match &*error.source {
        BlockContentParseError::Validation(invalid) => invalid,
        BlockContentParseError::Option(OptionParseError::InvalidEntry { source, .. }) => {
            let OptionEntryError::Validation(invalid) = &**source else { return None };
            invalid
        }
        _ => return None,
    };
    match invalid {
        ContentValidationError::InvalidTsResolution(..) => Some(
            "its time stamps are finer than a nanosecond (if_tsresol), which is not supported; \
             convert the file with `tcpdump --nano -r IN -w OUT`",
        ),
        ContentValidationError::FailedToDecodeTimestamp { offset, .. } if *offset < 0 => {
            Some("it has packets from before 1970, which is not supported")
        }
        _ => None,
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
