//! Authentication of test packets (RFC 8762 section 4.4).

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{Extension, extensions};

/// Bytes of a code: HMAC-SHA-256 truncated to 128 bits.
pub(super) const CODE: usize = 16;

/// A secret that sender and reflector share.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Bytes of a code.
    pub const CODE_LENGTH: usize = CODE;

    /// A key of any length; RFC 4868 section 2.1.1 requires at least 32 bytes.
    #[must_use]
    pub fn new(secret: &[u8]) -> Option<Self> {
        Hmac::new_from_slice(secret).ok().map(Self)
    }

    /// The code of these bytes, which precede it in a packet.
    pub(super) fn code(&self, bytes: &[u8]) -> [u8; CODE] {
        let whole = self.0.clone().chain_update(bytes).finalize().into_bytes();
        let mut code = [0; CODE];
        code.iter_mut().zip(whole).for_each(|(code, byte)| *code = byte);
        code
    }

    /// The code of `extensions` in a packet with this sequence number (RFC 8972 section 4.8). `extensions` are those
    /// before the extension that carries the code.
    #[must_use]
    pub fn code_of_extensions(&self, sequence: u32, extensions: &[u8]) -> [u8; CODE] {
        self.code(&[&sequence.to_be_bytes(), extensions].concat())
    }

    /// True if the extensions of a packet with this sequence number carry a valid code, followed only by padding, or
    /// consist only of padding, which needs no code.
    #[must_use]
    pub fn verifies_extensions(&self, sequence: u32, bytes: &[u8]) -> bool {
        let (mut ahead, mut is_coded, mut only_padding) = (0, false, true);
        for extension in extensions(bytes) {
            if extension.kind == Extension::CODE && !is_coded {
                let coded = [&sequence.to_be_bytes(), &bytes[..ahead]].concat();
                if !self.verifies(&coded, extension.value) {
                    return false;
                }
                (is_coded, only_padding) = (true, true);
            } else {
                only_padding &= extension.kind == Extension::PADDING && !extension.flags.malformed;
            }
            ahead += Extension::HEAD + extension.value.len();
        }
        only_padding
    }

    /// True if `code` belongs to `bytes`, compared in constant time.
    pub(super) fn verifies(&self, bytes: &[u8], code: &[u8]) -> bool {
        // A shorter code could be right by chance.
        code.len() == CODE && self.0.clone().chain_update(bytes).verify_truncated_left(code).is_ok()
    }
}

/// Layout of packets.
#[derive(Clone, Copy, Debug)]
pub enum Mode<'a> {
    /// Without a code.
    Open,
    /// With a code by this key.
    Authenticated(&'a Key),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_equal_those_of_rfc_4231() {
        // Test cases 2 and 5; the latter is cut to 128 bits.
        let key = Key::new(b"Jefe").unwrap();
        let code = [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e];
        assert_eq!(key.code(b"what do ya want for nothing?")[..8], code);
        let key = Key::new(&[0x0c; 20]).unwrap();
        let code = [
            0xa3, 0xb6, 0x16, 0x74, 0x73, 0x10, 0x0e, 0xe0, 0x6e, 0x0c, 0x79, 0x6c, 0x29, 0x55,
            0x55, 0x2b,
        ];
        assert_eq!(key.code(b"Test With Truncation"), code);
        assert!(key.verifies(b"Test With Truncation", &code));
        assert!(!key.verifies(b"Test With truncation", &code));
        assert!(!key.verifies(b"Test With Truncation", &code[..15]));
        assert_eq!(format!("{key:?}"), "Key(..)");
    }
}
