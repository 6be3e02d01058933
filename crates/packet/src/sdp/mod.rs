//! Session descriptions (SDP, RFC 8866): destinations and formats of RTP.

mod line;

use std::net::IpAddr;

use crate::rtp::StaticPayloadType;
use line::{Connection, Medium};

/// The RTP media of a session description; borrows the description's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDescription<'a> {
    /// The media sent by RTP, in the order of their descriptions. Those with port 0 are left out, because they are
    /// rejected (RFC 3264 section 6).
    pub media: Vec<RtpMedia<'a>>,
    /// Number of relevant lines that are not readable. Includes an unterminated last line: a capture may have
    /// truncated it, and a port without its last digit is another port.
    pub unreadable: usize,
}

/// One RTP medium of a session: an `m=` line and the lines that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtpMedia<'a> {
    /// `audio`, `video` or another word of RFC 8866 section 5.14.
    pub kind: &'a str,
    /// The profile, such as `RTP/AVP`.
    pub profile: &'a str,
    /// Address at which the author of the description receives the medium, or the group that it is sent to. `None`
    /// for a host name, `0.0.0.0` or `::` (a call on hold), an unreadable or a missing address; the last of several.
    pub address: Option<IpAddr>,
    /// The UDP port of RTP; not 0.
    pub port: u16,
    /// Number of streams, at ports two apart from `port` on (RFC 8866 section 5.14).
    pub port_count: u16,
    /// Destination of RTCP, as `address` for RTP (RFC 3605).
    pub rtcp_address: Option<IpAddr>,
    /// UDP port of RTCP: by default the one after RTP's.
    pub rtcp_port: Option<u16>,
    /// True if RTCP may use the port of RTP (RFC 5761 section 5.1.1).
    pub rtcp_mux: bool,
    /// Formats of the payload types, the preferred one first.
    pub formats: Vec<RtpFormat<'a>>,
}

/// A payload type and its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpFormat<'a> {
    /// 0 to 127.
    pub payload_type: u8,
    /// Encoding according to the description, otherwise to RFC 3551; `None` without both.
    pub encoding: Option<Encoding<'a>>,
}

/// An encoding, as `a=rtpmap` gives it (RFC 8866 section 6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding<'a> {
    /// Name, such as `opus`; case-insensitive.
    pub name: &'a str,
    /// Ticks of the RTP timestamp per second; not 0.
    pub clock_rate_hz: u32,
    /// Channels of audio: 1 by default. `None` for other media.
    pub channels: Option<u8>,
}

impl<'a> SessionDescription<'a> {
    /// Finds the session description in a message: one that is alone, or a part of the body of SIP (RFC 3261), RTSP
    /// or any other protocol with lines of text. It begins with the first line `v=0`, and ends before the first line
    /// that is not `letter=value`.
    ///
    /// `None` if the message has no such line.
    #[must_use]
    pub fn find(message: &'a [u8]) -> Option<Self> {
        let mut lines = message.split_inclusive(|byte| *byte == b'\n');
        lines.find(|line| line.trim_ascii_end() == b"v=0" && line.ends_with(b"\n"))?;
        let mut reader = Reader::default();
        for line in lines {
            let [kind, b'=', value @ ..] = line else { break };
            if reader.read(*kind, value).is_none() {
                reader.description.unreadable += 1;
            }
        }
        Some(reader.description)
    }
}

/// Scope of the following lines.
#[derive(Default)]
enum Scope {
    /// The session: default for all media.
    #[default]
    Session,
    /// The last medium of the description.
    Medium,
    /// An irrelevant medium.
    Other,
}

#[derive(Default)]
struct Reader<'a> {
    scope: Scope,
    session: Option<Connection>,
    description: SessionDescription<'a>,
}

impl<'a> Reader<'a> {
    /// Takes one line; `None` if it is relevant and not readable.
    fn read(&mut self, kind: u8, value: &'a [u8]) -> Option<()> {
        match (kind, &self.scope) {
            (b'm', _) => {
                // If the line is unreadable, the lines after it belong to no known medium.
                self.scope = Scope::Other;
                if let Medium::Rtp(medium) = line::medium(text(value)?)? {
                    self.begin(medium);
                }
            }
            (b'c', Scope::Session) => self.session = Some(line::connection(text(value)?)?),
            (b'c', Scope::Medium) => {
                let medium = self.description.media.last_mut()?;
                let connection = text(value).and_then(line::connection);
                medium.address = connection.and_then(|connection| connection.address);
                medium.rtcp_address = medium.address;
                connection?;
            }
            (b'a', Scope::Medium) => self.attribute(value)?,
            _ => {}
        }
        Some(())
    }

    fn begin(&mut self, mut medium: RtpMedia<'a>) {
        medium.address = self.session.and_then(|session| session.address);
        medium.rtcp_address = medium.address;
        self.description.media.push(medium);
        self.scope = Scope::Medium;
    }

    fn attribute(&mut self, value: &'a [u8]) -> Option<()> {
        let medium = self.description.media.last_mut()?;
        if let Some(value) = value.strip_prefix(b"rtpmap:") {
            let (payload_type, encoding) = line::rtpmap(text(value)?)?;
            let mut formats = medium.formats.iter_mut();
            if let Some(format) = formats.find(|format| format.payload_type == payload_type) {
                let one = (medium.kind == "audio").then_some(1);
                format.encoding =
                    Some(Encoding { channels: encoding.channels.or(one), ..encoding });
            }
        } else if let Some(value) = value.strip_prefix(b"rtcp:") {
            medium.rtcp_port = None;
            let (port, connection) = line::rtcp(text(value)?)?;
            medium.rtcp_port = Some(port);
            if let Some(connection) = connection {
                medium.rtcp_address = connection.address;
            }
        } else if value.trim_ascii_end() == b"rtcp-mux" {
            medium.rtcp_mux = true;
        }
        Some(())
    }
}

/// Value of a line that is terminated and UTF-8.
fn text(value: &[u8]) -> Option<&str> {
    str::from_utf8(value.strip_suffix(b"\n")?.trim_ascii_end()).ok()
}

impl From<StaticPayloadType> for Encoding<'_> {
    fn from(bound: StaticPayloadType) -> Self {
        let StaticPayloadType { name, clock_rate_hz, channels, .. } = bound;
        Self { name, clock_rate_hz, channels }
    }
}

#[cfg(test)]
mod tests;
