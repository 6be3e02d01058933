//! The observations of a capture file.

use std::collections::BTreeSet;

use wirestamp_capture::file::{Provenance, Reader};
use wirestamp_capture::{Error, Filter};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_metrics::Observation;
use wirestamp_packet::LinkType;

use crate::meeting::observe;

/// A file, as far as it has been read.
pub(super) struct File<'a> {
    pub(super) reader: Reader,
    filter: Option<&'a Filter>,
    partial: bool,
    /// The interfaces of the packets that were recognised.
    interfaces: BTreeSet<usize>,
    pub(super) unidentified: u64,
    pub(super) damage: Option<String>,
}

impl<'a> File<'a> {
    /// A file of which nothing has been read yet.
    pub(super) fn new(reader: Reader, partial: bool, filter: Option<&'a Filter>) -> Self {
        let interfaces = BTreeSet::new();
        Self { reader, filter, partial, interfaces, unidentified: 0, damage: None }
    }

    /// The next packet that passes the filter and can be recognised.
    pub(super) fn next(&mut self) -> Result<Option<Observation>, Error> {
        while self.damage.is_none() {
            let packet = match self.reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(error) if self.partial => {
                    self.damage = Some(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            if self.filter.is_some_and(|filter| !passes(filter, packet.link, &packet.bytes)) {
                continue;
            }
            let stamp = stamp(packet.time);
            match observe(packet.link, &packet.bytes, packet.length, stamp) {
                Some(observation) => {
                    self.interfaces.insert(packet.interface);
                    return Ok(Some(observation));
                }
                None => self.unidentified += 1,
            }
        }
        Ok(None)
    }

    /// What is said of the interfaces that took part; of all, if no packet did.
    pub(super) fn used(&self) -> Vec<Option<&Provenance>> {
        let interfaces = self.reader.interfaces();
        let said = |place: usize| interfaces[place].provenance.as_ref();
        if self.interfaces.is_empty() {
            (0..interfaces.len()).map(said).collect()
        } else {
            self.interfaces.iter().copied().map(said).collect()
        }
    }
}

/// A file's stamps are system time already; how wrong they are is said for an interface as a whole.
pub(super) fn stamp(time: Time<Utc>) -> Stamp {
    let value = u64::try_from(time.as_nanos()).unwrap_or(0);
    let raw = RawStamp { domain: Domain::Realtime, value };
    Stamp { raw, utc: time, error: Span::ZERO }
}

/// Filters are compiled for Ethernet frames; a packet that was captured without gets a header.
fn passes(filter: &Filter, link: LinkType, bytes: &[u8]) -> bool {
    match link {
        LinkType::Ethernet => filter.passes(bytes),
        LinkType::Ip => {
            let version = bytes.first().map_or(0, |byte| byte >> 4);
            let ethertype: [u8; 2] = if version == 6 { [0x86, 0xdd] } else { [0x08, 0x00] };
            filter.passes(&[&[0; 12], &ethertype[..], bytes].concat())
        }
    }
}
