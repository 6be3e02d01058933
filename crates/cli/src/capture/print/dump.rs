//! The bytes of a packet as text (`-X`, `-x`, `-A`), as tcpdump prints them.

use std::fmt::Write as _;

use wirestamp_packet::LinkType;

/// Bytes in a line of hex.
const LINE: usize = 16;
/// Characters of such a line: a space and four digits for two bytes each.
const LINE_DIGITS: usize = LINE / 2 * 5;

/// Which bytes are printed, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dump {
    pub(super) kind: DumpKind,
    /// Whether the link-layer header is printed too.
    pub(super) with_link_header: bool,
}

/// How bytes are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DumpKind {
    /// In hex, with the ASCII characters behind.
    Hex,
    /// In hex only.
    Digits,
    /// As ASCII characters only.
    Ascii,
}

impl Dump {
    /// The bytes of a frame, on lines of their own.
    pub(super) fn of(self, link: LinkType, frame: &[u8]) -> String {
        let bytes = if self.with_link_header { frame } else { link.content(frame) };
        match self.kind {
            DumpKind::Hex => hex(bytes, true),
            DumpKind::Digits => hex(bytes, false),
            DumpKind::Ascii => ascii(bytes),
        }
    }
}

/// Lines of hex, which end in the ASCII characters if `with_characters`.
fn hex(bytes: &[u8], with_characters: bool) -> String {
    let mut text = String::new();
    for (number, line) in bytes.chunks(LINE).enumerate() {
        let mut digits = String::with_capacity(LINE_DIGITS);
        for pair in line.chunks(2) {
            digits.push(' ');
            for byte in pair {
                let _ = write!(digits, "{byte:02x}");
            }
        }
        let offset = number * LINE;
        let _ = if with_characters {
            let characters: String =
                line.iter().map(|&byte| visible(byte).unwrap_or('.')).collect();
            write!(text, "\n\t{offset:#06x}: {digits:<LINE_DIGITS$}  {characters}")
        } else {
            write!(text, "\n\t{offset:#06x}: {digits}")
        };
    }
    text
}

/// The characters, with spaces, tabs and ends of lines; a carriage return before an end of line is left out.
fn ascii(bytes: &[u8]) -> String {
    let mut text = "\n".to_owned();
    let next = bytes.iter().skip(1).map(Some).chain([None]);
    for (&byte, next) in bytes.iter().zip(next) {
        match byte {
            b' ' | b'\t' | b'\n' => text.push(byte.into()),
            b'\r' if next == Some(&b'\n') => {}
            other => text.push(visible(other).unwrap_or('.')),
        }
    }
    text
}

/// The character of a byte, if it leaves a mark.
fn visible(byte: u8) -> Option<char> {
    byte.is_ascii_graphic().then_some(byte.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: &[u8] = b"GET / \r\n\x00\xffab\rcdefg";

    #[test]
    fn lines_of_hex_have_offset_and_characters() {
        let expected = "\n\t0x0000:  4745 5420 2f20 0d0a 00ff 6162 0d63 6465  GET./.....ab.cde\
                        \n\t0x0010:  6667                                     fg";
        assert_eq!(hex(BYTES, true), expected);
        assert_eq!(hex(&[], true), "");
        let expected = "\n\t0x0000:  4745 5420 2f20 0d0a 00ff 6162 0d63 6465\n\t0x0010:  6667";
        assert_eq!(hex(BYTES, false), expected);
    }

    #[test]
    fn characters_keep_lines() {
        assert_eq!(ascii(BYTES), "\nGET / \n..ab.cdefg");
    }

    #[test]
    fn link_header_is_left_out_unless_requested() {
        let frame = [&[0; 12][..], &[0x08, 0x00], b"Hello"].concat();
        let dump = |with_link_header| {
            Dump { kind: DumpKind::Ascii, with_link_header }.of(LinkType::Ethernet, &frame)
        };
        assert_eq!(dump(false), "\nHello");
        assert_eq!(dump(true), "\n..............Hello");
    }
}
