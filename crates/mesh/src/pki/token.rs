//! Enrolment tokens.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Length of secret and fingerprint: too long to guess, or to find a second certificate with the same fingerprint.
const BYTES: usize = 16;

/// Secret that works once, with the fingerprint of the CA for a node that has no CA certificate yet.
///
/// Text form: 65 characters, secret and fingerprint in hexadecimal, with a hyphen between.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    secret: [u8; BYTES],
    fingerprint: [u8; BYTES],
}

/// A text that is not a [`Token`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("not a token: expected 32 hexadecimal digits, a hyphen and 32 more")]
pub struct NotAToken;

impl Token {
    /// A token for the CA with this certificate.
    pub(super) fn new(secret: [u8; BYTES], authority: &[u8]) -> Self {
        Self { secret, fingerprint: fingerprint(authority) }
    }

    /// Digest that is stored instead of the secret.
    pub(super) fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.secret).into()
    }

    /// Whether this is the certificate of the CA that issued the token.
    #[must_use]
    pub fn is_of(&self, authority: &[u8]) -> bool {
        self.fingerprint == fingerprint(authority)
    }
}

/// First half of the SHA-256 of a certificate.
fn fingerprint(certificate: &[u8]) -> [u8; BYTES] {
    let digest: [u8; 32] = Sha256::digest(certificate).into();
    std::array::from_fn(|at| digest[at])
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = u128::from_be_bytes;
        write!(f, "{:032x}-{:032x}", number(self.secret), number(self.fingerprint))
    }
}

/// Without the secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, NotAToken> {
        let number = |digits: &str| {
            let is_one =
                digits.len() == 2 * BYTES && digits.bytes().all(|it| it.is_ascii_hexdigit());
            let number = is_one.then(|| u128::from_str_radix(digits, 16).ok()).flatten();
            number.map(u128::to_be_bytes).ok_or(NotAToken)
        };
        let (secret, fingerprint) = text.trim().split_once('-').ok_or(NotAToken)?;
        Ok(Self { secret: number(secret)?, fingerprint: number(fingerprint)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn token_round_trips(secret: [u8; BYTES], authority: [u8; 9], text: String) {
            let token = Token::new(secret, &authority);
            prop_assert_eq!(token.to_string().parse::<Token>(), Ok(token.clone()));
            prop_assert!(token.is_of(&authority) && !token.is_of(b"another"));
            prop_assert_eq!(text.parse::<Token>(), Err(NotAToken));
        }
    }

    #[test]
    fn signs_and_other_digits_are_rejected() {
        let other = format!("+{}-{}", "0".repeat(31), "0".repeat(32));
        assert_eq!(other.parse::<Token>(), Err(NotAToken));
        assert_eq!(format!("{:?}", Token::new([7; BYTES], b"")), "Token");
    }
}
