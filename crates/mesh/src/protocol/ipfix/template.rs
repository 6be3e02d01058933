//! Templates: structure of records.

use thiserror::Error;

use super::{Element, MIN_TEMPLATE, Part, VARIABLE, take_u16, take_u32};

/// Flag of an element ID: an enterprise number follows (RFC 7011 section 3.2).
const ENTERPRISE_FLAG: u16 = 1 << 15;

/// A field of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Information element.
    pub element: Element,
    /// Length in bytes; none for variable length.
    pub length: Option<u16>,
}

impl Field {
    fn least(self) -> usize {
        self.length.map_or(1, usize::from)
    }

    fn write(self, bytes: &mut Vec<u8>) {
        let Element { enterprise, number } = self.element;
        let mark = if enterprise == 0 { 0 } else { ENTERPRISE_FLAG };
        bytes.extend((number & !ENTERPRISE_FLAG | mark).to_be_bytes());
        bytes.extend(self.length.unwrap_or(VARIABLE).to_be_bytes());
        if enterprise != 0 {
            bytes.extend(enterprise.to_be_bytes());
        }
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (number, length) = (take_u16(bytes)?, take_u16(bytes)?);
        let is_of_one = number & ENTERPRISE_FLAG != 0;
        let enterprise = if is_of_one { take_u32(bytes)? } else { 0 };
        let element = Element { enterprise, number: number & !ENTERPRISE_FLAG };
        Some(Self { element, length: (length != VARIABLE).then_some(length) })
    }
}

/// Structure of the records of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    id: u16,
    scope: u16,
    fields: Vec<Field>,
    /// Min length of a record.
    least: usize,
}

/// Why a template is not valid.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WrongTemplate {
    /// The ID is reserved.
    #[error("template ID {0} is below 256")]
    Number(u16),
    /// It has no fields, or too many.
    #[error("template {0} has no fields, or more than 65535")]
    Fields(u16),
    /// A field has no bytes.
    #[error("template {0} has a field of length 0")]
    Empty(u16),
    /// The scope has more fields than the template.
    #[error("the scope of template {0} is longer than its fields")]
    Scope(u16),
    /// It is truncated.
    #[error("template {0} is truncated")]
    CutOff(u16),
}

impl Template {
    /// A template. The first `scope` fields of an options template (RFC 7011 section 3.4.2.2) are its scope; 0 for
    /// others.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn new(id: u16, scope: u16, fields: Vec<Field>) -> Result<Self, WrongTemplate> {
        if id < MIN_TEMPLATE {
            return Err(WrongTemplate::Number(id));
        }
        if fields.is_empty() || u16::try_from(fields.len()).is_err() {
            return Err(WrongTemplate::Fields(id));
        }
        // Otherwise a short message could contain any number of values.
        if fields.iter().any(|field| field.length == Some(0)) {
            return Err(WrongTemplate::Empty(id));
        }
        if usize::from(scope) > fields.len() {
            return Err(WrongTemplate::Scope(id));
        }
        let least = fields.iter().map(|field| field.least()).sum();
        Ok(Self { id, scope, fields, least })
    }

    /// ID of the template, and of the sets of its records.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// Number of scope fields; 0 if it is not an options template.
    #[must_use]
    pub fn scope(&self) -> u16 {
        self.scope
    }

    /// Fields in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Min length of a record.
    pub(super) fn least(&self) -> usize {
        self.least
    }

    /// Encodes the template.
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

    /// Decodes the rest of a template, after ID and field count.
    pub(super) fn read(
        id: u16,
        count: u16,
        has_scope: bool,
        bytes: &mut &[u8],
    ) -> Result<Self, WrongTemplate> {
        let cut_off = WrongTemplate::CutOff(id);
        let scope = if has_scope { take_u16(bytes).ok_or(cut_off)? } else { 0 };
        // A scope must have fields (section 3.4.2.2).
        if has_scope && scope == 0 {
            return Err(WrongTemplate::Scope(id));
        }
        let fields = (0..count).map(|_| Field::read(bytes).ok_or(cut_off));
        let fields = fields.collect::<Result<_, _>>()?;
        Self::new(id, scope, fields)
    }
}
