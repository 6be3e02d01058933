//! Shared secret of the two probes of an authenticated test.
//!
//! The controller generates it when the task is created, and deletes it when the task is ended. It is not part of the
//! task: only `Duty` messages carry it, to the two probes.

use std::fmt;

use wirestamp_packet::stamp::Key;

use crate::v1::Duty;

/// Key length of HMAC-SHA-256, in bytes (RFC 4868 section 2.1.1).
pub(crate) const BYTES: usize = 32;

/// A secret that sender and reflector of a test share (RFC 8762 section 4.4).
#[derive(Clone)]
pub(crate) struct Secret {
    bytes: [u8; BYTES],
    key: Key,
}

impl Secret {
    /// Parses the secret of a duty; none if it is not valid.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self { bytes: bytes.try_into().ok()?, key: Key::new(bytes)? })
    }

    /// Key of the authentication codes.
    pub(crate) fn key(&self) -> Key {
        self.key.clone()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

/// A new random secret.
pub(crate) fn random() -> Result<[u8; BYTES], getrandom::Error> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Without the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Without the secret.
impl fmt::Debug for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, body, made, address, secret: _, shard } = self;
        let mut duty = f.debug_struct("Duty");
        duty.field("task", task)
            .field("body", body)
            .field("made", made)
            .field("address", address)
            .field("shard", shard);
        duty.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_not_printed() {
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
