//! RTP, session descriptions and STAMP, parsed by tshark from the same bytes.

use std::path::Path;
use std::process::Command;

use wirestamp_clock::{Span, Time};
use wirestamp_packet::sdp::{self, Encoding, RtpMedia};
use wirestamp_packet::stamp::{ErrorEstimate, Format, Mode, Reflected, Sent, Stamped};
use wirestamp_packet::{LinkType, Packet, rtp::Rtp};

/// UDP over IPv4 from port 5000 to `port`, without checksums.
fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).expect("a short payload");
    let mut bytes = vec![0x45, 0];
    bytes.extend((20 + length).to_be_bytes());
    bytes.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 77, 1, 1, 10, 77, 2, 2]);
    bytes.extend([5000, port, length, 0].map(u16::to_be_bytes).concat());
    bytes.extend(payload);
    bytes
}

/// A capture of IP packets (pcap `LINKTYPE_RAW`, 101), and tshark's output of the fields of each one.
fn by_tshark(packets: &[Vec<u8>], arguments: &[&str], fields: &[&str]) -> Vec<String> {
    let header = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    let records = packets.iter().map(|packet| {
        let length = u32::try_from(packet.len()).expect("a short packet");
        [&[0, 0, length, length].map(u32::to_le_bytes).concat()[..], packet].concat()
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("peer.pcap");
    std::fs::write(&file, [header, records.flatten().collect()].concat()).expect("a file");
    print(&file, arguments, fields).lines().map(str::to_owned).collect()
}

fn print(file: &Path, arguments: &[&str], fields: &[&str]) -> String {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(arguments).args(["-T", "fields", "-E", "separator=|"]);
    let output = tshark.args(fields.iter().flat_map(|field| ["-e", field])).output();
    let output = output.expect("tshark is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Two hundred RTP packets with all numbers of sources, extensions and padding.
fn stream() -> Vec<Vec<u8>> {
    let packet = |number: u16| {
        let [low, high] = number.to_le_bytes();
        let (sources, extended, padding) = (low % 16, number.is_multiple_of(3), low % 4);
        let flags = 0x80 | u8::from(padding > 0) << 5 | u8::from(extended) << 4 | sources;
        // tshark parses payload type 99 as redundant audio.
        let mut bytes = vec![flags, low << 7 | (100 + low % 27)];
        bytes.extend(number.wrapping_mul(40_503).to_be_bytes());
        bytes.extend(u32::from(number).wrapping_mul(2_654_435_761).to_be_bytes());
        bytes.extend([0xde, 0xad, high, low]);
        bytes.extend((0..sources).flat_map(|source| [0, 0, low, source]));
        if extended {
            bytes.extend([0x12, 0x34, 0, low % 5]);
            bytes.extend((0..low % 5).flat_map(|word| [9, 9, 9, word]));
        }
        bytes.extend((0..=low % 7).map(|byte| byte | 0x40));
        bytes.extend((0..padding).map(|_| padding));
        bytes
    };
    (0..200).map(packet).collect()
}

/// Our values of the fields that tshark prints.
fn written(datagram: &[u8], rtp: &Rtp<'_>) -> String {
    let payload = &datagram[rtp.payload_range().expect("a whole packet")];
    let payload: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{}|{}|{}|0x{:08x}|{payload}",
        rtp.payload_type(),
        rtp.sequence(),
        rtp.timestamp(),
        rtp.ssrc(),
    )
}

#[test]
fn rtp_packets_agree_with_tshark() {
    let packets: Vec<_> = stream().iter().map(|payload| datagram(6000, payload)).collect();
    let fields = ["rtp.p_type", "rtp.seq", "rtp.timestamp", "rtp.ssrc", "rtp.payload"];
    let theirs = by_tshark(&packets, &["-d", "udp.port==6000,rtp"], &fields);
    let ours = packets.iter().map(|bytes| {
        let packet = Packet::parse(LinkType::Ip, bytes).expect("an IP packet");
        let length = packet.payload_length().expect("a whole packet");
        let datagram = packet.payload();
        written(datagram, &Rtp::parse(datagram, length).expect("RTP"))
    });
    assert_eq!(theirs.len(), packets.len());
    for (ours, theirs) in ours.zip(theirs) {
        assert_eq!(ours, theirs);
    }
}

/// Encoding of the last format. tshark prints the encoding of the description, not that of RFC 3551.
fn bound<'a>(medium: &RtpMedia<'a>) -> Encoding<'a> {
    medium.formats.last().and_then(|format| format.encoding).expect("an encoding")
}

#[test]
fn session_description_agrees_with_tshark() {
    let body = "v=0\r\no=alice 1 1 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\n\
        m=audio 49170 RTP/AVP 0 18 96\r\nc=IN IP4 192.0.2.1\r\na=rtpmap:96 opus/48000/2\r\n\
        m=video 51372 RTP/AVP 97\r\nc=IN IP6 2001:db8::7\r\na=rtpmap:97 H264/90000\r\n";
    let message = format!(
        "INVITE sip:bob@example.com SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK7\r\n\
        From: <sip:a@example.com>;tag=1\r\nTo: <sip:bob@example.com>\r\nCall-ID: 1\r\n\
        CSeq: 1 INVITE\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let fields = ["sdp.media.media", "sdp.media.port"];
    let fields =
        [&fields[..], &["sdp.connection_info.address", "sdp.mime.type", "sdp.sample_rate"]]
            .concat();
    let theirs = by_tshark(&[datagram(5060, message.as_bytes())], &[], &fields);

    let media = sdp::find(message.as_bytes()).expect("a description");
    let list = |write: &dyn Fn(&RtpMedia<'_>) -> String| {
        media.iter().map(write).collect::<Vec<_>>().join(",")
    };
    let ours = [
        list(&|medium| medium.kind.to_owned()),
        list(&|medium| medium.port.to_string()),
        list(&|medium| medium.address.expect("an address").to_string()),
        list(&|medium| bound(medium).name.to_owned()),
        list(&|medium| bound(medium).clock_rate_hz.to_string()),
    ];
    assert_eq!(theirs, [ours.join("|")]);
}

/// A packet that was reflected a whole number of milliseconds after 2001-09-09 01:46:40 UTC.
fn reflected(number: u8) -> Reflected {
    let at = |millis: i64| {
        let time = Time::from_nanos(1_000_000_000_000_000_000) + Span::from_millis(millis);
        Stamped::of(time, Format::Ntp, Span::ZERO)
    };
    let error = |nanos| ErrorEstimate::of(Span::from_nanos(nanos), true, Format::Ntp);
    let sequence = u32::from(number) * 0x0101_0101;
    let sent = Sent { sequence, timestamp: at(1), error: error(700), session: 0 };
    let timestamp = at(250);
    Reflected {
        sequence: sequence / 2,
        timestamp,
        error: error(90),
        received: at(125),
        sent,
        ttl: number,
    }
}

#[test]
fn tshark_parses_written_stamp_packets() {
    let packet = |number| {
        let mut payload = Vec::new();
        reflected(number).write(Mode::Open, &mut payload);
        datagram(862, &payload)
    };
    let packets: Vec<_> = (1..=200).map(packet).collect();
    let fields = ["seq_number", "sender_seq_number", "sender_ttl", "error_estimate.multiplier"];
    // tshark parses the sender's timestamps as seconds since 1970 and nanoseconds, whatever the bit Z.
    let times = ["timestamp", "receive_timestamp"];
    let fields: Vec<_> =
        fields.iter().chain(&times).map(|field| format!("twamp.test.{field}")).collect();
    let fields: Vec<_> = fields.iter().map(String::as_str).collect();
    let theirs = by_tshark(&packets, &["-d", "udp.port==862,twamp.test"], &fields);
    assert_eq!(theirs.len(), packets.len());
    for (line, number) in theirs.iter().zip(1..) {
        let Reflected { sequence, sent, error, ttl, .. } = reflected(number);
        let [own, senders] = [error, sent.error].map(|error| error.0 & 0xff);
        let numbers = format!("{sequence}|{}|{ttl}|{own},{senders}|", sent.sequence);
        let times = line.strip_prefix(&numbers).unwrap_or_else(|| panic!("{numbers}: {line}"));
        for (time, fraction) in times.split('|').zip(["250", "125"]) {
            let expected = format!("Sep  9, 2001 01:46:40.{fraction}000000 UTC");
            assert_eq!(time, expected, "{line}");
        }
    }
}
