//! Serial numbers of certificates.

use std::fmt;

/// Serial number of a certificate: 16 bytes, the first from 0x40 to 0x7f, so that leading zeros need no special
/// treatment (RFC 5280 section 4.1.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Serial([u8; Self::BYTES]);

impl Serial {
    pub(super) const BYTES: usize = 16;

    /// From random bytes.
    pub(super) fn new(mut bytes: [u8; Self::BYTES]) -> Self {
        bytes[0] = bytes[0] & 0x3f | 0x40;
        Self(bytes)
    }

    /// From a certificate; none if it is not a serial number of a mesh.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.try_into().ok()?;
        (Self::new(bytes).0 == bytes).then_some(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// In hexadecimal.
impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn serial_round_trips(bytes: [u8; 16]) {
            let serial = Serial::new(bytes);
            prop_assert_eq!(Serial::of(serial.bytes()), Some(serial));
            prop_assert_eq!(Serial::of(&serial.bytes()[1..]), None);
            prop_assert_eq!(serial.to_string().len(), 32);
        }
    }
}
