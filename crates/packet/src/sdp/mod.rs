//! Session descriptions (SDP, RFC 8866): where RTP goes, and what it is.

mod line;

use std::net::IpAddr;

use crate::rtp::StaticPayloadType;
use line::{Connection, Medium};

/// What a session description says about RTP; borrows the description's bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDescription<'a> {
    /// The media sent by RTP, in the order of their descriptions. Those with port 0 are left out:
    /// they are refused (RFC 3264 section 6).
    pub media: Vec<RtpMedia<'a>>,
    /// How many of the lines that matter could not be read, among them the last one if it does
    /// not end: a capture may have cut it off, and a port short of a digit is another port.
    pub unreadable: usize,
}

/// One medium of a session that is sent by RTP: an `m=` line and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtpMedia<'a> {
    /// `audio`, `video` or another word of RFC 8866 section 5.14.
    pub kind: &'a str,
    /// The profile, such as `RTP/AVP`.
    pub profile: &'a str,
    /// Where the author of the description wants to receive it, or the group that it is sent to.
    /// `None` where that is a host's name, `0.0.0.0` or `::` (a call on hold), unreadable, or not
    /// said; the last of several.
    pub address: Option<IpAddr>,
    /// The UDP port of RTP; not 0.
    pub port: u16,
    /// How many streams there are, at ports two apart from `port` on (RFC 8866 section 5.14).
    pub port_count: u16,
    /// Where RTCP goes, as `address` says it for RTP (RFC 3605).
    pub rtcp_address: Option<IpAddr>,
    /// The UDP port of RTCP: the one after RTP's where nothing else is said.
    pub rtcp_port: Option<u16>,
    /// Whether RTCP may come to the port of RTP instead (RFC 5761 section 5.1.1).
    pub rtcp_mux: bool,
    /// What the payload types mean, the preferred one first.
    pub formats: Vec<RtpFormat<'a>>,
}

/// A payload type and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpFormat<'a> {
    /// 0 to 127.
    pub payload_type: u8,
    /// What the description binds it to, or else RFC 3551; `None` where neither does.
    pub encoding: Option<Encoding<'a>>,
}

/// An encoding, as `a=rtpmap` gives it (RFC 8866 section 6.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding<'a> {
    /// Its name, such as `opus`; capital and small letters mean the same.
    pub name: &'a str,
    /// Ticks of the RTP timestamp a second; not 0.
    pub clock_rate_hz: u32,
    /// Channels of audio: 1 where a description names none. `None` for other media.
    pub channels: Option<u8>,
}

impl<'a> SessionDescription<'a> {
    /// Finds the session description in a message: one that is alone, or a part of the body of
    /// SIP (RFC 3261), RTSP or anything else with lines of text. It begins with the first line
    /// `v=0`, and ends with the first line that is not `letter=value`.
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

/// What the lines that follow belong to.
#[derive(Default)]
enum Scope {
    /// The session, and so every medium that says nothing else.
    #[default]
    Session,
    /// The last medium of the description.
    Medium,
    /// A medium that is of no interest.
    Other,
}

#[derive(Default)]
struct Reader<'a> {
    scope: Scope,
    session: Option<Connection>,
    description: SessionDescription<'a>,
}

impl<'a> Reader<'a> {
    /// Takes in one line; `None` if it matters and cannot be read.
    fn read(&mut self, kind: u8, value: &'a [u8]) -> Option<()> {
        match (kind, &self.scope) {
            (b'm', _) => {
                // Should the line be unreadable, those after it belong to no medium we know.
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

/// The value of a line that ends and is UTF-8.
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
