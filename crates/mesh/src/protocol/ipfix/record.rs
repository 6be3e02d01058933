//! Records.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::stamp::{Format, Stamped};

use super::{Element, Field, Template, take, take_u8, take_u16};

/// Marks a longer length (RFC 7011 section 7).
const LONGER: u8 = u8::MAX;

/// A record in a message.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    template: Arc<Template>,
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// Takes a record from the front, if it is complete.
    pub(super) fn take(template: &Arc<Template>, bytes: &mut &'a [u8]) -> Option<Self> {
        let mut rest = *bytes;
        for field in template.fields() {
            value(*field, &mut rest)?;
        }
        let bytes = take(bytes, bytes.len() - rest.len())?;
        Some(Self { template: Arc::clone(template), bytes })
    }

    /// Its template.
    #[must_use]
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Values of all fields, in order.
    pub fn values(&self) -> impl Iterator<Item = (Element, &'a [u8])> {
        let mut rest = self.bytes;
        let fields = self.template.fields().iter();
        fields.map_while(move |field| Some((field.element, value(*field, &mut rest)?)))
    }

    /// Value of an element; of the first field, if several have it.
    #[must_use]
    pub fn get(&self, element: Element) -> Option<&'a [u8]> {
        self.values().find(|(it, _)| *it == element).map(|(_, value)| value)
    }

    /// An unsigned number of up to 64 bits (RFC 7011 section 6.2: leading zeros may be omitted).
    #[must_use]
    pub fn unsigned(&self, element: Element) -> Option<u64> {
        let value = self.get(element)?;
        let fits = (1..=8).contains(&value.len());
        fits.then(|| value.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// A time in NTP format (RFC 7011 section 6.1.10).
    #[must_use]
    pub fn time(&self, element: Element) -> Option<Time<Utc>> {
        let value = self.get(element)?.try_into().ok().map(u64::from_be_bytes)?;
        Some(Stamped(value).time(Format::Ntp, Span::ZERO))
    }

    /// An IPv4 or IPv6 address.
    #[must_use]
    pub fn address(&self, element: Element) -> Option<IpAddr> {
        let value = self.get(element)?;
        let v4 = <[u8; 4]>::try_from(value).map(|it| Ipv4Addr::from(it).into());
        v4.or_else(|_| <[u8; 16]>::try_from(value).map(|it| Ipv6Addr::from(it).into())).ok()
    }
}

fn value<'a>(field: Field, bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = match field.length {
        Some(length) => length,
        None => match take_u8(bytes)? {
            LONGER => take_u16(bytes)?,
            short => short.into(),
        },
    };
    take(bytes, length.into())
}
