//! Where messages begin and end in a stream (RFC 3261 sections 7.5 and 18.3).

use std::iter;

use super::VERSION;

/// Max bytes of a message in a stream.
const MAX_MESSAGE: usize = 65_536;
/// Max bytes of its header.
const MAX_HEAD: usize = 16_384;
/// Max bytes of the first line.
const MAX_FIRST_LINE: usize = 512;

/// The first message in the bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// This many bytes.
    Complete(usize),
    /// Its end is still to come.
    Incomplete,
    /// The bytes are no message, or one that is too long.
    NotSip,
}

/// Finds the end of the message that begins with the first byte: the header ends with an empty line, the body has the
/// stated length (Content-Length).
#[must_use]
pub fn framing(bytes: &[u8]) -> Framing {
    let is_line_complete = bytes.iter().take(MAX_FIRST_LINE).any(|byte| *byte == b'\n');
    let is_sip = if is_line_complete {
        begins_message(bytes)
    } else {
        bytes.len() < MAX_FIRST_LINE && bytes.first().is_none_or(u8::is_ascii_uppercase)
    };
    if !is_sip {
        return Framing::NotSip;
    }
    let length = head_length(bytes).map(|head| {
        let body = content_length(&bytes[..head]);
        body.and_then(|body| head.checked_add(body))
    });
    match length {
        Some(Some(length)) if length <= bytes.len() => Framing::Complete(length),
        Some(Some(length)) if length <= MAX_MESSAGE => Framing::Incomplete,
        None if bytes.len() < MAX_HEAD => Framing::Incomplete,
        Some(_) | None => Framing::NotSip,
    }
}

/// Whether the bytes begin with the first line of a message: it begins or ends with the version (section 7).
#[must_use]
pub fn begins_message(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(MAX_FIRST_LINE)];
    let end = start.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let line = start[..end].trim_ascii_end();
    let is_version = |part: Option<&[u8]>| {
        part.is_some_and(|part| part.eq_ignore_ascii_case(VERSION.as_bytes()))
    };
    let mut words = line.split(|byte| *byte == b' ');
    let (first, last) = (words.next(), words.next_back());
    last.is_some() && (is_version(first) || is_version(last))
}

/// Header and body. Of a header that was not captured completely, the lines that were.
pub(super) fn head_and_body(bytes: &[u8]) -> (&[u8], &[u8]) {
    if let Some(length) = head_length(bytes) {
        return bytes.split_at(length);
    }
    let head = &bytes[..bytes.len().min(MAX_HEAD)];
    // A field is complete when the next one begins.
    let begins_field = |place: &usize| head[place - 1] == b'\n' && !is_fold(head[*place]);
    let lines = (1..head.len()).rfind(begins_field).unwrap_or(0);
    (&head[..lines], &[])
}

/// The lines of a header, without their ends. A line that is continued on the next one (section 7.3.1) is one line here,
/// with the line break in it.
pub(super) fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = head;
    iter::from_fn(move || {
        let ends_line = |place: &usize| {
            rest[place - 1] == b'\n' && rest.get(*place).is_none_or(|next| !is_fold(*next))
        };
        let end = (1..rest.len()).find(ends_line).unwrap_or(rest.len());
        let line = rest.split_off(..end).filter(|line| !line.is_empty())?;
        Some(line.trim_ascii_end())
    })
}

/// Whether a line that begins with this byte continues the line before.
fn is_fold(first: u8) -> bool {
    matches!(first, b' ' | b'\t')
}

/// Length of the header with the empty line at its end; none if it is too long.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    let head = &bytes[..bytes.len().min(MAX_HEAD)];
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        length += line.len();
        if matches!(line, b"\n" | b"\r\n") {
            return Some(length);
        }
    }
    None
}

/// The length of the body; 0 if it is not stated, none if it is unreadable.
fn content_length(head: &[u8]) -> Option<usize> {
    for line in lines(head) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (line[..colon].trim_ascii_end(), line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"Content-Length") || name.eq_ignore_ascii_case(b"l") {
            return str::from_utf8(value).ok()?.parse().ok();
        }
    }
    Some(0)
}
