//! A packet as a line of text.

use wirestamp_capture::{CaptureLoss, CapturedPacket};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::{IpHeader, LinkType, Packet, TcpSegment};

use super::time::date_and_time;
use super::{Style, link_header};
use crate::output::count;

/// Protocol numbers (IANA "Assigned Internet Protocol Numbers").
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// A packet to print.
#[derive(Clone, Copy, Debug)]
pub(in crate::capture) struct PrintedPacket<'a> {
    pub(in crate::capture) time: Time<Utc>,
    /// Max error of the time, if known.
    pub(in crate::capture) error: Option<Span>,
    pub(in crate::capture) link: LinkType,
    /// Captured bytes.
    pub(in crate::capture) bytes: &'a [u8],
    /// Length on the wire.
    pub(in crate::capture) length: u32,
}

/// A packet as text, with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::capture) struct Line {
    pub(super) time: Time<Utc>,
    /// Max error of the time, if known.
    pub(super) error: Option<Span>,
    /// Protocol, addresses, and lengths. With a dump, more lines follow.
    pub(super) content: String,
}

impl<'a> PrintedPacket<'a> {
    /// A packet of an interface with this link type.
    pub(in crate::capture) fn of(packet: &CapturedPacket<'a>, link: LinkType) -> Self {
        let CapturedPacket { stamp, bytes, length, .. } = *packet;
        Self { time: stamp.utc, error: Some(stamp.error), link, bytes, length }
    }

    /// The packet's text, with the parts of `style`.
    pub(in crate::capture) fn line(&self, style: Style) -> Line {
        let Self { time, error, link, bytes, length } = *self;
        let mut text = String::new();
        if style.link_header {
            text += &link_header::of(link, bytes);
        }
        text += &match Packet::parse(link, bytes) {
            Ok(mut packet) => {
                packet.apply_frame_length(bytes.len(), length);
                content(&packet)
            }
            Err(error) => error.to_string(),
        };
        if style.ip_header
            && let Ok(header) = IpHeader::of(link, bytes)
        {
            text += &ip_header(&header);
        }
        text += &format!(", {length} bytes");
        if let Some(dump) = style.dump {
            text += &dump.of(link, bytes);
        }
        Line { time, error, content: text }
    }
}

/// A loss of the capture.
pub(super) fn of_loss(missed: &CaptureLoss) -> String {
    let CaptureLoss { packets, from, until } = *missed;
    let [from, until] = [from, until].map(date_and_time);
    format!("{from} to {until}: the capture lost {}", count(packets))
}

fn content(packet: &Packet<'_>) -> String {
    let flow = packet.flow();
    let name = match flow.protocol {
        ICMP => "ICMP".to_owned(),
        TCP => "TCP".to_owned(),
        UDP => "UDP".to_owned(),
        ICMPV6 => "ICMPv6".to_owned(),
        other => format!("protocol {other}"),
    };
    // Of a fragment after the first, both are unknown.
    let has_ports = flow.source.port() > 0 || flow.destination.port() > 0;
    let ends = if matches!(flow.protocol, TCP | UDP) && has_ports {
        format!("{} > {}", flow.source, flow.destination)
    } else {
        format!("{} > {}", flow.source.ip(), flow.destination.ip())
    };
    let segment = TcpSegment::of(packet).map(segment).unwrap_or_default();
    let fragment = if packet.is_fragment() { ", fragment" } else { "" };
    let payload = packet.payload_length().map(|length| format!(", payload {length}"));
    format!("{name} {ends}{segment}{fragment}{}", payload.unwrap_or_default())
}

/// Flags and numbers of a TCP segment.
fn segment(segment: TcpSegment) -> String {
    let TcpSegment { sequence, acknowledgment, syn, fin, .. } = segment;
    let flags = [(syn, " SYN"), (fin, " FIN")];
    let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect();
    let acknowledgment = acknowledgment.map(|number| format!(" ack {number}"));
    format!("{flags} seq {sequence}{}", acknowledgment.unwrap_or_default())
}

