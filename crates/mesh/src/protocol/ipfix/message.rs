//! Messages as they come.

use thiserror::Error;

use super::{HEADER, Record, SET_HEADER, VERSION, take, take_u16, take_u32};

/// What a message says.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// When it was sent, in seconds since 1970, by the clock of its exporter.
    pub second: u32,
    /// The observation domain that it is from.
    pub domain: u32,
    /// How it follows the one before of that domain.
    pub order: Order,
    /// Records that could be read, those of options too.
    pub records: Vec<Record<'a>>,
}

/// How a message follows the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing is known of one before.
    First,
    /// So many records lie between them which did not come, or could not be read.
    Missed(u32),
    /// It was sent before the one that came before it. So many of its records were said to be missed, and come
    /// after all.
    Late(u32),
    /// It has come before.
    Copy,
    /// Its exporter has begun anew, or sends what cannot be told from that.
    Back,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// It has no whole header.
    #[error("a message of {0} bytes is too short for IPFIX")]
    Short(usize),
    /// It is of something else.
    #[error("the message is of version {0}, and IPFIX is version 10")]
    Version(u16),
    /// It is not as long as it says.
    #[error("the message has {has} bytes and says {says}")]
    Length {
        /// Its bytes.
        has: usize,
        /// What its header says.
        says: u16,
    },
    /// A set in it is not as long as it says.
    #[error("a set of {0} bytes does not fit into its message")]
    Set(u16),
    /// There are too many observation domains.
    #[error("the exporter has too many observation domains")]
    Domains,
}

/// Header and sets of a message.
pub(super) struct Raw<'a> {
    pub(super) second: u32,
    pub(super) sequence: u32,
    pub(super) domain: u32,
    /// The number of each set, and what is in it.
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
