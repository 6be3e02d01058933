//! IP Flow Information Export (IPFIX, RFC 7011): what collectors of flows and exporters of packets understand.
//!
//! Messages carry records, and templates that say what is in them. [`Export`] writes messages; a [`Session`]
//! reads them, whatever it is sent, and keeps the templates; [`Digests`] makes observations of records that
//! report packets (PSAMP, RFC 5476), in their order.

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

/// The version in the header of each message (RFC 7011 section 3.1).
const VERSION: u16 = 10;

/// Bytes of the header of a message (section 3.1), and of a set in it (section 3.3.2).
const HEADER: usize = 16;
const SET_HEADER: usize = 4;

/// Sets of templates (section 3.3.2). From 256 on a set has records of the template of that number.
const TEMPLATES: u16 = 2;
const OPTIONS_TEMPLATES: u16 = 3;
const LEAST_TEMPLATE: u16 = 256;

/// The length of a field of which each record says how long it is (section 7).
const VARIABLE: u16 = u16::MAX;

/// Takes so many bytes from the front, if there are as many.
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
