//! A view over a TCP header (RFC 9293 section 3.1).

use std::ops::Range;

use crate::Packet;

/// Protocol number of TCP (IANA "Assigned Internet Protocol Numbers").
const TCP: u8 = 6;

/// Positions of the fields in the header.
mod field {
    use std::ops::Range;

    pub(super) const SEQUENCE: Range<usize> = 4..8;
    pub(super) const ACKNOWLEDGMENT: Range<usize> = 8..12;
    pub(super) const FLAGS: usize = 13;
    pub(super) const END: usize = 20;
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Sequence range and flags of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// Sequence number of the first byte, or of the SYN.
    pub sequence: u32,
    /// Next expected sequence number, if acknowledged (ACK).
    pub acknowledgment: Option<u32>,
    /// Opens the connection (SYN).
    pub syn: bool,
    /// Ends one direction of the connection (FIN).
    pub fin: bool,
    /// Bytes of payload on the wire.
    pub length: u32,
}

impl TcpSegment {
    /// The segment in a packet. `None` for other protocols, if its header was not captured completely, or if the IP
    /// header does not state its length.
    #[must_use]
    pub fn of(packet: &Packet<'_>) -> Option<Self> {
        if packet.flow().protocol != TCP {
            return None;
        }
        let header = packet.body().first_chunk::<{ field::END }>()?;
        let length = u32::try_from(packet.payload_length()?).ok()?;
        let word =
            |place: Range<usize>| header[place].first_chunk().map(|word| u32::from_be_bytes(*word));
        let flags = header[field::FLAGS];
        Some(Self {
            sequence: word(field::SEQUENCE)?,
            acknowledgment: word(field::ACKNOWLEDGMENT).filter(|_| flags & ACK != 0),
            syn: flags & SYN != 0,
            fin: flags & FIN != 0,
            length,
        })
    }

    /// Number of sequence numbers of the segment: SYN and FIN take one each (RFC 9293 section 3.4).
    #[must_use]
    pub fn numbers(&self) -> u32 {
        self.length.saturating_add(u32::from(self.syn)).saturating_add(u32::from(self.fin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use crate::samples::Datagram;

    /// The segment of the sample datagram, with its UDP header and payload replaced by these bytes.
    fn segment(body: &[u8], captured: usize) -> Option<TcpSegment> {
        let mut packet = Datagram::new(&body[8..]).ipv4();
        packet[9] = TCP;
        packet[20..28].copy_from_slice(&body[..8]);
        let captured = captured.min(packet.len());
        TcpSegment::of(&Packet::parse(LinkType::Ip, &packet[..captured]).expect("an IP packet"))
    }

    fn header(flags: u8, payload: usize) -> Vec<u8> {
        let mut bytes = vec![0, 80, 0, 81, 0, 0, 1, 0, 0, 0, 2, 0, 0x50, flags, 1, 0, 0, 0, 0, 0];
        bytes.resize(bytes.len() + payload, 7);
        bytes
    }

    #[test]
    fn fields_are_parsed() {
        let found = segment(&header(SYN | ACK, 0), 1000).expect("a segment");
        assert_eq!((found.sequence, found.acknowledgment), (256, Some(512)));
        assert_eq!((found.syn, found.fin, found.length, found.numbers()), (true, false, 0, 1));
        let found = segment(&header(FIN, 100), 1000).expect("a segment");
        assert_eq!((found.acknowledgment, found.length, found.numbers()), (None, 100, 101));
    }

    #[test]
    fn length_is_that_on_the_wire() {
        let whole = header(ACK, 100);
        assert_eq!(segment(&whole, 40).expect("a segment").length, 100);
        assert_eq!(segment(&whole, 39), None);
        let datagram = Datagram::new(&[0; 40]).ipv4();
        let udp = Packet::parse(LinkType::Ip, &datagram).expect("an IP packet");
        assert_eq!(TcpSegment::of(&udp), None);
    }
}
