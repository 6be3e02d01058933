//! Values of the relevant lines, each in the grammar of RFC 8866 section 9.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Direction, Encoding, RtpFormat, RtpMedia};
use crate::rtp::StaticPayloadType;

/// Max bytes of an encoding's name; the longest registered with IANA for RTP have about 20.
const MAX_NAME: usize = 64;

/// Content of an `m=` line.
pub(super) enum Medium<'a> {
    Rtp(RtpMedia<'a>),
    /// Another medium, or a rejected one.
    Other,
}

/// `audio 49170/2 RTP/AVP 0 96`. Addresses remain unset.
pub(super) fn medium(value: &str) -> Option<Medium<'_>> {
    let mut words = value.split_ascii_whitespace();
    let (kind, ports, profile) = (words.next()?, words.next()?, words.next()?);
    let (port, port_count) = match ports.split_once('/') {
        Some((port, count)) => (port, count.parse().ok()?),
        None => (ports, 1),
    };
    let port = port.parse().ok()?;
    // Datagrams only; DTLS-SRTP is RTP under one more name (RFC 5764 section 8).
    if port == 0 || !profile.strip_prefix("UDP/TLS/").unwrap_or(profile).starts_with("RTP/") {
        return Some(Medium::Other);
    }
    Some(Medium::Rtp(RtpMedia {
        kind,
        address: None,
        port,
        port_count,
        formats: formats(words)?,
        direction: Direction::default(),
        encrypted: profile.contains("/SAVP"),
    }))
}

/// Payload types without repetitions, because each can be defined only once.
fn formats<'a>(words: impl Iterator<Item = &'a str>) -> Option<Vec<RtpFormat<'static>>> {
    let mut formats: Vec<RtpFormat<'static>> = Vec::new();
    for word in words {
        let payload_type = payload_type(word)?;
        if formats.iter().all(|format| format.payload_type != payload_type) {
            let encoding = StaticPayloadType::of(payload_type).map(Encoding::from);
            formats.push(RtpFormat { payload_type, encoding });
        }
    }
    Some(formats)
}

fn payload_type(word: &str) -> Option<u8> {
    word.parse().ok().filter(|number| *number < 128)
}

/// The address in `IN IP4 233.252.0.1/127/3`; time to live and number of groups are ignored. `Some(None)` for a host
/// name or the unspecified address.
pub(super) fn connection(value: &str) -> Option<Option<IpAddr>> {
    let mut words = value.split_ascii_whitespace();
    let (network, family, address) = (words.next()?, words.next()?, words.next()?);
    let (address, _) = address.split_once('/').unwrap_or((address, ""));
    let address: Option<IpAddr> = match (network, family) {
        ("IN", "IP4") => address.parse::<Ipv4Addr>().ok().map(IpAddr::from),
        ("IN", "IP6") => address.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        _ => return None,
    };
    Some(address.filter(|address| !address.is_unspecified()))
}

/// An attribute that is a direction (RFC 8866 section 6.7).
pub(super) fn direction(value: &[u8]) -> Option<Direction> {
    match value.trim_ascii_end() {
        b"sendrecv" => Some(Direction::SendReceive),
        b"sendonly" => Some(Direction::SendOnly),
        b"recvonly" => Some(Direction::ReceiveOnly),
        b"inactive" => Some(Direction::Inactive),
        _ => None,
    }
}

/// `96 opus/48000/2`, the value of `a=rtpmap` (RFC 8866 section 6.6).
pub(super) fn rtpmap(value: &str) -> Option<(u8, Encoding<'_>)> {
    let (payload, encoding) = value.split_once(' ')?;
    let mut parts = encoding.trim_ascii().splitn(3, '/');
    let (name, clock_rate_hz) = (parts.next()?, parts.next()?.parse().ok()?);
    parts.next().map(str::parse::<u8>).transpose().ok()?;
    let is_token =
        (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    let known = is_token && clock_rate_hz != 0;
    known.then_some((payload_type(payload)?, Encoding { name, clock_rate_hz }))
}
