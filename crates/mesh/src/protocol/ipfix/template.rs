//! What is in records.

use thiserror::Error;

use super::{Element, LEAST_TEMPLATE, Part, VARIABLE, take_u16, take_u32};

/// Of the number of an element: an enterprise's number follows (RFC 7011 section 3.2).
const OF_AN_ENTERPRISE: u16 = 1 << 15;

/// A field of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// What it means.
    pub element: Element,
    /// Its bytes; none if each record says how many.
    pub length: Option<u16>,
}

impl Field {
    fn least(self) -> usize {
        self.length.map_or(1, usize::from)
    }

    fn write(self, bytes: &mut Vec<u8>) {
        let Element { enterprise, number } = self.element;
        let mark = if enterprise == 0 { 0 } else { OF_AN_ENTERPRISE };
        bytes.extend((number & !OF_AN_ENTERPRISE | mark).to_be_bytes());
        bytes.extend(self.length.unwrap_or(VARIABLE).to_be_bytes());
        if enterprise != 0 {
            bytes.extend(enterprise.to_be_bytes());
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (number, length) = (take_u16(bytes)?, take_u16(bytes)?);
        let is_of_one = number & OF_AN_ENTERPRISE != 0;
        let enterprise = if is_of_one { take_u32(bytes)? } else { 0 };
        let element = Element { enterprise, number: number & !OF_AN_ENTERPRISE };
        Some(Self { element, length: (length != VARIABLE).then_some(length) })
    }
}

/// What is in the records of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    id: u16,
    scope: u16,
    fields: Vec<Field>,
    /// The fewest bytes that a record takes.
    least: usize,
}

/// What is no template.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WrongTemplate {
    /// The number is a set's that has no records.
    #[error("a template has a number from 256 on, and not {0}")]
    Number(u16),
    /// It has no fields, or more than can be counted.
    #[error("template {0} has no fields, or more than 65535")]
    Fields(u16),
    /// A field takes no bytes.
    #[error("template {0} has a field without bytes")]
    Empty(u16),
    /// What records are about is more than what is in them.
    #[error("template {0} has a scope of more fields than it has")]
    Scope(u16),
    /// It ends before all of it was said.
    #[error("template {0} is cut off")]
    CutOff(u16),
}

impl Template {
    /// A template. Of an options template (RFC 7011 section 3.4.2.2) the first `scope` fields say what records
    /// are about; 0 of any other.
    ///
    /// # Errors
    /// When there can be none like that.
    pub fn new(id: u16, scope: u16, fields: Vec<Field>) -> Result<Self, WrongTemplate> {
        if id < LEAST_TEMPLATE {
            return Err(WrongTemplate::Number(id));
        }
        if fields.is_empty() || u16::try_from(fields.len()).is_err() {
            return Err(WrongTemplate::Fields(id));
        }
        // Bytes of a message would make more values than they are.
        if fields.iter().any(|field| field.length == Some(0)) {
            return Err(WrongTemplate::Empty(id));
        }
        if usize::from(scope) > fields.len() {
            return Err(WrongTemplate::Scope(id));
        }
        let least = fields.iter().map(|field| field.least()).sum();
        Ok(Self { id, scope, fields, least })
    }

    /// Its number, which is that of sets with its records.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// How many of the fields say what records are about; 0 if it is no options template.
    #[must_use]
    pub fn scope(&self) -> u16 {
        self.scope
    }

    /// What is in records, in their order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The fewest bytes that a record takes.
    pub(super) fn least(&self) -> usize {
        self.least
    }

    /// As it goes into a message.
    #[must_use]
    pub fn part(&self) -> Part {
        let count = u16::try_from(self.fields.len()).unwrap_or(u16::MAX);
        let mut bytes = [self.id.to_be_bytes(), count.to_be_bytes()].concat();
        if self.scope > 0 {
            bytes.extend(self.scope.to_be_bytes());
        }
        self.fields.iter().for_each(|field| field.write(&mut bytes));
        Part::template(self.scope > 0, bytes)
    }

    /// What follows number and count of fields in a set.
    pub(super) fn read(
        id: u16,
        count: u16,
        has_scope: bool,
        bytes: &mut &[u8],
    ) -> Result<Self, WrongTemplate> {
        let cut_off = WrongTemplate::CutOff(id);
        let scope = if has_scope { take_u16(bytes).ok_or(cut_off)? } else { 0 };
        // A scope has to have fields (section 3.4.2.2).
        if has_scope && scope == 0 {
            return Err(WrongTemplate::Scope(id));
        }
        let fields = (0..count).map(|_| Field::read(bytes).ok_or(cut_off));
        let fields = fields.collect::<Result<_, _>>()?;
        Self::new(id, scope, fields)
    }
}
