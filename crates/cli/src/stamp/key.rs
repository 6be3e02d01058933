//! The shared key of sender and reflector.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use wirestamp_packet::stamp::Key;

/// Min length of a key in bytes: as long as the authentication code. RFC 8762 section 4.4 refers to RFC
/// 4868, whose section 2.1.1 has 32 bytes for HMAC-SHA-256.
const MIN_BYTES: usize = 16;

/// Reads a key from a file: decoded if the file has only hexadecimal digits, else its bytes. A final
/// line break is ignored.
pub(crate) fn read_key(file: &Path) -> anyhow::Result<Key> {
    let named = file.display();
    let bytes = fs::read(file).with_context(|| format!("cannot read the key in {named}"))?;
    let secret = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
    let decoded = digits(secret);
    let secret = decoded.as_deref().unwrap_or(secret);
    if secret.len() < MIN_BYTES {
        bail!(
            "the key in {named} has {} bytes, fewer than {MIN_BYTES}; create one with `openssl rand -hex 32 > \
             {named}`",
            secret.len()
        );
    }
    Key::new(secret).with_context(|| format!("cannot use the key in {named}"))
}

/// Decodes hexadecimal digits, two for each byte.
fn digits(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8; 2]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    let (pairs, []) = text.as_chunks() else { return None };
    pairs.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_has_a_min_length_without_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        assert!(read_key(&file).unwrap_err().to_string().contains("cannot read"));
        fs::write(&file, "0123456789abcde\r\n").unwrap();
        assert!(read_key(&file).unwrap_err().to_string().contains("openssl"));
        fs::write(&file, "a secret of bytes\n").unwrap();
        read_key(&file).unwrap();
        // 16 digits are only 8 bytes.
        fs::write(&file, "0123456789abcdef\n").unwrap();
        assert!(read_key(&file).unwrap_err().to_string().contains("has 8 bytes"));
        assert_eq!(digits(b"0aFf"), Some(vec![0x0a, 0xff]));
        assert_eq!(digits(b"0aF"), None);
    }
}
