//! Values and rows of records.

use std::net::IpAddr;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::stamp::{Format, Stamped};

use super::{Element, Field, Part, Template, WrongTemplate};

/// Max bytes of a text; the rest is cut off.
const MAX_TEXT_LENGTH: usize = 1024;

/// A value of an abstract data type (RFC 7011 section 6.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// `unsigned8`.
    U8(u8),
    /// `unsigned16`.
    U16(u16),
    /// `unsigned32`.
    U32(u32),
    /// `unsigned64`.
    U64(u64),
    /// `signed64`.
    I64(i64),
    /// `float64`.
    F64(f64),
    /// `ipv4Address` or `ipv6Address`.
    Address(IpAddr),
    /// `dateTimeNanoseconds`.
    Time(Time<Utc>),
    /// `string`, of any length up to 1024 bytes.
    Text(&'a str),
}

impl Value<'_> {
    fn length(self) -> Option<u16> {
        match self {
            Self::U8(_) => Some(1),
            Self::U16(_) => Some(2),
            Self::U32(_) | Self::Address(IpAddr::V4(_)) => Some(4),
            Self::U64(_) | Self::I64(_) | Self::F64(_) | Self::Time(_) => Some(8),
            Self::Address(IpAddr::V6(_)) => Some(16),
            Self::Text(_) => None,
        }
    }

    fn write(self, bytes: &mut Vec<u8>) {
        match self {
            Self::U8(value) => bytes.push(value),
            Self::U16(value) => bytes.extend(value.to_be_bytes()),
            Self::U32(value) => bytes.extend(value.to_be_bytes()),
            Self::U64(value) => bytes.extend(value.to_be_bytes()),
            Self::I64(value) => bytes.extend(value.to_be_bytes()),
            Self::F64(value) => bytes.extend(value.to_be_bytes()),
            Self::Address(IpAddr::V4(address)) => bytes.extend(address.octets()),
            Self::Address(IpAddr::V6(address)) => bytes.extend(address.octets()),
            Self::Time(time) => {
                bytes.extend(Stamped::of(time, Format::Ntp, Span::ZERO).0.to_be_bytes());
            }
            Self::Text(text) => {
                let text = &text[..text.floor_char_boundary(MAX_TEXT_LENGTH)];
                match u8::try_from(text.len()) {
                    Ok(short) if short < u8::MAX => bytes.push(short),
                    _ => {
                        bytes.push(u8::MAX);
                        // At most 1024.
                        bytes.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
                    }
                }
                bytes.extend(text.as_bytes());
            }
        }
    }
}

/// A record: elements and values, in order. Rows with the same elements and types share a template.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row<'a>(pub Vec<(Element, Value<'a>)>);

impl Row<'_> {
    /// Template of rows like this: see [`Template::new`].
    ///
    /// # Errors
    /// When the template is not valid.
    pub fn template(&self, id: u16, scope: u16) -> Result<Template, WrongTemplate> {
        let field = |(element, value): &(Element, Value<'_>)| Field {
            element: *element,
            length: value.length(),
        };
        Template::new(id, scope, self.0.iter().map(field).collect())
    }

    /// Encodes the row as a record of this template.
    #[must_use]
    pub fn part(&self, template: u16) -> Part {
        let mut bytes = Vec::new();
        self.0.iter().for_each(|(_, value)| value.write(&mut bytes));
        Part::record(template, bytes)
    }
}
