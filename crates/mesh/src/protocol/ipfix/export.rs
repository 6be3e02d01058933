//! Encoder of messages.

use super::{HEADER, OPTIONS_TEMPLATES, SET_HEADER, TEMPLATES, VERSION};

/// An encoded template or record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    set: u16,
    is_record: bool,
    bytes: Vec<u8>,
}

impl Part {
    pub(super) fn template(has_scope: bool, bytes: Vec<u8>) -> Self {
        let set = if has_scope { OPTIONS_TEMPLATES } else { TEMPLATES };
        Self { set, is_record: false, bytes }
    }

    pub(super) fn record(template: u16, bytes: Vec<u8>) -> Self {
        Self { set: template, is_record: true, bytes }
    }
}

/// Export stream of an observation domain to one collector.
#[derive(Clone, Debug)]
pub struct Export {
    domain: u32,
    most: usize,
    sequence: u32,
}

impl Export {
    /// An empty stream. Messages have at most `most` bytes.
    #[must_use]
    pub fn new(domain: u32, most: usize) -> Self {
        Self { domain, most, sequence: 0 }
    }

    /// Encodes parts into messages with this export time (seconds since 1970). A part longer than a message gets its
    /// own.
    #[must_use]
    pub fn messages(&mut self, second: u32, parts: &[Part]) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let mut draft = Draft::default();
        for part in parts {
            if !draft.bytes.is_empty() && HEADER + draft.length_with(part) > self.most {
                messages.push(self.finish(second, &std::mem::take(&mut draft)));
            }
            draft.add(part);
        }
        if !draft.bytes.is_empty() {
            messages.push(self.finish(second, &draft));
        }
        messages
    }

    fn finish(&mut self, second: u32, draft: &Draft) -> Vec<u8> {
        let length = u16::try_from(HEADER + draft.bytes.len()).unwrap_or(u16::MAX);
        let header = [second, self.sequence, self.domain].map(u32::to_be_bytes);
        // The sequence number counts earlier records only (RFC 7011 section 3.1).
        self.sequence = self.sequence.wrapping_add(draft.records);
        let version = [VERSION, length].map(u16::to_be_bytes);
        [version.as_flattened(), header.as_flattened(), &draft.bytes].concat()
    }
}

/// Sets of a message under construction.
#[derive(Default)]
struct Draft {
    bytes: Vec<u8>,
    /// The last set: its ID and offset.
    set: Option<(u16, usize)>,
    records: u32,
}

impl Draft {
    fn continues_set(&self, part: &Part) -> bool {
        self.set.is_some_and(|(set, _)| set == part.set)
    }

    fn length_with(&self, part: &Part) -> usize {
        let header = if self.continues_set(part) { 0 } else { SET_HEADER };
        self.bytes.len() + header + part.bytes.len()
    }

    fn add(&mut self, part: &Part) {
        let begin = match self.set {
            Some((set, begin)) if set == part.set => begin,
            _ => {
                self.set = Some((part.set, self.bytes.len()));
                self.bytes.extend(part.set.to_be_bytes());
                self.bytes.extend([0, 0]);
                self.bytes.len() - SET_HEADER
            }
        };
        self.bytes.extend(&part.bytes);
        self.records += u32::from(part.is_record);
        let length = u16::try_from(self.bytes.len() - begin).unwrap_or(u16::MAX);
        if let Some(place) = self.bytes.get_mut(begin + 2..begin + SET_HEADER) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
}
