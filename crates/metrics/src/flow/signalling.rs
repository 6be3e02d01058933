//! Media sessions announced by SIP.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use wirestamp_packet::FlowKey;
use wirestamp_packet::sdp::{self, RtpMedia};
use wirestamp_packet::sip::{self, Message};

use super::encoding::Encoding;

/// Min number of announced ports that are kept.
const MIN_KEPT: usize = 4096;
/// Max ports of one medium.
const MAX_PORTS: u16 = 16;
/// The port of SIP (RFC 3261 section 19.1.2).
const SIP_PORT: u16 = 5060;

/// Announced media addresses, and the meaning of payload types there.
#[derive(Clone, Debug, Default)]
pub(super) struct Announcements {
    limit: usize,
    media: HashMap<SocketAddr, Announced>,
    /// Addresses with the generation of their announcement; those that were announced again are obsolete.
    oldest_first: VecDeque<(u32, SocketAddr)>,
    /// Changes with each announcement.
    pub(super) generation: u32,
}

/// Payload types at an address, and the generation of the message that announced them.
#[derive(Clone, Debug, Default)]
struct Announced {
    generation: u32,
    encodings: Vec<(u8, Encoding)>,
    /// Call-ID of the message; empty if there is none.
    call: Arc<str>,
    /// Calls with this address that were over when the next one began.
    earlier_calls: u32,
}

impl Announced {
    /// Adds the payload types of a medium. The first meaning of a payload type is kept, so that there are at most 128.
    fn add(&mut self, medium: &RtpMedia<'_>) {
        for format in &medium.formats {
            let number = format.payload_type;
            if self.encodings.iter().any(|(known, _)| *known == number) {
                continue;
            }
            let stated = format.encoding.as_ref();
            let encoding = stated
                .and_then(|stated| Encoding::announced(medium.kind, stated, medium.encrypted));
            self.encodings.extend(encoding.map(|encoding| (number, encoding)));
        }
    }
}

impl Announcements {
    /// Keeps at least this many ports.
    pub(super) fn new(ports: usize) -> Self {
        Self { limit: ports.max(MIN_KEPT), ..Self::default() }
    }

    /// Reads the session description of a message. `follows` is whether the call with the first Call-ID began after the
    /// call with the second one was over.
    #[cold]
    pub(super) fn note(&mut self, message: &[u8], follows: impl Fn(&str, &str) -> bool) {
        let media = sdp::find(message).unwrap_or_default();
        if media.is_empty() {
            return;
        }
        self.generation = self.generation.wrapping_add(1);
        let call: Arc<str> = Message::parse(message).map_or("", |message| message.call_id).into();
        for medium in &media {
            let Some(address) = medium.address else { continue };
            for number in 0..medium.port_count.min(MAX_PORTS) {
                if let Some(port) = medium.port.checked_add(2 * number) {
                    self.announce(address, port, medium, &call, &follows);
                }
            }
        }
    }

    fn announce(
        &mut self,
        address: IpAddr,
        port: u16,
        medium: &RtpMedia<'_>,
        call: &Arc<str>,
        follows: impl Fn(&str, &str) -> bool,
    ) {
        let place = SocketAddr::new(address, port);
        let announced = self.media.entry(place).or_default();
        // Several media of one message may have one port (RFC 8843).
        let is_new = announced.generation != self.generation;
        if is_new {
            let is_next = follows(call, &announced.call);
            *announced = Announced {
                generation: self.generation,
                encodings: Vec::new(),
                call: Arc::clone(call),
                earlier_calls: announced.earlier_calls.wrapping_add(is_next.into()),
            };
        }
        announced.add(medium);
        if !is_new {
            return;
        }
        self.oldest_first.push_back((self.generation, place));
        while self.media.len() > self.limit || self.oldest_first.len() > 2 * self.limit {
            let Some((generation, oldest)) = self.oldest_first.pop_front() else { break };
            if self.media.get(&oldest).is_some_and(|known| known.generation == generation) {
                self.media.remove(&oldest);
            }
        }
    }

    /// Whether media were announced for the destination of this flow.
    pub(super) fn expects(&self, flow: &FlowKey) -> bool {
        self.media.contains_key(&flow.destination)
    }

    /// Upper bound of the calls between the ends of this flow that were over when the next one began: it grows with each such
    /// call. None if the newest announcements of both ends are not of one call.
    pub(super) fn earlier_calls(&self, flow: &FlowKey) -> Option<u32> {
        let (from, to) = self.media.get(&flow.source).zip(self.media.get(&flow.destination))?;
        (from.call == to.call).then_some(from.earlier_calls.min(to.earlier_calls))
    }