/// Fields of the IP header; the traffic class and fragmentation only if they are set.
fn ip_header(header: &IpHeader) -> String {
    let hop_limit = if header.version == 4 { "TTL" } else { "hop limit" };
    let mut fields = vec![format!("{hop_limit} {}", header.hop_limit)];
    fields.extend(header.identification.map(|number| format!("id {number}")));
    fields.extend(header.flow_label.map(|label| format!("flow label {label:#07x}")));
    fields.extend(header.dont_fragment.then(|| "DF".to_owned()));
    fields.extend(header.more_fragments.then(|| "MF".to_owned()));
    let offset = header.fragment_offset;
    fields.extend((offset > 0).then(|| format!("offset {offset}")));
    fields.extend((header.dscp > 0).then(|| format!("DSCP {}", header.dscp)));
    fields.extend((header.ecn > 0).then(|| format!("ECN {}", header.ecn)));
    fields.push(match header.length {
        Some(length) => format!("IP length {length}"),
        None => "IP length not stated".to_owned(),
    });
    format!(" ({})", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(protocol: u8, body: &[u8], style: Style) -> String {
        let length = u8::try_from(20 + body.len()).unwrap();
        let head = [0x45, 0, 0, length, 0, 1, 0x40, 0, 64, protocol, 0, 0];
        let bytes = [&head[..], &[192, 0, 2, 1, 192, 0, 2, 2], body].concat();
        let (time, error) = (Time::from_nanos(1_795_269_909_000_000_007), None);
        let packet = PrintedPacket { time, error, link: LinkType::Ip, bytes: &bytes, length: 99 };
        packet.line(style).content
    }

    #[test]
    fn line_has_protocol_addresses_and_lengths() {
        let printed = |protocol, body: &[u8]| line(protocol, body, Style::default());
        let udp = [0, 9, 0, 10, 0, 12, 0, 0, 1, 2, 3, 4];
        let text = "UDP 192.0.2.1:9 > 192.0.2.2:10, payload 4, 99 bytes";
        assert_eq!(printed(UDP, &udp), text);
        let tcp = [0, 9, 0, 10, 0, 0, 0, 5, 0, 0, 0, 6, 0x50, 0x12, 0, 0, 0, 0, 0, 0];
        let text = "TCP 192.0.2.1:9 > 192.0.2.2:10 SYN seq 5 ack 6, payload 0, 99 bytes";
        assert_eq!(printed(TCP, &tcp), text);
        let from_port_0 = [&[0, 0], &udp[2..]].concat();
        let text = "UDP 192.0.2.1:0 > 192.0.2.2:10, payload 4, 99 bytes";
        assert_eq!(printed(UDP, &from_port_0), text);
        assert_eq!(printed(47, &[]), "protocol 47 192.0.2.1 > 192.0.2.2, 99 bytes");
    }

    #[test]
    fn segment_with_ip_length_0_is_printed_with_its_numbers() {
        let head = [0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, TCP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        let tcp = [0, 9, 0, 10, 0, 0, 0, 5, 0, 0, 0, 6, 0x50, 0x12, 0, 0, 0, 0, 0, 0];
        let bytes = [&head[..], &tcp, &[0; 44]].concat();
        let (time, link) = (Time::from_nanos(0), LinkType::Ip);
        let packet = PrintedPacket { time, error: None, link, bytes: &bytes, length: 84 };
        let text = "TCP 192.0.2.1:9 > 192.0.2.2:10 SYN seq 5 ack 6, payload 44, 84 bytes";
        assert_eq!(packet.line(Style::default()).content, text);
    }

    #[test]
    fn verbose_line_has_fields_of_the_ip_header() {
        let style = Style { ip_header: true, ..Style::default() };
        let text = "protocol 47 192.0.2.1 > 192.0.2.2 (TTL 64, id 1, DF, IP length 20), 99 bytes";
        assert_eq!(line(47, &[], style), text);
        let header = IpHeader {
            version: 6,
            dscp: 46,
            ecn: 1,
            hop_limit: 63,
            identification: None,
            flow_label: Some(5),
            dont_fragment: false,
            more_fragments: true,
            fragment_offset: 8,
            length: None,
        };
        let text = " (hop limit 63, flow label 0x00005, MF, offset 8, DSCP 46, ECN 1, IP length not stated)";
        assert_eq!(ip_header(&header), text);
    }
}
