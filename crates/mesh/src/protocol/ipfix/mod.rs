//! IP Flow Information Export (IPFIX, RFC 7011).
//!
//! Messages carry records and the templates that describe them. [`Export`] encodes messages; a [`Session`] decodes any
//! input and stores the templates; [`Digests`] turns packet reports (PSAMP, RFC 5476) into ordered observations.

mod digests;
pub mod element;
mod export;
mod message;
mod record;
mod sequence;
mod session;
mod template;
mod value;

pub use digests::{Digests, HELD_BACK, NotTaken};
pub use element::Element;
pub use export::{Export, Part};
pub use message::{Malformed, Message, Order};
pub use record::Record;
pub use session::{Session, Transport, Unread};
pub use template::{Field, Template, WrongTemplate};
pub use value::{Row, Value};

/// Version in message headers (RFC 7011 section 3.1).
const VERSION: u16 = 10;

/// Header length of messages (section 3.1) and sets (section 3.3.2), in bytes.
const HEADER: usize = 16;
const SET_HEADER: usize = 4;

/// Set IDs of templates (section 3.3.2). Sets from 256 on contain records of the template with that ID.
const TEMPLATES: u16 = 2;
const OPTIONS_TEMPLATES: u16 = 3;
const MIN_TEMPLATE: u16 = 256;

/// Length of variable-length fields (section 7).
const VARIABLE: u16 = u16::MAX;

/// Takes `count` bytes from the front, if available.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn take_u8(bytes: &mut &[u8]) -> Option<u8> {
    take(bytes, 1)?.first().copied()
}

fn take_u16(bytes: &mut &[u8]) -> Option<u16> {
    take(bytes, 2)?.try_into().ok().map(u16::from_be_bytes)
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes, 4)?.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests;
