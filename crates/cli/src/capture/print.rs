//! Packets as lines of text (`--print`).

use std::io::{self, StdoutLock, Write as _};

use wirestamp_capture::{CaptureLoss, CapturedPacket, Error, Sink};
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::{LinkType, Packet, TcpSegment};
use wirestamp_report::date;
use wirestamp_session::Recording;

use crate::output::{self, count};

/// Protocol numbers (IANA "Assigned Internet Protocol Numbers").
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// A recording whose packets are also printed to standard output, if requested.
pub(super) struct Printing<'a> {
    recording: Recording<'a>,
    link: LinkType,
    out: Option<StdoutLock<'static>>,
}

impl<'a> Printing<'a> {
    /// Prints packets of this link type if `prints`.
    pub(super) fn new(recording: Recording<'a>, link: LinkType, prints: bool) -> Self {
        Self { recording, link, out: prints.then(|| io::stdout().lock()) }
    }

    /// The recording, when all packets are printed.
    pub(super) fn into_recording(self) -> Recording<'a> {
        self.recording
    }

    fn print(&mut self, line: impl FnOnce(LinkType) -> String) -> Result<(), Error> {
        let Some(out) = &mut self.out else { return Ok(()) };
        let printed = writeln!(out, "{}", line(self.link));
        printed.map_err(|cause| Error::Write { path: "-".into(), cause })
    }
}

impl Sink for Printing<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.recording.packet(packet)?;
        self.print(|link| line(link, packet))
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.recording.missed(missed)?;
        self.print(|_| {
            let CaptureLoss { packets, from, until } = *missed;
            let [from, until] = [from, until].map(time);
            format!("{from} to {until}: the capture lost {}", count(packets))
        })
    }

    fn complete(&mut self, until: Time<Utc>) -> Result<(), Error> {
        self.recording.complete(until)
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.recording.pause()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.recording.end()
    }

    fn lost(&self) -> u64 {
        self.recording.lost()
    }
}

/// Time and its max error, protocol, addresses, and lengths of a packet.
fn line(link: LinkType, packet: &CapturedPacket<'_>) -> String {
    let CapturedPacket { stamp, bytes, length, .. } = *packet;
    let error = output::time(stamp.error.as_nanos());
    let content = match Packet::parse(link, bytes) {
        Ok(packet) => content(&packet),
        Err(error) => error.to_string(),
    };
    format!("{} ±{error} {content}, {length} bytes", time(stamp.utc))
}

/// A time with nanoseconds, in UTC.
fn time(time: Time<Utc>) -> String {
    format!("{}.{:09}Z", date(time), time.as_nanos().rem_euclid(1_000_000_000))
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
    let ends = if matches!(flow.protocol, TCP | UDP) && flow.source.port() > 0 {
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

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Span, Stamp};

    use super::*;

    fn printed(protocol: u8, body: &[u8]) -> String {
        let length = u8::try_from(20 + body.len()).unwrap();
        let head = [0x45, 0, 0, length, 0, 1, 0x40, 0, 64, protocol, 0, 0];
        let bytes = [&head[..], &[192, 0, 2, 1, 192, 0, 2, 2], body].concat();
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        let utc = Time::from_nanos(1_795_269_909_000_000_007);
        let stamp = Stamp { raw, utc, error: Span::from_nanos(20) };
        line(LinkType::Ip, &CapturedPacket { stamp, kernel: None, bytes: &bytes, length: 99 })
    }

    #[test]
    fn line_has_time_error_and_content() {
        let when = "2026-11-21 14:05:09.000000007Z ±20 ns";
        let udp = [0, 9, 0, 10, 0, 12, 0, 0, 1, 2, 3, 4];
        let expected = format!("{when} UDP 192.0.2.1:9 > 192.0.2.2:10, payload 4, 99 bytes");
        assert_eq!(printed(UDP, &udp), expected);
        let tcp = [0, 9, 0, 10, 0, 0, 0, 5, 0, 0, 0, 6, 0x50, 0x12, 0, 0, 0, 0, 0, 0];
        let expected =
            format!("{when} TCP 192.0.2.1:9 > 192.0.2.2:10 SYN seq 5 ack 6, payload 0, 99 bytes");
        assert_eq!(printed(TCP, &tcp), expected);
        assert_eq!(printed(47, &[]), format!("{when} protocol 47 192.0.2.1 > 192.0.2.2, 99 bytes"));
    }
}