    /// Encoding of a payload type in a flow: as announced by the receiver, else by the sender (behind address
    /// translation, only the sender may be known), else by RFC 3551.
    pub(super) fn encoding(&self, flow: &FlowKey, payload_type: u8) -> Option<Encoding> {
        let announced = [&flow.destination, &flow.source].into_iter().find_map(|end| {
            let media = self.media.get(end)?;
            media.encodings.iter().find(|(number, _)| *number == payload_type)
        });
        announced.map(|(_, it)| it.clone()).or_else(|| Encoding::fixed(payload_type))
    }
}

/// Whether a payload is a SIP message: by port, or by its first line.
#[inline]
pub(super) fn is_sip(flow: &FlowKey, payload: &[u8]) -> bool {
    payload.first().is_some_and(u8::is_ascii_uppercase)
        && (flow.source.port() == SIP_PORT
            || flow.destination.port() == SIP_PORT
            || sip::begins_message(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "Content-Type: application/sdp\r\n\r\nv=0\r\nc=IN IP4 192.0.2.7\r\n\
        m=audio 4000/2 RTP/AVP 96 0\r\na=rtpmap:96 opus/48000/2\r\n";

    fn flow(source: &str, destination: &str) -> FlowKey {
        let parse = |text: &str| text.parse().expect("an address");
        FlowKey { source: parse(source), destination: parse(destination), protocol: 17 }
    }

    fn read(ports: (u16, u16), first_line: &str) -> Announcements {
        let [from, to] = [ports.0, ports.1].map(|port| format!("192.0.2.1:{port}"));
        let mut announced = Announcements::new(0);
        let message = format!("{first_line}\r\n{BODY}");
        if is_sip(&flow(&from, &to), message.as_bytes()) {
            announced.note(message.as_bytes(), |_, _| false);
        }
        announced
    }

    #[test]
    fn announced_payload_types_are_used() {
        let announced = read((5060, 9), "INVITE sip:a@b SIP/2.0");
        let to = |port: u16| flow("198.51.100.1:7", &format!("192.0.2.7:{port}"));
        let name = |flow: &FlowKey, number| announced.encoding(flow, number).map(|it| it.name);
        assert_eq!(name(&to(4000), 96).as_deref(), Some("opus"));
        assert_eq!(name(&to(4002), 96).as_deref(), Some("opus"));
        assert_eq!(name(&to(4001), 96), None);
        assert_eq!(name(&to(4000), 0).as_deref(), Some("PCMU"));
        assert_eq!(name(&to(9), 8).as_deref(), Some("PCMA"));
        let back = flow("192.0.2.7:4000", "198.51.100.1:7");
        assert_eq!(name(&back, 96).as_deref(), Some("opus"));
        assert!(announced.expects(&to(4000)) && !announced.expects(&back));
    }

    #[test]
    fn sip_is_recognised_by_port_or_first_line() {
        let found = |ports, line| read(ports, line).generation > 0;
        assert!(found((9, 5060), "ANYTHING"));
        assert!(found((9, 9), "SIP/2.0 200 OK"));
        assert!(found((9, 9), "UPDATE sip:a@b SIP/2.0"));
        assert!(!found((9, 9), "GET / HTTP/1.1"));
        assert!(!found((9, 9), "SIP/2.0"));
        assert!(!found((5060, 9), "\0\0"));
    }

    #[test]
    fn payload_types_of_one_port_are_kept_once() {
        let lines = "m=audio 4000/16 RTP/AVP 0 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n";
        let message = format!("v=0\nc=IN IP4 192.0.2.7\n{}", lines.repeat(900));
        let mut announced = Announcements::new(0);
        announced.note(message.as_bytes(), |_, _| false);
        assert_eq!(announced.media.len(), usize::from(MAX_PORTS));
        assert!(announced.media.values().all(|it| it.encodings.len() <= 17));
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_is_removed() {
        let mut announced = Announcements::new(0);
        for number in 0..5000u32 {
            let [_, _, high, low] = number.to_be_bytes();
            let line = format!("v=0\nc=IN IP4 10.0.{high}.{low}\nm=audio 4000 RTP/AVP 0\n");
            announced.note(line.as_bytes(), |_, _| false);
        }
        assert_eq!((announced.media.len(), announced.oldest_first.len()), (MIN_KEPT, MIN_KEPT));
        let to = |host: &str| announced.expects(&flow("192.0.2.1:9", &format!("{host}:4000")));
        assert!(!to("10.0.0.0") && to("10.0.19.135"));
    }
}
