//! The secret that sender and reflector share.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use wirestamp_packet::stamp::Key;

/// The shortest secret: RFC 8762 section 4.4 takes its keys from RFC 4868, whose section 2.1.1 has 32 bytes
/// for HMAC-SHA-256. Half of that is taken, because it is as long as the code.
const SHORTEST: usize = 16;

/// The key in a file: what its hexadecimal digits say, where there is nothing else, or its bytes; without the
/// line's end that editors add.
pub(crate) fn read_key(file: &Path) -> anyhow::Result<Key> {
    let named = file.display();
    let bytes = fs::read(file).with_context(|| format!("cannot read the key in {named}"))?;
    let secret = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
    let decoded = digits(secret);
    let secret = decoded.as_deref().unwrap_or(secret);
    if secret.len() < SHORTEST {
        bail!(
            "the key in {named} has {} bytes, and {SHORTEST} is the least: `openssl rand -hex 32 > \
             {named}` makes one",
            secret.len()
        );
    }
    Key::new(secret).with_context(|| format!("the key in {named} cannot be used"))
}

/// What hexadecimal digits say, two a byte.
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
    fn a_key_has_a_least_length_and_no_end_of_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        assert!(read_key(&file).unwrap_err().to_string().contains("cannot read"));
        fs::write(&file, "0123456789abcde\r\n").unwrap();
        assert!(read_key(&file).unwrap_err().to_string().contains("openssl"));
        fs::write(&file, "a secret of bytes\n").unwrap();
        read_key(&file).unwrap();
        // As many digits as bytes would do.
        fs::write(&file, "0123456789abcdef\n").unwrap();
        assert!(read_key(&file).unwrap_err().to_string().contains("has 8 bytes"));
        assert_eq!(digits(b"0aFf"), Some(vec![0x0a, 0xff]));
        assert_eq!(digits(b"0aF"), None);
    }
}
