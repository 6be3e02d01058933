//! SIP messages (RFC 3261): the fields that identify a call and its progress.

mod framing;
mod party;
#[cfg(test)]
mod tests;

pub use framing::{Framing, begins_message, framing};
pub use party::Party;

/// A message; borrows its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Request or response.
    pub start: StartLine<'a>,
    /// Identifier of the call.
    pub call_id: &'a str,
    /// The party that sent the request, also in the response to it.
    pub from: Party<'a>,
    /// The other party.
    pub to: Party<'a>,
    /// Number of the request, also in the responses to it (CSeq).
    pub sequence: u32,
    /// Method of the request, also in the responses to it (CSeq).
    pub method: &'a str,
    /// Captured bytes of the body, such as a session description.
    pub body: &'a [u8],
}

/// The first line of a message (RFC 3261 sections 7.1 and 7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartLine<'a> {
    /// A request.
    Request {
        /// Such as `INVITE`.
        method: &'a str,
    },
    /// A response.
    Response {
        /// 100 to 699.
        status: u16,
        /// Reason phrase; empty if it has control characters.
        reason: &'a str,
    },
}

const VERSION: &str = "SIP/2.0";

/// Max bytes of a method, of a Call-ID, of a tag and of an address; longer ones are not read.
const MAX_METHOD: usize = 32;
const MAX_IDENTIFIER: usize = 1024;

impl<'a> Message<'a> {
    /// Parses a message. `None` if the first line is of another protocol, or if a field is missing, too long, has control
    /// characters, or was not captured.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let (head, body) = framing::head_and_body(&bytes[blank..]);
        let mut lines = framing::lines(head);
        let start = StartLine::parse(str::from_utf8(lines.next()?).ok()?)?;
        let (mut call_id, mut from, mut to, mut sequence) = (None, None, None, None);
        for line in lines {
            let Some((name, value)) = field(line) else { continue };
            let is = |long: &str, short: &str| {
                name.eq_ignore_ascii_case(long) || name.eq_ignore_ascii_case(short)
            };
            if is("Call-ID", "i") {
                call_id = is_identifier(value).then_some(value);
            } else if is("From", "f") {
                from = Party::parse(value);
            } else if is("To", "t") {
                to = Party::parse(value);
            } else if is("CSeq", "CSeq") {
                sequence = cseq(value);
            }
        }
        let (sequence, method) = sequence?;
        Some(Self { start, call_id: call_id?, from: from?, to: to?, sequence, method, body })
    }
}

impl<'a> StartLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (first, rest) = line.split_once(' ')?;
        if first.eq_ignore_ascii_case(VERSION) {
            let (status, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            let reason = if is_printable(reason) { reason } else { "" };
            let status = status.parse().ok().filter(|status| (100..700).contains(status))?;
            return Some(Self::Response { status, reason });
        }
        let is_sip = rest.rsplit(' ').next().is_some_and(|it| it.eq_ignore_ascii_case(VERSION));
        (is_sip && is_method(first)).then_some(Self::Request { method: first })
    }
}

/// Name and value of a header field. A value that is not UTF-8 begins with its `<`, because only a display name may be in
/// another encoding.
fn field(line: &[u8]) -> Option<(&str, &str)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let name = str::from_utf8(name.trim_ascii_end()).ok()?;
    let value = str::from_utf8(value).or_else(|error| {
        let address = value.iter().position(|byte| *byte == b'<').ok_or(error)?;
        str::from_utf8(&value[address..])
    });
    Some((name, value.ok()?.trim_ascii()))
}

/// `314159 INVITE`.
fn cseq(value: &str) -> Option<(u32, &str)> {
    let mut words = value.split_ascii_whitespace();
    let (number, method) = (words.next()?.parse().ok()?, words.next()?);
    is_method(method).then_some((number, method))
}

fn is_method(word: &str) -> bool {
    (1..=MAX_METHOD).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// Whether a Call-ID, a tag or an address can be kept and printed.
fn is_identifier(text: &str) -> bool {
    (1..=MAX_IDENTIFIER).contains(&text.len()) && is_printable(text)
}

/// Whether a terminal shows the text as it is: without control characters, and without those that change the direction
/// or have no width.
fn is_printable(text: &str) -> bool {
    let is_hidden = |it: char| {
        it.is_control()
            || matches!(it, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    !text.chars().any(is_hidden)
}
