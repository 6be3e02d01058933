//! What the two probes of an authenticated test share, and nobody else.
//!
//! The controller makes it when the task is entered, and forgets it when the task is ended. It is no part of the
//! task, so that whoever is told of tasks is not told of it: only duties carry it, to the probes that test.

use std::fmt;

use wirestamp_packet::stamp::Key;

use crate::v1::Duty;

/// As many as an HMAC-SHA-256 has (RFC 4868 section 2.1.1).
pub(crate) const BYTES: usize = 32;

/// A secret that sender and reflector of a test share (RFC 8762 section 4.4).
#[derive(Clone)]
pub(crate) struct Secret {
    bytes: [u8; BYTES],
    key: Key,
}

impl Secret {
    /// The one that a duty carries; none if that is no secret.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self { bytes: bytes.try_into().ok()?, key: Key::new(bytes)? })
    }

    /// By which packets get their codes.
    pub(crate) fn key(&self) -> Key {
        self.key.clone()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

/// A new one, that nobody can guess.
pub(crate) fn random() -> Result<[u8; BYTES], getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Without itself.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Without the secret.
impl fmt::Debug for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, body, made, address, secret: _ } = self;
        let mut duty = f.debug_struct("Duty");
        duty.field("task", task).field("body", body).field("made", made).field("address", address);
        duty.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_and_no_two_are_alike() {
        let [first, second] = [(), ()].map(|()| random().unwrap());
        assert_ne!(first, second);
        let read = Secret::read(&first).unwrap();
        assert_eq!(read, Secret::read(&first).unwrap());
        assert_ne!(read, Secret::read(&second).unwrap());
        assert_eq!(format!("{read:?}"), "Secret(..)");
        let duty = Duty { task: 7, secret: first.to_vec(), ..Duty::default() };
        let shown = format!("{duty:?}");
        assert!(shown.contains("task: 7") && !shown.contains("secret"), "{shown}");
        assert_eq!(Secret::read(&first[1..]), None);
        assert_eq!(Secret::read(&[]), None);
    }
}
