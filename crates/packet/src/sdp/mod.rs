//! Session descriptions (SDP, RFC 8866): destinations and formats of RTP.

mod line;

use std::net::IpAddr;

use crate::rtp::StaticPayloadType;
use line::Medium;

/// One RTP medium of a session: an `m=` line and the lines that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtpMedia<'a> {
    /// `audio`, `video` or another word of RFC 8866 section 5.14.
    pub kind: &'a str,
    /// Address at which the author of the description receives the medium, or the group that it is sent to. `None`
    /// for a host name, `0.0.0.0` or `::` (a call on hold), an unreadable or a missing address; the last of several.
    pub address: Option<IpAddr>,
    /// The UDP port of RTP; not 0.
    pub port: u16,
    /// Number of streams, at ports two apart from `port` on (RFC 8866 section 5.14).
    pub port_count: u16,
    /// Formats of the payload types, the preferred one first.
    pub formats: Vec<RtpFormat<'a>>,
    /// Whether the author sends, receives, or both.
    pub direction: Direction,
    /// The payload is encrypted: a profile of SRTP (RFC 3711 section 12, RFC 5124, RFC 5764 section 8).
    pub encrypted: bool,
}

/// Direction of a medium, from the author's view (RFC 8866 section 6.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Sends and receives; the default.
    #[default]
    SendReceive,
    /// Only sends, as during a hold.
    SendOnly,
    /// Only receives.
    ReceiveOnly,
    /// Neither.
    Inactive,
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
}

/// Finds the session description in a message, and returns its RTP media in order. Media with port 0 are left out:
/// they were rejected (RFC 3264 section 6).
///
/// The description is alone, or a part of the body of SIP (RFC 3261), RTSP or any other protocol with lines of text. It
/// begins with the first line `v=0`, and ends before the first line that is not `letter=value`. `None` if the message has
/// no such line.
#[must_use]
pub fn find(message: &[u8]) -> Option<Vec<RtpMedia<'_>>> {
    let mut lines = message.split_inclusive(|byte| *byte == b'\n');
    lines.find(|line| line.trim_ascii_end() == b"v=0" && line.ends_with(b"\n"))?;
    let mut reader = Reader::default();
    for line in lines {
        let [kind, b'=', value @ ..] = line else { break };
        // Unreadable lines are skipped. So is an unterminated last line: a capture may have truncated it, and a port
        // without its last digit is another port.
        let _ = reader.read(*kind, value);
    }
    Some(reader.media)
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
    /// Default address of the media.
    session: Option<IpAddr>,
    /// Default direction of the media.
    direction: Direction,
    media: Vec<RtpMedia<'a>>,
}

impl<'a> Reader<'a> {
    /// Processes one line; `None` if a relevant line is malformed.
    fn read(&mut self, kind: u8, value: &'a [u8]) -> Option<()> {
        match (kind, &self.scope) {
            (b'm', _) => {
                // If the line is unreadable, the lines after it belong to no known medium.
                self.scope = Scope::Other;
                if let Medium::Rtp(medium) = line::medium(text(value)?)? {
                    self.begin(medium);
                }
            }
            (b'c', Scope::Session) => self.session = line::connection(text(value)?)?,
            (b'c', Scope::Medium) => {
                let medium = self.media.last_mut()?;
                medium.address = text(value).and_then(line::connection).flatten();
            }
            (b'a', Scope::Session) => {
                self.direction = line::direction(value).unwrap_or(self.direction);
            }
            (b'a', Scope::Medium) => self.attribute(value)?,
            _ => {}
        }
        Some(())
    }

    fn begin(&mut self, mut medium: RtpMedia<'a>) {
        (medium.address, medium.direction) = (self.session, self.direction);
        self.media.push(medium);
        self.scope = Scope::Medium;
    }

    fn attribute(&mut self, value: &'a [u8]) -> Option<()> {
        let medium = self.media.last_mut()?;
        medium.direction = line::direction(value).unwrap_or(medium.direction);
        if let Some(value) = value.strip_prefix(b"rtpmap:") {
            let (payload_type, encoding) = line::rtpmap(text(value)?)?;
            let mut formats = medium.formats.iter_mut();
            if let Some(format) = formats.find(|format| format.payload_type == payload_type) {
                format.encoding = Some(encoding);
            }
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
        Self { name: bound.name, clock_rate_hz: bound.clock_rate_hz }
    }
}

#[cfg(test)]
mod tests;
