//! Decoder of messages.

use thiserror::Error;

use super::{HEADER, Record, SET_HEADER, VERSION, take, take_u16, take_u32};

/// A decoded message.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Export time in seconds since 1970, by the exporter's clock.
    pub second: u32,
    /// Observation domain.
    pub domain: u32,
    /// Order relative to earlier messages of the domain.
    pub order: Order,
    /// Decoded records, including options.
    pub records: Vec<Record<'a>>,
}

/// Order of a message relative to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The first message.
    First,
    /// This number of records is missing before it, or could not be decoded.
    Missed(u32),
    /// It was overtaken; this number of its records was counted as missed.
    Late(u32),
    /// A duplicate.
    Copy,
    /// The exporter has restarted, or its sequence numbers cannot be explained otherwise.
    Back,
}

/// Why a message cannot be decoded.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// The header is truncated.
    #[error("a message of {0} bytes is too short for IPFIX")]
    Short(usize),
    /// The version is not 10.
    #[error("the message has version {0}, not 10 (IPFIX)")]
    Version(u16),
    /// The length in the header is wrong.
    #[error("the message has {has} bytes, but its header states {says}")]
    Length {
        /// Actual length.
        has: usize,
        /// Stated length.
        says: u16,
    },
    /// The length of a set is wrong.
    #[error("a set of {0} bytes does not fit into its message")]
    Set(u16),
    /// The exporter uses too many observation domains.
    #[error("the exporter has too many observation domains")]
    Domains,
}

/// Header and sets of a message.
pub(super) struct Raw<'a> {
    pub(super) second: u32,
    pub(super) sequence: u32,
    pub(super) domain: u32,
    /// ID and contents of each set.
    pub(super) sets: Vec<(u16, &'a [u8])>,
}

impl<'a> Raw<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, Malformed> {
        let has = message.len();
        let (header, mut rest) = message.split_at_checked(HEADER).ok_or(Malformed::Short(has))?;
        let short = || Malformed::Short(has);
        let bytes = &mut &*header;
        let version = take_u16(bytes).ok_or_else(short)?;
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let says = take_u16(bytes).ok_or_else(short)?;
        if usize::from(says) != has {
            return Err(Malformed::Length { has, says });
        }
        let mut number = || take_u32(bytes).ok_or_else(short);
        let (second, sequence, domain) = (number()?, number()?, number()?);
        let mut sets = Vec::new();
        while !rest.is_empty() {
            sets.push(set(&mut rest)?);
        }
        Ok(Self { second, sequence, domain, sets })
    }
}

fn set<'a>(bytes: &mut &'a [u8]) -> Result<(u16, &'a [u8]), Malformed> {
    let left = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    let id = take_u16(bytes).ok_or(Malformed::Set(left))?;
    let length = take_u16(bytes).ok_or(Malformed::Set(left))?;
    let body = usize::from(length).checked_sub(SET_HEADER);
    let body = body.and_then(|body| take(bytes, body)).ok_or(Malformed::Set(length))?;
    Ok((id, body))
}
