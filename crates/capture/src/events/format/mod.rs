//! Fields of events, as the files `events/SYSTEM/EVENT/format` of tracefs describe them.
//!
//! This module reads text and bytes only and accepts any.

use std::borrow::Cow;
use std::fmt;

/// An event and its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// `SYSTEM:EVENT`.
    name: String,
    /// Number of the event in records, `common_type`.
    id: u16,
    /// Fields of all events: type, flags, process.
    common: Vec<Field>,
    /// Fields of this event.
    fields: Vec<Field>,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    offset: usize,
    size: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Pointer,
    /// Text of the field's size, which ends at the first zero.
    Text,
    /// Offset and length of bytes elsewhere in the record. The offset is relative to the end of the field, or to the
    /// begin of the record.
    Located {
        is_text: bool,
        is_relative: bool,
    },
    Bytes,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number without sign.
    Unsigned(u64),
    /// A number with sign.
    Signed(i64),
    /// An address in the kernel.
    Pointer(u64),
    /// Text.
    Text(Cow<'a, str>),
    /// Other bytes.
    Bytes(&'a [u8]),
}

impl EventFormat {
    /// The event in the text of a `format` file of `system`; none if the text lacks a name or number, or a field has
    /// an unknown form.
    #[must_use]
    pub fn parse(system: &str, text: &str) -> Option<Self> {
        let after = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let name = format!("{system}:{}", after("name:")?.trim());
        let id = after("ID:")?.trim().parse().ok()?;
        let declared = text.lines().filter(|line| line.trim_start().starts_with("field:"));
        let all: Option<Vec<_>> = declared.map(Field::parse).collect();
        let (common, fields) = all?.into_iter().partition(|it| it.name.starts_with("common_"));
        Some(Self { name, id, common, fields })
    }

    /// `SYSTEM:EVENT`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of the event in its records.
    #[must_use]
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// Fields of this event, without those of all events.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of this name, including those of all events, such as `common_pid`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().chain(&self.common).find(|field| field.name == name)
    }

    /// The field with the name of the network interface, if there is one. In other systems than `net` and `napi`,
    /// `name` has another meaning, for example in `irq:irq_handler_entry`.
    #[must_use]
    pub fn interface(&self) -> Option<&Field> {
        let is_network = self.name.starts_with("net:") || self.name.starts_with("napi:");
        let names: &[&str] = if is_network { &["name", "dev_name"] } else { &[] };
        names.iter().find_map(|name| self.field(name).filter(|field| field.is_text()))
    }
}

impl Field {
    /// The field in a line such as `field:unsigned int len; offset:16; size:4; signed:0;`, with tabs for the spaces.
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next()?.strip_prefix("field:")?;
        let mut number = |key: &str| parts.next()?.strip_prefix(key)?.trim().parse::<usize>().ok();
        let (offset, size, signed) = (number("offset:")?, number("size:")?, number("signed:")?);
        // `char name[16]`, or `__data_loc char[] name`.
        let (declaration, is_array) = match declaration.split_once('[') {
            Some((start, rest)) => (Cow::Owned([start, rest.split_once(']')?.1].concat()), true),
            None => (Cow::Borrowed(declaration), false),
        };
        let (kind, name) = declaration.rsplit_once([' ', '*'])?;
        let is_text = is_array && kind.ends_with("char") && !kind.contains("unsigned");
        let kind = match (kind.split(' ').next()?, size) {
            ("__data_loc", 4) => Kind::Located { is_text, is_relative: false },
            ("__rel_loc", 4) => Kind::Located { is_text, is_relative: true },
            _ if is_text => Kind::Text,
            _ if is_array => Kind::Bytes,
            (_, 4 | 8) if declaration.contains('*') => Kind::Pointer,
            (_, 1 | 2 | 4 | 8) if signed == 0 => Kind::Unsigned,
            (_, 1 | 2 | 4 | 8) => Kind::Signed,
            _ => Kind::Bytes,
        };
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let valid = !name.is_empty() && name.chars().all(is_name);
        valid.then(|| Self { name: name.to_owned(), offset, size, kind })
    }

    /// Name of the field.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the value is text.
    #[must_use]
    pub const fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Located { is_text: true, .. })
    }

    /// The field's value in a record; none if the record is too short.
    #[must_use]
    pub fn value<'a>(&self, record: &'a [u8]) -> Option<Value<'a>> {
        let end = self.offset.checked_add(self.size)?;
        let bytes = record.get(self.offset..end)?;
        Some(match self.kind {
            Kind::Unsigned => Value::Unsigned(unsigned(bytes)?),
            Kind::Signed => Value::Signed(signed(bytes)?),
            Kind::Pointer => Value::Pointer(unsigned(bytes)?),
            Kind::Text => Value::Text(text(bytes)),
            Kind::Bytes => Value::Bytes(bytes),
            Kind::Located { is_text, is_relative } => {
                let place = unsigned(bytes)?;
                let (low, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
                let start = if is_relative { end.checked_add(low)? } else { low };
                let located = record.get(start..start.checked_add(length)?)?;
                if is_text { Value::Text(text(located)) } else { Value::Bytes(located) }
            }
        })
    }
}

impl Value<'_> {
    /// The number, if it is one without sign or not negative.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match *self {
            Self::Unsigned(value) | Self::Pointer(value) => Some(value),
            Self::Signed(value) => u64::try_from(value).ok(),
            Self::Text(_) | Self::Bytes(_) => None,
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::Pointer(value) => write!(f, "{value:#x}"),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// The text before the first zero; bytes that are not UTF-8 are replaced.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
}

fn unsigned(bytes: &[u8]) -> Option<u64> {
    Some(match *bytes {
        [byte] => byte.into(),
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        _ => u64::from_ne_bytes(bytes.try_into().ok()?),
    })
}

fn signed(bytes: &[u8]) -> Option<i64> {
    Some(match *bytes {
        [byte] => byte.cast_signed().into(),
        [a, b] => i16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_ne_bytes([a, b, c, d]).into(),
        _ => i64::from_ne_bytes(bytes.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests;
