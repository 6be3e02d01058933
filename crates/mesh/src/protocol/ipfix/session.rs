//! Decoding sessions, which store templates.

use std::collections::HashMap;
use std::sync::Arc;

use super::message::Raw;
use super::sequence::Sequence;
use super::{
    MIN_TEMPLATE, Malformed, Message, OPTIONS_TEMPLATES, Record, TEMPLATES, Template, take_u16,
};

/// Limits for one exporter.
const MAX_DOMAINS: usize = 256;
const MAX_FIELDS: usize = 65_536;

/// Lifetime of templates in datagrams, in seconds of the exporter's clock: three times the ten minutes after which
/// exporters send them again (RFC 7011 section 8.4).
const LIFETIME: u32 = 3 * 600;

/// Transport of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams: templates are repeated or expire, and are never withdrawn (RFC 7011 section 8.4).
    Datagrams,
    /// A connection.
    Stream,
}

/// Undecodable input, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Malformed messages.
    pub messages: u64,
    /// Sets of records without a known template.
    pub unknown: u64,
    /// Sets with reserved IDs.
    pub reserved: u64,
    /// Sets with a truncated last record.
    pub cut_off: u64,
    /// Malformed templates, with the rest of their set, or templates beyond the limits.
    pub templates: u64,
}

/// State of an exporter's transport session (RFC 7011 section 2).
#[derive(Debug)]
pub struct Session {
    transport: Transport,
    domains: HashMap<u32, Domain>,
    fields: usize,
    unread: Unread,
}

#[derive(Debug, Default)]
struct Domain {
    templates: HashMap<u16, StoredTemplate>,
    sequence: Sequence,
}

/// A template, and the second of its last arrival.
#[derive(Debug)]
struct StoredTemplate {
    template: Arc<Template>,
    second: u32,
}

impl Session {
    /// An empty session.
    #[must_use]
    pub fn new(transport: Transport) -> Self {
        Self { transport, domains: HashMap::new(), fields: 0, unread: Unread::default() }
    }

    /// Undecodable input so far.
    #[must_use]
    pub fn unread(&self) -> Unread {
        self.unread
    }

    /// Decodes a message, stores its templates, and returns its records.
    ///
    /// # Errors
    /// When it is malformed. This is counted and has no other effect.
    pub fn read<'a>(&mut self, message: &'a [u8]) -> Result<Message<'a>, Malformed> {
        let read = Raw::parse(message).and_then(|raw| self.take(&raw));
        self.unread.messages += u64::from(read.is_err());
        read
    }

    fn take<'a>(&mut self, raw: &Raw<'a>) -> Result<Message<'a>, Malformed> {
        let is_known = self.domains.contains_key(&raw.domain);
        if !is_known && self.domains.len() >= MAX_DOMAINS {
            return Err(Malformed::Domains);
        }
        let mut records = Vec::new();
        for (set, bytes) in &raw.sets {
            match *set {
                TEMPLATES | OPTIONS_TEMPLATES => self.templates(raw, *set, bytes),
                MIN_TEMPLATE.. => self.records(raw, *set, bytes, &mut records),
                _ => self.unread.reserved += 1,
            }
        }
        let sequence = &mut self.domains.entry(raw.domain).or_default().sequence;
        // Undecodable records count as missing with the next message. A message has fewer than 2^32 records.
        let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
        let order = sequence.follow(raw.sequence, count, raw.second);
        Ok(Message { second: raw.second, domain: raw.domain, order, records })
    }

    fn records<'a>(
        &mut self,
        raw: &Raw<'a>,
        set: u16,
        mut bytes: &'a [u8],
        records: &mut Vec<Record<'a>>,
    ) {
        let is_old = |stored: &StoredTemplate| {
            self.transport == Transport::Datagrams
                && raw.second.saturating_sub(stored.second) > LIFETIME
        };
        let stored = self.domains.get(&raw.domain).and_then(|it| it.templates.get(&set));
        let Some(StoredTemplate { template, .. }) = stored.filter(|stored| !is_old(stored)) else {
            self.unread.unknown += 1;
            return;
        };
        let least = template.least();
        // Fewer bytes than any record: padding (RFC 7011 section 3.3.1).
        while bytes.len() >= least {
            let Some(record) = Record::take(template, &mut bytes) else {
                self.unread.cut_off += 1;
                return;
            };
            records.push(record);
        }
    }

    fn templates(&mut self, raw: &Raw<'_>, set: u16, mut bytes: &[u8]) {
        let Raw { domain, second, .. } = *raw;
        while let Some((id, count)) = take_u16(&mut bytes).zip(take_u16(&mut bytes)) {
            if count == 0 {
                self.withdraw(domain, set, id);
                continue;
            }
            match Template::read(id, count, set == OPTIONS_TEMPLATES, &mut bytes) {
                Ok(template) => self.keep(domain, template, second),
                Err(_) => {
                    self.refuse(domain, id);
                    return;
                }
            }
        }
    }

    fn keep(&mut self, domain: u32, template: Template, second: u32) {
        let templates = &mut self.domains.entry(domain).or_default().templates;
        let before = templates.get(&template.id()).map_or(0, |it| it.template.fields().len());
        let fields = self.fields - before + template.fields().len();
        if fields > MAX_FIELDS {
            let id = template.id();
            self.refuse(domain, id);
            return;
        }
        self.fields = fields;
        templates.insert(template.id(), StoredTemplate { template: Arc::new(template), second });
    }

    /// Counts a malformed template and removes its predecessor, which no longer matches the records.
    fn refuse(&mut self, domain: u32, id: u16) {
        self.unread.templates += 1;
        let before = self.domains.get_mut(&domain).and_then(|it| it.templates.remove(&id));
        self.fields -= before.map_or(0, |it| it.template.fields().len());
    }

    /// Withdraws a template, or all of a kind (RFC 7011 section 8.1).
    fn withdraw(&mut self, domain: u32, set: u16, id: u16) {
        if self.transport == Transport::Datagrams {
            self.unread.templates += 1;
            return;
        }
        let Some(domain) = self.domains.get_mut(&domain) else { return };
        let is_options = set == OPTIONS_TEMPLATES;
        domain.templates.retain(|_, StoredTemplate { template, .. }| {
            let is_meant =
                template.id() == id || (id == set && (template.scope() > 0) == is_options);
            self.fields -= if is_meant { template.fields().len() } else { 0 };
            !is_meant
        });
    }
}
